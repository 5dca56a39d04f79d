"""The voice library: named references whose original clips are kept, with key and digest of their codes per codec."""

import hashlib
import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from studio.errors import BuiltInVoice, NameTaken, StorageError, UnknownVoice
from studio.store.clip_files import ClipFiles
from studio.store.database import connection, transaction
from studio.store.voice_names import clean_name, fold, storable


@dataclass(frozen=True, kw_only=True)
class VoiceCodes:
    """The cache entry of a voice under one codec: `codec` is the digest of all key fields that are not the clip's."""

    codec: str
    key: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class VoiceDetails:
    """What its owner says about a voice."""

    name: str
    transcript: str = ""
    description: str = ""
    sex: str = ""
    clip_name: str = ""
    """What the clip's file was called; shown, and never used as a path."""
    trim: tuple[float, float] | None = None
    """Start and end in seconds of the part that is the reference; None for the whole clip."""


@dataclass(frozen=True, kw_only=True)
class Voice:
    """A saved, named reference; `key` and `codes_digest` are the library's codec's, and None before its first fill."""

    id: str
    name: str
    key: str | None
    codes_digest: str | None
    filled: bool
    """Whether the cache holds the codes of `key` now."""
    transcript: str
    description: str
    sex: str
    builtin: bool
    clip_name: str
    clip_digest: str
    trim: tuple[float, float] | None
    duration: float
    """Seconds of the reference; 0 before the first fill."""
    created: float
    last_used: float | None
    times_used: int


class VoiceLibrary:
    """Saved voices under one codec, told by its digest; safe from any thread and beside other processes."""

    def __init__(self, database: Path, clips_dir: Path, *, codec: str) -> None:
        self._database = database
        self._files = ClipFiles(clips_dir)
        self.codec = codec

    def add(self, details: VoiceDetails, clip: bytes, *, codes: VoiceCodes | None, duration: float) -> Voice:
        """Saves a voice and its clip's bytes; where anything fails, neither row nor file is left."""
        identifier = uuid.uuid4().hex
        with transaction(self._database) as db:
            _insert(db, identifier, details, clip, builtin=False, duration=duration)
            if codes is not None:
                _set_codes(db, identifier, codes)
            # The file inside the transaction: files without a row are leavings, and are swept by whoever writes next.
            self._sweep(db)
            self._files.write(identifier, clip)
        return self.get(identifier)

    def install_builtin(self, identifier: str, details: VoiceDetails, clip: bytes) -> Voice:
        """Saves a built-in voice or renews it; a new clip drops the old one's codes, a second call changes nothing.

        Where a person already uses its name, that name stays theirs and the built-in one says what it is.
        """
        if self._is_installed(identifier, details, clip):
            return self.get(identifier)
        with transaction(self._database) as db:
            before = db.execute("SELECT digest FROM clips WHERE id = ?", [identifier]).fetchone()
            new_clip = before is None or before[0] != hashlib.sha256(clip).hexdigest()
            if new_clip:
                db.execute("DELETE FROM clip_codes WHERE clip_id = ?", [identifier])
            _insert(db, identifier, _free(db, identifier, details), clip, builtin=True, duration=0.0)
            if new_clip or not self._files.path(identifier).is_file():
                self._files.write(identifier, clip)
        return self.get(identifier)

    def _is_installed(self, identifier: str, details: VoiceDetails, clip: bytes) -> bool:
        """Whether there is nothing to write, as at nearly every start."""
        with connection(self._database) as db:
            rows = [_voice(row) for row in db.query(_SELECT + " WHERE voices.id = ?", [self.codec, identifier])]
        wanted = {**asdict(details), "clip_digest": hashlib.sha256(clip).hexdigest(), "builtin": True}
        found = [{name: getattr(voice, name) for name in wanted} for voice in rows]
        return found == [wanted] and self._files.path(identifier).is_file()

    def list(self) -> list[Voice]:
        """Built-in voices first, in the order they were installed, then the others by name."""
        with connection(self._database) as db:
            return [_voice(row) for row in db.query(_SELECT + _ORDER, [self.codec])]

    def get(self, id_or_name: str) -> Voice:
        """The voice of this id, else of this name in any case; UnknownVoice where there is none."""
        asked = storable(id_or_name)
        with connection(self._database) as db:
            rows = db.query(
                _SELECT + " WHERE voices.id = ? OR folded_name = ? ORDER BY voices.id = ? DESC LIMIT 1",
                [self.codec, asked, fold(asked), asked],
            )
            for row in rows:
                return _voice(row)
        raise UnknownVoice(id_or_name)

    def check_name(self, name: str) -> str:
        """The name as it would be kept; SettingError or NameTaken where it cannot be. For asking before an encode."""
        cleaned = clean_name(name)
        with connection(self._database) as db:
            _refuse_taken(db, cleaned, identifier="")
        return cleaned

    def remember_codes(self, identifier: str, codes: VoiceCodes, *, duration: float) -> None:
        """Notes which cache entry a voice has under a codec; nothing where the voice was removed meanwhile."""
        with transaction(self._database) as db:
            if db.execute("UPDATE clips SET duration = ? WHERE id = ?", [duration, identifier]).rowcount:
                _set_codes(db, identifier, codes)

    def clip_bytes(self, voice: Voice) -> bytes:
        """The original bytes as they were given; StorageError where the file is gone or is not what was saved."""
        clip = self._files.read(voice.id)
        if hashlib.sha256(clip).hexdigest() != voice.clip_digest:
            raise StorageError(str(self._database.parent), f"the clip of {voice.name!r} is damaged")
        return clip

    def touch(self, identifier: str) -> None:
        """Counts one use, now."""
        with transaction(self._database) as db:
            db.execute(
                "UPDATE voices SET times_used = times_used + 1, last_used = ? WHERE id = ?", [time.time(), identifier]
            )

    def remove(self, id_or_name: str) -> Voice:
        """Removes rows and file and returns what was removed; BuiltInVoice where it may not go. Takes stay."""
        voice = self.get(id_or_name)
        if voice.builtin:
            raise BuiltInVoice(voice.name)
        with transaction(self._database) as db:
            if not db.execute("DELETE FROM voices WHERE id = ?", [voice.id]).rowcount:
                raise UnknownVoice(id_or_name)
        with transaction(self._database) as db:
            self._sweep(db)
        return voice

    def _sweep(self, db: Database) -> None:
        """Inside a write transaction, so that no other process's new clip is taken for a leaving."""
        self._files.keep_only({row[0] for row in db.execute("SELECT id FROM clips").fetchall()})


