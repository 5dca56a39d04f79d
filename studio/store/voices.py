"""The voice library: named references whose original clips are kept, with key and digest of their codes per codec."""

import hashlib
import json
import time
import uuid
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from studio.errors import BuiltInVoice, NameTaken, UnknownVoice
from studio.store.adopted_codes import AdoptedCodes, adopt
from studio.store.clip_files import ClipFiles
from studio.store.database import connection, transaction
from studio.store.voice_clips import VoiceClips
from studio.store.voice_names import MAX_LENGTH, clean_name, fold, storable
from studio.store.voice_records import (
    NewClip,
    Usage,
    Voice,
    VoiceChanges,
    VoiceCodes,
    VoiceDetails,
    checked,
    clean_colour,
    clean_tags,
    clean_text,
)
from studio.store.voice_rows import (
    SELECT_VOICES,
    free_name,
    keys_of,
    put_clip,
    put_voice,
    refuse_taken,
    retire_unshared,
    unused_id,
    voice_of,
)
from studio.store.voice_search import in_order, matching

_ORDER = " ORDER BY builtin DESC, CASE WHEN builtin THEN voices.created END, folded_name"
_OWN_TO_BUILTIN = ("name", "transcript", "description", "sex")
"""What a built-in voice says itself; notes, tags and the like are its user's."""


