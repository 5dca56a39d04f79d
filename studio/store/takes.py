"""The takes: one row and one file for each generation, each with the reference codes it was made from."""

import json
import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from studio.errors import UnknownTake
from studio.store import packed_codes
from studio.store.database import connection, storing, transaction
from studio.store.voice_names import storable

_IDENTIFIER = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Take:
    """One generation. It is reserved as partial before the first chunk, and saved whole when its last one was made."""

    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: float = field(default_factory=time.time)
    """Seconds since 1970."""
    script: str
    voice_id: str | None
    """None where the reference was a clip that is not in the library."""
    voice_name: str
    engine: str
    revision: str
    device: str
    seed: int
    options: Mapping[str, Any]
    """Every other option, as JSON can hold it."""
    key: str
    codes: np.ndarray
    """The reference codes, int16 `(num_codebooks, num_frames)`; read-only when read back."""
    codes_digest: str
    cache: str
    """"hit" or "fill"."""
    lookup_ms: float
    encode_ms: float
    first_audio_ms: float | None = None
    duration: float = 0.0
    """Seconds of audio in the file."""
    realtime_speed: float | None = None
    pcm_digest: str = ""
    """SHA-256 of the int16 little-endian PCM, channels interleaved."""
    partial: bool = True
    error: str | None = None
    """The sentence that ended it early."""
    missing: bool = False
    """Whether its file is gone; found when it is read, never stored."""


class TakeLibrary:
    """Takes by id, newest first; safe from any thread and beside other processes."""

    def __init__(self, database: Path, takes_dir: Path) -> None:
        self._database = database
        self._takes_dir = takes_dir

    def save(self, take: Take) -> Take:
        """Writes the take as it stands, in place of an earlier state of it: once when it starts, so that a killed
        process leaves a partial take and not nothing, and once when it ends."""
        with transaction(self._database) as db:
            db.execute(_SAVE, _row(take))
        return take

    def list(self, *, limit: int = 50, offset: int = 0) -> list[Take]:
        with connection(self._database) as db:
            rows = db.query("SELECT * FROM takes ORDER BY created DESC, id LIMIT ? OFFSET ?", [limit, offset])
            return [self._take(row) for row in rows]

    def count(self) -> int:
        with connection(self._database) as db:
            return db.execute("SELECT count(*) FROM takes").fetchone()[0]

    def get(self, identifier: str) -> Take:
        """UnknownTake where there is none."""
        with connection(self._database) as db:
            for row in db.query("SELECT * FROM takes WHERE id = ?", [storable(identifier)]):
                return self._take(row)
        raise UnknownTake(identifier)

    def path(self, identifier: str) -> Path:
        """Where the take's audio is or will be; UnknownTake for what is no id, so that no request leaves the folder."""
        if not _IDENTIFIER.fullmatch(identifier):
            raise UnknownTake(identifier)
        with storing(self._takes_dir):
            self._takes_dir.mkdir(parents=True, exist_ok=True)
        return self._takes_dir / f"{identifier}.wav"

    def remove(self, identifier: str) -> None:
        """Removes file and row; UnknownTake where there is none."""
        take = self.get(identifier)
        # The file first: a kill in between leaves a row that shows as missing and can be removed again.
        with storing(self._takes_dir):
            self.path(take.id).unlink(missing_ok=True)
        with transaction(self._database) as db:
            db.execute("DELETE FROM takes WHERE id = ?", [take.id])

    def _take(self, row: Mapping[str, Any]) -> Take:
        fields = {name: row[name] for name in Take.__dataclass_fields__ if name in row}
        return Take(
            **fields
            | {
                "options": json.loads(row["options"]),
                "codes": packed_codes.unpack(row["codes"], row["num_codebooks"], row["num_frames"]),
                "partial": bool(row["partial"]),
                "missing": not self.path(row["id"]).is_file(),
            }
        )


def _row(take: Take) -> dict[str, Any]:
    """The columns of a take, by name."""
    fields = {name: getattr(take, name) for name in Take.__dataclass_fields__ if name != "missing"}
    num_codebooks, num_frames = take.codes.shape
    return fields | {
        "script": storable(take.script),
        "voice_name": storable(take.voice_name),
        "options": json.dumps(dict(take.options), sort_keys=True),
        "codes": packed_codes.pack(take.codes),
        "num_codebooks": num_codebooks,
        "num_frames": num_frames,
        "partial": int(take.partial),
    }


_SAVE = """INSERT OR REPLACE INTO takes
    (id, created, script, voice_id, voice_name, engine, revision, device, seed, options, key,
     codes, num_codebooks, num_frames, codes_digest, cache, lookup_ms, encode_ms,
     first_audio_ms, duration, realtime_speed, pcm_digest, partial, error)
    VALUES
    (:id, :created, :script, :voice_id, :voice_name, :engine, :revision, :device, :seed, :options, :key,
     :codes, :num_codebooks, :num_frames, :codes_digest, :cache, :lookup_ms, :encode_ms,
     :first_audio_ms, :duration, :realtime_speed, :pcm_digest, :partial, :error)"""
