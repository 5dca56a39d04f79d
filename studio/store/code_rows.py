"""Canonical codes as rows: read with their digest checked, written with what they stand for now counted beside them.

Every function works inside its caller's transaction.
"""

import json
import logging
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sqlite_utils import Database

from studio.store import counters, packed_codes

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """Where and when an entry was filled, beside the value and never in its key."""

    device: str
    torch_version: str
    cuda_version: str | None
    num_threads: int
    """Intra-op threads, read back in the thread that encoded."""
    encode_seconds: float
    filled: float
    """Seconds since 1970."""
    codec_id: str
    recipe: str

    @classmethod
    def from_json(cls, text: bytes) -> "Provenance":
        """ValueError where the text is not what `to_json` wrote."""
        fields = json.loads(text)
        if not isinstance(fields, dict) or set(fields) != set(cls.__dataclass_fields__):
            raise ValueError("provenance with other fields")
        return cls(**fields)

    def to_json(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)


@dataclass(frozen=True, kw_only=True)
class CachedCodes:
    """One entry: read-only int16 codes `(num_codebooks, num_frames)`, their digest and where they come from."""

    key: str
    codes: np.ndarray
    digest: str
    provenance: Provenance

    @classmethod
    def of(cls, key: str, codes: np.ndarray, provenance: Provenance) -> "CachedCodes":
        """A fill's entry, whose codes are a copy; ValueError where they are not codes."""
        packed = packed_codes.pack(codes)
        return cls(
            key=key,
            codes=packed_codes.unpack(packed, *codes.shape),
            digest=packed_codes.digest(packed, *codes.shape),
            provenance=provenance,
        )


# Text as bytes, because damaged text must read as a damaged row and not raise.
SELECT = """SELECT codes, num_codebooks, num_frames, CAST(digest AS BLOB), CAST(provenance AS BLOB)
            FROM codes WHERE key = ?"""
"""What `parse` takes."""


def read(db: Database, key: str) -> CachedCodes | None:
    """The entry of a key; None where there is none or it is damaged."""
    row = db.execute(SELECT, [key]).fetchone()
    return None if row is None else parse(key, row)


def parse(key: str, row: Sequence[Any]) -> CachedCodes | None:
    """The entry that a row holds; None, said in the log, where its parts do not fit each other."""
    try:
        return _entry(key, *row)
    except ValueError as error:
        _log.warning("the stored codes of %s are damaged: %s", key, error)
        return None


def fill(db: Database, fresh: CachedCodes, codec: str) -> None:
    """Writes a fill in place of nothing or of a damaged row.

    Counted as repaired where the codes have the digest that the damaged row names, and as changed where they have not
    that of the row or of the tombstone.
    """
    row = _digest(db, "codes", fresh.key)
    expected = _digest(db, "tombstones", fresh.key) if row is None else row
    if expected not in (None, fresh.digest.encode()):
        _log.warning("%s had codes %r and is filled with %s now", fresh.key, expected, fresh.digest)
        counters.add(db, "changes", 1)
        bury(db, [fresh.key])
    elif row is not None:
        counters.add(db, "repairs", 1)
    _write(db, fresh, codec)


def replace(db: Database, fresh: CachedCodes, codec: str) -> str | None:
    """Writes a refill, which leaves a tombstone of what was there, and returns the digest that this had."""
    before = _digest(db, "codes", fresh.key)
    bury(db, [fresh.key])
    if before not in (None, fresh.digest.encode()):
        _log.warning("%s had codes %r and was refilled with %s", fresh.key, before, fresh.digest)
        counters.add(db, "changes", 1)
    _write(db, fresh, codec)
    return None if before is None else before.decode(errors="replace")


def bury(db: Database, keys: Sequence[str]) -> None:
    """Leaves a tombstone for each of these entries; the rows stay."""
    db.conn.executemany(
        """INSERT OR REPLACE INTO tombstones (key, digest, provenance, retired)
           SELECT key, digest, provenance, ? FROM codes WHERE key = ?""",
        [(time.time(), key) for key in keys],
    )


def _entry(
    key: str, packed: bytes, num_codebooks: int, num_frames: int, digest: bytes, provenance: bytes
) -> CachedCodes:
    """ValueError where the parts do not fit."""
    codes = packed_codes.unpack(packed, num_codebooks, num_frames)
    found = packed_codes.digest(packed, num_codebooks, num_frames)
    if found.encode() != digest:
        raise ValueError(f"the codes' digest is {found}, not the one in the row")
    return CachedCodes(key=key, codes=codes, digest=found, provenance=Provenance.from_json(provenance))


def _digest(db: Database, table: str, key: str) -> bytes | None:
    row = db.execute(f"SELECT CAST(digest AS BLOB) FROM {table} WHERE key = ?", [key]).fetchone()  # noqa: S608
    return None if row is None else row[0]


def _write(db: Database, fresh: CachedCodes, codec: str) -> None:
    num_codebooks, num_frames = fresh.codes.shape
    provenance = fresh.provenance.to_json()
    db.execute(
        """INSERT OR REPLACE INTO codes
           (key, codec, codes, num_codebooks, num_frames, digest, provenance, last_used, uses)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, coalesce((SELECT uses FROM codes WHERE key = ?), 0))""",
        [
            fresh.key, codec, fresh.codes.tobytes(), num_codebooks, num_frames, fresh.digest, provenance,
            time.time(), fresh.key,
        ],
    )  # fmt: skip
    counters.add(db, "fills", 1)
    counters.add(db, "encode_seconds", fresh.provenance.encode_seconds)
