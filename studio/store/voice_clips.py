"""The clips of saved voices: several a voice, one of them its reference; each with its file, trim, words and codes."""

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from studio.errors import BuiltInVoice, ReferenceClip, StorageError, UnknownClip, UnknownVoice
from studio.store.adopted_codes import AdoptedCodes, stored
from studio.store.clip_files import ClipFiles
from studio.store.database import connection, transaction
from studio.store.voice_names import storable
from studio.store.voice_records import Clip, NewClip, VoiceCodes, clean_file_name, clean_text
from studio.store.voice_rows import SELECT_CLIPS, clip_of, keys_of, put_clip, retire_unshared, set_codes

Trim = tuple[float, float] | None


class VoiceClips:
    """Clips by id under one codec. Those of built-in voices are never changed."""

    def __init__(self, database: Path, files: ClipFiles, *, codec: str) -> None:
        self._database = database
        self._files = files
        self._codec = codec

    def list(self, voice_id: str) -> list[Clip]:
        """The clips of a voice, oldest first."""
        with connection(self._database) as db:
            query = SELECT_CLIPS + " WHERE clips.voice_id = ? ORDER BY clips.created, clips.rowid"
            return [clip_of(row) for row in db.query(query, [self._codec, storable(voice_id)])]

    def get(self, identifier: str) -> Clip:
        """UnknownClip where there is none."""
        with connection(self._database) as db:
            for row in db.query(SELECT_CLIPS + " WHERE clips.id = ?", [self._codec, storable(identifier)]):
                return clip_of(row)
        raise UnknownClip(identifier)

    def add(self, voice_id: str, clip: NewClip) -> Clip:
        """Gives a voice one more clip, which is not its reference until it is chosen."""
        identifier = uuid.uuid4().hex
        words = clean_text("transcript", clip.transcript)
        with transaction(self._database) as db:
            _refuse_builtin(db, voice_id)
            put_clip(db, identifier, voice_id, replace(clip, transcript=words, name=clean_file_name(clip.name)))
            self.write_files(db, {identifier: clip})
        return self.get(identifier)

    def as_new(self, clip: Clip) -> NewClip:
        """A clip as it would come in once more: its bytes, its words and its keys under every codec."""
        with connection(self._database) as db:
            rows = db.execute("SELECT codec, key, codes_digest FROM clip_codes WHERE clip_id = ?", [clip.id]).fetchall()
        codes = tuple(VoiceCodes(codec=codec, key=key, digest=digest) for codec, key, digest in rows)
        same: dict[str, Any] = {
            name: getattr(clip, name) for name in NewClip.__dataclass_fields__ if name not in ("content", "codes")
        }
        return NewClip(**same, content=self.content(clip), codes=codes)

    def choose(self, identifier: str) -> Clip:
        """Makes a clip the reference of its voice."""
        clip = self.get(identifier)
        with transaction(self._database) as db:
            db.execute("UPDATE voices SET reference_clip = ? WHERE id = ?", [clip.id, clip.voice_id])
        return self.get(identifier)

    def edit_transcript(self, identifier: str, transcript: str) -> Clip:
        """Says what is said in a clip; no codes are touched."""
        clip = self.get(identifier)
        words = clean_text("transcript", transcript)
        with transaction(self._database) as db:
            _refuse_builtin(db, clip.voice_id)
            db.execute("UPDATE clips SET transcript = ?, transcript_unchecked = 0 WHERE id = ?", [words, clip.id])
        return self.get(identifier)

    def trim(self, identifier: str, trim: Trim, *, transcript: str | None, codes: VoiceCodes, duration: float) -> Clip:
        """Uses another part of a clip, whose codes these are; entries that no clip shares any more go.

        Without a transcript of that part the present one stays and is marked as unchecked, where there is one.
        """
        clip = self.get(identifier)
        words = clip.transcript if transcript is None else clean_text("transcript", transcript)
        unchecked = transcript is None and bool(words) and (clip.transcript_unchecked or trim != clip.trim)
        with transaction(self._database) as db:
            _refuse_builtin(db, clip.voice_id)
            before = keys_of(db, clip_id=clip.id)
            db.execute("DELETE FROM clip_codes WHERE clip_id = ?", [clip.id])
            db.execute(
                """UPDATE clips SET trim_start = ?, trim_end = ?, transcript = ?, transcript_unchecked = ?, duration = ?
                   WHERE id = ?""",
                [*(trim or (None, None)), words, unchecked, duration, clip.id],
            )
            set_codes(db, clip.id, codes)
            retire_unshared(db, before)
        return self.get(identifier)

    def remove(self, identifier: str) -> Clip:
        """Removes a clip, its file and its unshared cache entries; ReferenceClip while its voice speaks after it."""
        clip = self.get(identifier)
        with transaction(self._database) as db:
            if db.execute("SELECT 1 FROM voices WHERE reference_clip = ?", [clip.id]).fetchone():
                raise ReferenceClip(clip.name)
            before = keys_of(db, clip_id=clip.id)
            db.execute("DELETE FROM clips WHERE id = ?", [clip.id])
            retire_unshared(db, before)
        with transaction(self._database) as db:
            self.sweep(db)
        return clip

    def remember_codes(self, identifier: str, digest: str, trim: Trim, codes: VoiceCodes, *, duration: float) -> None:
        """Notes which cache entry a clip has under a codec; nothing where it is gone or trimmed by now."""
        with transaction(self._database) as db:
            if db.execute(
                "UPDATE clips SET duration = ? WHERE id = ? AND digest = ? AND trim_start IS ? AND trim_end IS ?",
                [duration, identifier, digest, *(trim or (None, None))],
            ).rowcount:
                set_codes(db, identifier, codes)

    def content(self, clip: Clip) -> bytes:
        """The original bytes as they were given; StorageError where the file is gone or is not what was saved."""
        return self.read(clip.id, clip.digest, clip.name)

    def read(self, identifier: str, digest: str, name: str) -> bytes:
        """As `content`, by id and SHA-256; `name` is what a message calls it."""
        content = self._files.read(identifier)
        if hashlib.sha256(content).hexdigest() != digest:
            raise StorageError(str(self._database.parent), f"the clip of {name!r} is damaged")
        return content

    def codes(self, clip: Clip) -> AdoptedCodes | None:
        """The codes of a clip under the library's codec; None where they are not filled."""
        if clip.key is None:
            return None
        with connection(self._database) as db:
            return stored(db, clip.key)

    def write_files(self, db: Database, clips: Mapping[str, NewClip]) -> None:
        """Writes the files of new clips, inside their rows' transaction: files without a row are leavings, and are
        swept by whoever writes next."""
        self.sweep(db)
        for identifier, clip in clips.items():
            self._files.write(identifier, clip.content)

    def sweep(self, db: Database) -> None:
        """Inside a write transaction, so that no other process's new clip is taken for a leaving."""
        self._files.keep_only({row[0] for row in db.execute("SELECT id FROM clips").fetchall()})


def _refuse_builtin(db: Database, voice_id: str) -> None:
    row = db.execute("SELECT name, builtin FROM voices WHERE id = ?", [voice_id]).fetchone()
    if row is None:
        raise UnknownVoice(voice_id)
    if row[1]:
        raise BuiltInVoice(row[0])