class VoiceLibrary:
    """Saved voices under one codec, told by its digest; safe from any thread and beside other processes."""

    def __init__(self, database: Path, clips_dir: Path, *, codec: str) -> None:
        self._database = database
        self._files = ClipFiles(clips_dir)
        self.codec = codec
        self.clips = VoiceClips(database, self._files, codec=codec)

    def add(self, details: VoiceDetails, clip: bytes, *, codes: VoiceCodes | None, duration: float) -> Voice:
        """Saves a voice of one clip; where anything fails, neither row nor file is left."""
        known = () if codes is None else (codes,)
        return self.add_whole(details, [replace(_reference(details, clip), duration=duration, codes=known)])

    def add_whole(
        self,
        details: VoiceDetails,
        clips: Sequence[NewClip],
        *,
        usage: Usage | None = None,
        identifier: str | None = None,
        adopted: Sequence[AdoptedCodes] = (),
    ) -> Voice:
        """Saves a voice of several clips, the first its reference, and takes over codes for clips that lack them.

        Where the cache has other codes under the same key these stand, and are noted with the clip. An `identifier`
        that anything here has becomes another. Where anything fails, neither row nor file is left.
        """
        with transaction(self._database) as db:
            identifier = unused_id(db, identifier)
            identifiers = [identifier, *(uuid.uuid4().hex for _ in clips[1:])]
            put_voice(db, identifier, checked(details), usage or Usage(), builtin=False)
            standing = {entry.key: adopt(db, entry) for entry in adopted}
            for clip_id, clip in zip(identifiers, clips, strict=True):
                codes = tuple(replace(each, digest=standing.get(each.key, each.digest)) for each in clip.codes)
                put_clip(db, clip_id, identifier, replace(clip, codes=codes))
            self.clips.write_files(db, dict(zip(identifiers, clips, strict=True)))
        return self.get(identifier)

    def install_builtin(self, identifier: str, details: VoiceDetails, clip: bytes) -> Voice:
        """Saves a built-in voice or renews it; a new clip drops the old one's codes, a second call changes nothing.

        Where a person already uses its name, that name stays theirs and the built-in one says what it is.
        """
        details = checked(details)
        if self._is_installed(identifier, details, clip):
            return self.get(identifier)
        with transaction(self._database) as db:
            before = db.execute("SELECT digest FROM clips WHERE id = ?", [identifier]).fetchone()
            new_clip = before is None or before[0] != hashlib.sha256(clip).hexdigest()
            keys = keys_of(db, voice_id=identifier)
            put_voice(db, identifier, _free(db, identifier, details), Usage(), builtin=True)
            put_clip(db, identifier, identifier, _reference(details, clip))
            if new_clip:
                db.execute("DELETE FROM clip_codes WHERE clip_id = ?", [identifier])
                retire_unshared(db, keys)
            if new_clip or not self._files.path(identifier).is_file():
                self._files.write(identifier, clip)
        return self.get(identifier)

    def _is_installed(self, identifier: str, details: VoiceDetails, clip: bytes) -> bool:
        """Whether there is nothing to write, as at nearly every start."""
        with connection(self._database) as db:
            rows = [voice_of(row) for row in db.query(SELECT_VOICES + " WHERE voices.id = ?", [self.codec, identifier])]
        said = {name: getattr(details, name) for name in (*_OWN_TO_BUILTIN, "clip_name", "trim")}
        wanted = said | {"clip_digest": hashlib.sha256(clip).hexdigest(), "builtin": True}
        found = [{name: getattr(voice, name) for name in wanted} for voice in rows]
        return found == [wanted] and self._files.path(identifier).is_file()

    def list(self, *, search: str = "", order: str | None = None) -> list[Voice]:
        """Voices that have every searched word in one of their texts, in one of the orders of `voice_search`.

        Without an order the built-in ones come first, as they were installed, then the others by name.
        """
        with connection(self._database) as db:
            voices = [voice_of(row) for row in db.query(SELECT_VOICES + _ORDER, [self.codec])]
            spoken = db.execute(
                "SELECT voice_id, group_concat(transcript, ' ') FROM clips GROUP BY voice_id"
            ).fetchall()
        found = matching(voices, search, dict(spoken))
        return found if order is None else in_order(found, order)

    def get(self, id_or_name: str) -> Voice:
        """The voice of this id, else of this name in any case; UnknownVoice where there is none."""
        asked = storable(id_or_name)
        with connection(self._database) as db:
            query = SELECT_VOICES + " WHERE voices.id = ? OR folded_name = ? ORDER BY voices.id = ? DESC LIMIT 1"
            for row in db.query(query, [self.codec, asked, fold(asked), asked]):
                return voice_of(row)
        raise UnknownVoice(id_or_name)

    def get_by_id(self, identifier: str) -> Voice:
        """As `get`, for who must not find a voice by its name: an address is an id."""
        voice = self.get(identifier)
        if voice.id != identifier:
            raise UnknownVoice(identifier)
        return voice

    def check_name(self, name: str) -> str:
        """The name as it would be kept; SettingError or NameTaken where it cannot be. For asking before an encode."""
        cleaned = clean_name(name)
        with connection(self._database) as db:
            refuse_taken(db, cleaned, identifier="")
        return cleaned

    def free_name(self, name: str) -> str:
        """The name, else the first of "name (2)", "name (3)", … that no voice has now."""
        cleaned = clean_name(name)
        with connection(self._database) as db:
            return free_name(db, cleaned, longest=MAX_LENGTH)

    def edit(self, id_or_name: str, changes: VoiceChanges) -> Voice:
        """Changes what is given and nothing else; no codes are touched, and a given transcript counts as checked.

        A built-in voice takes notes, tags and the like; BuiltInVoice where its own details are to change.
        """
        voice = self.get(id_or_name)
        given = {name: value for name, value in asdict(changes).items() if value is not None}
        if voice.builtin and set(given) & set(_OWN_TO_BUILTIN):
            raise BuiltInVoice(voice.name)
        cleaned = {name: _clean(name, value) for name, value in given.items()}
        transcript = cleaned.pop("transcript", None)
        with transaction(self._database) as db:
            if "name" in cleaned:
                refuse_taken(db, cleaned["name"], identifier=voice.id)
                cleaned["folded_name"] = fold(cleaned["name"])
            for column, value in cleaned.items():
                db.execute(f"UPDATE voices SET {column} = ? WHERE id = ?", [value, voice.id])  # noqa: S608 - our names
            if transcript is not None:
                db.execute(
                    """UPDATE clips SET transcript = ?, transcript_unchecked = 0
                       WHERE id = (SELECT reference_clip FROM voices WHERE id = ?)""",
                    [transcript, voice.id],
                )
        return self.get(voice.id)

    def duplicate(self, id_or_name: str, name: str) -> Voice:
        """A new voice with the same clips, codes and words, under another name; it may be changed and removed, also
        where the first is built in."""
        voice = self.get(id_or_name)
        said: dict[str, Any] = {field: getattr(voice, field) for field in VoiceDetails.__dataclass_fields__}
        own = sorted(self.clips.list(voice.id), key=lambda clip: not clip.is_reference)
        clips = [self.clips.as_new(clip) for clip in own]
        said["name"] = name
        return self.add_whole(VoiceDetails(**said), clips)

    def remember_codes(self, voice: Voice, codes: VoiceCodes, *, duration: float) -> None:
        """Notes which cache entry a voice's reference has under a codec; nothing where it was removed, trimmed again
        or replaced meanwhile."""
        self.clips.remember_codes(voice.clip_id, voice.clip_digest, voice.trim, codes, duration=duration)

    def clip_bytes(self, voice: Voice) -> bytes:
        """The original bytes as they were given; StorageError where the file is gone or is not what was saved."""
        return self.clips.read(voice.clip_id, voice.clip_digest, voice.name)

    def touch(self, identifier: str) -> None:
        """Counts one use, now."""
        with transaction(self._database) as db:
            db.execute(
                "UPDATE voices SET times_used = times_used + 1, last_used = ? WHERE id = ?", [time.time(), identifier]
            )

    def remove(self, id_or_name: str) -> Voice:
        """Removes rows, files and the cache entries that no other clip shares, and returns what was removed.

        BuiltInVoice where it may not go. Takes stay, with codes of their own.
        """
        voice = self.get(id_or_name)
        if voice.builtin:
            raise BuiltInVoice(voice.name)
        with transaction(self._database) as db:
            keys = keys_of(db, voice_id=voice.id)
            if not db.execute("DELETE FROM voices WHERE id = ?", [voice.id]).rowcount:
                raise UnknownVoice(id_or_name)
            retire_unshared(db, keys)
        with transaction(self._database) as db:
            self.clips.sweep(db)
        return voice


def _reference(details: VoiceDetails, content: bytes) -> NewClip:
    """The clip that details speak of."""
    return NewClip(content=content, name=details.clip_name, trim=details.trim, transcript=details.transcript)


def _clean(field: str, value: str | tuple[str, ...]) -> str:
    """The value as its column holds it."""
    if not isinstance(value, str):
        return json.dumps(clean_tags(value))
    if field == "name":
        return clean_name(value)
    return clean_colour(value) if field == "colour" else clean_text(field, value)


def _free(db: Database, identifier: str, details: VoiceDetails) -> VoiceDetails:
    """The details under a name that nobody else has."""
    try:
        refuse_taken(db, details.name, identifier=identifier)
    except NameTaken:
        return replace(details, name=f"{details.name} (built-in {identifier})")
    return details