_SELECT = """SELECT voices.*, clips.name AS clip_name, clips.digest AS clip_digest, trim_start, trim_end, transcript,
    duration, clip_codes.key AS key, clip_codes.codes_digest AS codes_digest,
    EXISTS (SELECT 1 FROM codes WHERE codes.key = clip_codes.key) AS filled
    FROM voices JOIN clips ON clips.id = voices.reference_clip
    LEFT JOIN clip_codes ON clip_codes.clip_id = clips.id AND clip_codes.codec = ?"""

_INSERT_VOICE = """INSERT INTO voices
    (id, name, folded_name, builtin, description, sex, created, reference_clip)
    VALUES (:id, :name, :folded_name, :builtin, :description, :sex, :created, :id)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, folded_name = excluded.folded_name, builtin = excluded.builtin,
        description = excluded.description, sex = excluded.sex"""

_INSERT_CLIP = """INSERT INTO clips
    (id, voice_id, name, digest, trim_start, trim_end, transcript, duration, created)
    VALUES (:id, :id, :clip_name, :clip_digest, :trim_start, :trim_end, :transcript, :duration, :created)
    ON CONFLICT (id) DO UPDATE SET
        name = excluded.name, digest = excluded.digest, transcript = excluded.transcript,
        trim_start = excluded.trim_start, trim_end = excluded.trim_end"""

_ORDER = " ORDER BY builtin DESC, CASE WHEN builtin THEN voices.created END, folded_name"


def _voice(row: Mapping[str, Any]) -> Voice:
    fields = {name: row[name] for name in Voice.__dataclass_fields__ if name in row}
    start, end = row["trim_start"], row["trim_end"]
    trim = None if start is None else (start, end)
    return Voice(**fields | {"builtin": bool(row["builtin"]), "filled": bool(row["filled"]), "trim": trim})


def _insert(
    db: Database, identifier: str, details: VoiceDetails, clip: bytes, *, builtin: bool, duration: float
) -> None:
    """Writes a voice's row; one that is there already keeps what is known of its use."""
    name = clean_name(details.name)
    _refuse_taken(db, name, identifier=identifier)
    start, end = details.trim or (None, None)
    row = {
        "id": identifier,
        "name": name,
        "folded_name": fold(name),
        "builtin": int(builtin),
        "transcript": storable(details.transcript),
        "description": storable(details.description),
        "sex": storable(details.sex),
        "clip_name": storable(details.clip_name),
        "clip_digest": hashlib.sha256(clip).hexdigest(),
        "trim_start": start,
        "trim_end": end,
        "duration": duration,
        "created": time.time(),
    }
    db.execute(_INSERT_VOICE, row)
    db.execute(_INSERT_CLIP, row)


def _set_codes(db: Database, identifier: str, codes: VoiceCodes) -> None:
    db.execute(
        "INSERT OR REPLACE INTO clip_codes (clip_id, codec, key, codes_digest) VALUES (?, ?, ?, ?)",
        [identifier, codes.codec, codes.key, codes.digest],
    )


def _refuse_taken(db: Database, name: str, *, identifier: str) -> None:
    """A name is taken by another voice's name, and by its id, under which that voice is asked for too."""
    if db.execute(
        "SELECT 1 FROM voices WHERE (folded_name = ? OR id = ?) AND id != ?", [fold(name), name, identifier]
    ).fetchone():
        raise NameTaken(name)


def _free(db: Database, identifier: str, details: VoiceDetails) -> VoiceDetails:
    """The details under a name that nobody else has."""
    try:
        _refuse_taken(db, details.name, identifier=identifier)
    except NameTaken:
        return replace(details, name=f"{details.name} (built-in {identifier})")
    return details
