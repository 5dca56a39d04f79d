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
from sqlite_utils import Database

from studio.errors import SettingError, UnknownTake
from studio.store import packed_codes
from studio.store.database import connection, storing, transaction
from studio.store.voice_names import fold, storable

LONGEST_NOTE = 2_000

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
    favourite: bool = False
    note: str = ""
    announced: float | None = None
    """When it was said that this take will go because the takes are over their bound; None while it may stay."""
    missing: bool = False
    """Whether its file is gone; found when it is read, never stored."""


class TakeLibrary:
    """Takes by id, newest first; safe from any thread and beside other processes."""

    def __init__(self, database: Path, takes_dir: Path) -> None:
        self._database = database
        self._takes_dir = takes_dir

    def save(self, take: Take) -> Take:
        """Writes the take as it stands, in place of an earlier state of it: once when it starts, so that a killed
        process leaves a partial take and not nothing, and once when it ends. A mark and a note set meanwhile stay."""
        with transaction(self._database) as db:
            db.execute(_SAVE, _row(take))
        return take

    def list(self, *, search: str = "", favourites: bool = False, limit: int = 50, offset: int = 0) -> list[Take]:
        """Those that have every searched word in text, voice or note, in any case; only favourites where asked for."""
        where, parameters = _where(search, favourites)
        with connection(self._database) as db:
            _teach_fold(db)
            statement = f"SELECT * FROM takes WHERE {where} ORDER BY created DESC, id LIMIT ? OFFSET ?"  # noqa: S608
            return [self._take(row) for row in db.query(statement, [*parameters, limit, offset])]

    def count(self, *, search: str = "", favourites: bool = False) -> int:
        """How many `list` would give without a limit."""
        where, parameters = _where(search, favourites)
        with connection(self._database) as db:
            _teach_fold(db)
            return db.execute(f"SELECT count(*) FROM takes WHERE {where}", parameters).fetchone()[0]  # noqa: S608

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

    def mark(self, identifier: str, *, favourite: bool) -> Take:
        """Makes a take a favourite or an ordinary one again. A favourite never goes because of the bound."""
        return self._set(identifier, "favourite", int(favourite))

    def annotate(self, identifier: str, note: str) -> Take:
        """Keeps a note of up to LONGEST_NOTE characters with a take; a blank one takes it away."""
        cleaned = storable(note).replace("\0", "").strip()
        if len(cleaned) > LONGEST_NOTE:
            raise SettingError("The note", f"{cleaned[:40]}…", f"use at most {LONGEST_NOTE:,} characters.")
        return self._set(identifier, "note", cleaned)

    def _set(self, identifier: str, column: str, value: int | str) -> Take:
        take = self.get(identifier)
        with transaction(self._database) as db:
            db.execute(f"UPDATE takes SET {column} = ? WHERE id = ?", [value, take.id])  # noqa: S608 - our own names
        return self.get(identifier)

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
                "favourite": bool(row["favourite"]),
                "missing": not self.path(row["id"]).is_file(),
            }
        )


def _where(search: str, favourites: bool) -> tuple[str, list[str]]:
    """A condition and its parameters; `folded` is what `_teach_fold` adds."""
    words = fold(storable(search)).split()
    text = "instr(folded(script || char(10) || voice_name || char(10) || note), ?) > 0"
    return " AND ".join(["favourite" if favourites else "1", *[text] * len(words)]), words


def _teach_fold(db: Database) -> None:
    """SQLite's own lower() knows only ASCII."""
    db.conn.create_function("folded", 1, fold, deterministic=True)


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
        "favourite": int(take.favourite),
        "note": storable(take.note),
    }


_COLUMNS = (*(name for name in Take.__dataclass_fields__ if name != "missing"), "num_codebooks", "num_frames")
_WHILE_MADE = ("first_audio_ms", "duration", "realtime_speed", "pcm_digest", "partial", "error")
"""What is known only once it has ended."""
_SAVE = f"""INSERT INTO takes ({", ".join(_COLUMNS)}) VALUES ({", ".join(f":{name}" for name in _COLUMNS)})
    ON CONFLICT (id) DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in _WHILE_MADE)}"""  # noqa: S608
