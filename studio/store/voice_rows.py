"""Voices and clips as rows: every statement the voice library uses, each inside its caller's transaction."""

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlite_utils import Database

from studio.errors import NameTaken
from studio.store.code_cache import Provenance
from studio.store.voice_names import fold
from studio.store.voice_records import Clip, NewClip, Usage, Voice, VoiceCodes, VoiceDetails, colour_of

SELECT_VOICES = """SELECT voices.*, clips.id AS clip_id, clips.name AS clip_name, clips.digest AS clip_digest,
    trim_start, trim_end, transcript, transcript_unchecked, duration,
    (SELECT count(*) FROM clips AS own WHERE own.voice_id = voices.id) AS num_clips,
    clip_codes.key AS key, clip_codes.codes_digest AS codes_digest,
    codes.key IS NOT NULL AS filled, num_codebooks, num_frames, CAST(provenance AS BLOB) AS provenance
    FROM voices JOIN clips ON clips.id = voices.reference_clip
    LEFT JOIN clip_codes ON clip_codes.clip_id = clips.id AND clip_codes.codec = ?
    LEFT JOIN codes ON codes.key = clip_codes.key"""

SELECT_CLIPS = """SELECT clips.*, clips.id = voices.reference_clip AS is_reference,
    clip_codes.key AS key, clip_codes.codes_digest AS codes_digest, codes.key IS NOT NULL AS filled
    FROM clips JOIN voices ON voices.id = clips.voice_id
    LEFT JOIN clip_codes ON clip_codes.clip_id = clips.id AND clip_codes.codec = ?
    LEFT JOIN codes ON codes.key = clip_codes.key"""

_PUT_VOICE = """INSERT INTO voices
    (id, name, folded_name, builtin, description, sex, notes, tags, language, consent, colour,
     created, last_used, times_used, reference_clip)
    VALUES (:id, :name, :folded_name, :builtin, :description, :sex, :notes, :tags, :language, :consent, :colour,
            :created, :last_used, :times_used, :id)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, folded_name = excluded.folded_name,
        builtin = excluded.builtin, description = excluded.description, sex = excluded.sex"""

_PUT_CLIP = """INSERT INTO clips
    (id, voice_id, name, digest, trim_start, trim_end, transcript, transcript_unchecked, duration, created)
    VALUES (:id, :voice_id, :name, :digest, :trim_start, :trim_end, :transcript, :transcript_unchecked, :duration,
            :created)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, digest = excluded.digest, transcript = excluded.transcript,
        trim_start = excluded.trim_start, trim_end = excluded.trim_end"""

_PUT_TOMBSTONES = """INSERT OR REPLACE INTO tombstones (key, digest, provenance, retired)
    SELECT key, digest, provenance, ? FROM codes WHERE key = ?"""


def voice_of(row: Mapping[str, Any]) -> Voice:
    fields: dict[str, Any] = {name: row[name] for name in Voice.__dataclass_fields__ if name in row}
    fields |= {name: bool(row[name]) for name in ("builtin", "filled", "transcript_unchecked")}
    fields["tags"] = tuple(json.loads(row["tags"]))
    fields["colour"] = row["colour"] or colour_of(row["id"])
    fields["trim"] = _trim(row)
    fields["provenance"] = _provenance(row["provenance"])
    return Voice(**fields)


def clip_of(row: Mapping[str, Any]) -> Clip:
    fields: dict[str, Any] = {name: row[name] for name in Clip.__dataclass_fields__ if name in row}
    fields |= {name: bool(row[name]) for name in ("transcript_unchecked", "filled", "is_reference")}
    fields["trim"] = _trim(row)
    return Clip(**fields)


def _trim(row: Mapping[str, Any]) -> tuple[float, float] | None:
    return None if row["trim_start"] is None else (row["trim_start"], row["trim_end"])


def _provenance(stored: bytes | None) -> Provenance | None:
    """None also where the row is damaged, which the cache finds out and mends when the voice is used."""
    try:
        return None if stored is None else Provenance.from_json(stored)
    except ValueError:
        return None


def put_voice(db: Database, identifier: str, details: VoiceDetails, usage: Usage, *, builtin: bool) -> None:
    """Writes a voice's row from checked details; NameTaken where another has its name.

    One that is there already, as a built-in voice is at its next release, keeps what is known of its use and what its
    owner noted.
    """
    refuse_taken(db, details.name, identifier=identifier)
    row = asdict(details) | asdict(usage)
    row |= {"id": identifier, "folded_name": fold(details.name), "tags": json.dumps(details.tags), "builtin": builtin}
    db.execute(_PUT_VOICE, row)


def put_clip(db: Database, identifier: str, voice_id: str, clip: NewClip) -> None:
    """Writes a clip's row and its keys, in place of what an earlier clip of this id had."""
    start, end = clip.trim or (None, None)
    row = {
        "id": identifier,
        "voice_id": voice_id,
        "name": clip.name,
        "digest": clip.digest,
        "trim_start": start,
        "trim_end": end,
        "transcript": clip.transcript,
        "transcript_unchecked": clip.transcript_unchecked,
        "duration": clip.duration,
        "created": clip.created,
    }
    db.execute(_PUT_CLIP, row)
    for codes in clip.codes:
        set_codes(db, identifier, codes)


def set_codes(db: Database, clip_id: str, codes: VoiceCodes) -> None:
    db.execute(
        "INSERT OR REPLACE INTO clip_codes (clip_id, codec, key, codes_digest) VALUES (?, ?, ?, ?)",
        [clip_id, codes.codec, codes.key, codes.digest],
    )


def keys_of(db: Database, *, voice_id: str = "", clip_id: str = "") -> list[str]:
    """The keys, under every codec, of a voice's clips or of one clip."""
    rows = db.execute(
        """SELECT key FROM clip_codes JOIN clips ON clips.id = clip_codes.clip_id
           WHERE clips.voice_id = ? OR clips.id = ?""",
        [voice_id, clip_id],
    )
    return [row[0] for row in rows.fetchall()]


def retire_unshared(db: Database, keys: Iterable[str]) -> None:
    """Removes the cache entries of keys that no clip has any more, with tombstones; takes have their own codes."""
    for key in keys:
        if db.execute("SELECT 1 FROM clip_codes WHERE key = ?", [key]).fetchone():
            continue
        db.execute(_PUT_TOMBSTONES, [time.time(), key])
        db.execute("DELETE FROM codes WHERE key = ?", [key])
        db.execute("DELETE FROM sources WHERE key = ?", [key])


def refuse_taken(db: Database, name: str, *, identifier: str) -> None:
    """A name is taken by another voice's name, and by its id, under which that voice is asked for too."""
    if db.execute(
        "SELECT 1 FROM voices WHERE (folded_name = ? OR id = ?) AND id != ?", [fold(name), name, identifier]
    ).fetchone():
        raise NameTaken(name)


def unused_id(db: Database, wanted: str | None) -> str:
    """The wanted id unless a voice or a clip has it, or a voice is asked for by it; else a new one."""
    taken = "SELECT 1 FROM voices WHERE id = ?1 OR folded_name = ?1 UNION ALL SELECT 1 FROM clips WHERE id = ?1"
    if wanted is None or db.execute(taken, [wanted]).fetchone():
        return uuid.uuid4().hex
    return wanted


def free_name(db: Database, name: str, *, longest: int) -> str:
    """The name, or where another voice has it the first of "name (2)", "name (3)", … that nobody has."""
    candidate, number = name, 1
    while True:
        try:
            refuse_taken(db, candidate, identifier="")
        except NameTaken:
            number += 1
            ending = f" ({number})"
            candidate = name[: longest - len(ending)] + ending
        else:
            return candidate
