"""Canonical codes by key: memory in front of SQLite, digest checked on reading, first stored value kept for ever.

It knows nothing of clips or engines: who may fill a key, and with what, is `studio.reference`'s business.
"""

import json
import logging
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from sqlite_utils import Database

from studio.store import counters, packed_codes
from studio.store.database import KeptOpen, connection, transaction
from studio.store.memory import RecentlyUsed

MEMORY_BYTES = 64 * 2**20
_ENTRY_OVERHEAD = 1024
"""Bytes counted for an entry in memory beside its codes."""

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


class CodeCache:
    """The one home of canonical codes; safe from any thread and beside other processes on the same database."""

    def __init__(self, path: Path, *, memory_bytes: int = MEMORY_BYTES) -> None:
        self._path = path
        self._memory: RecentlyUsed[CachedCodes] = RecentlyUsed(memory_bytes)
        self._batch = counters.Batch(path)
        self._keep_open = KeptOpen(path)

    def get(self, key: str) -> CachedCodes | None:
        """The entry of a key, counted as a hit with the encode it saved; None where there is none or it is damaged."""
        entry = self._memory.get(key)
        if entry is not None:
            self.count_use("hits_memory", entry)
            return entry
        entry = self.look(key)
        if entry is not None:
            self.count_use("hits_disk", entry)
        return entry

    def look(self, key: str) -> CachedCodes | None:
        """The entry of a key as it is on disk, not counted; None where there is none or it is damaged."""
        with connection(self._path) as db:
            entry = _read(db, key)
        if entry is not None:
            self._remember(entry)
        return entry

    def insert(self, key: str, codes: np.ndarray, provenance: Provenance, *, codec: str) -> CachedCodes:
        """Stores a fill unless the key has a sound entry already; returns what is stored then, which callers must use.

        `codec` is the digest of all key fields that are not the clip's. A damaged row is replaced, and counted as
        repaired where the new codes have the digest it named and as changed where they have not.
        """
        num_codebooks, num_frames = codes.shape
        packed = packed_codes.pack(codes)
        fresh = CachedCodes(
            key=key,
            codes=packed_codes.unpack(packed, num_codebooks, num_frames),
            digest=packed_codes.digest(packed, num_codebooks, num_frames),
            provenance=provenance,
        )
        with transaction(self._path) as db:
            entry = _read(db, key)
            if entry is None:
                _store(db, fresh, codec)
                entry = fresh
        if entry.digest != fresh.digest:
            _log.warning("another fill of %s gave codes %s; %s is kept", key, fresh.digest, entry.digest)
        self._remember(entry)
        return entry

    def find_source(self, source: str, *, codec: str, trim: str) -> str | None:
        """The key that source bytes (by SHA-256) had under this codec and trim; None where they were never seen."""
        with connection(self._path) as db:
            row = db.execute(
                "SELECT key FROM sources WHERE source = ? AND codec = ? AND trim = ?", [source, codec, trim]
            ).fetchone()
        return None if row is None else row[0]

    def add_source(self, source: str, key: str, *, codec: str, trim: str) -> None:
        """Notes which key source bytes lead to, so that the next upload of them is not decoded."""
        with transaction(self._path) as db:
            db.execute(
                "INSERT OR REPLACE INTO sources (source, codec, trim, key) VALUES (?, ?, ?, ?)",
                [source, codec, trim, key],
            )

    def count(self, name: str) -> None:
        """Counts one event that only the caller can see: a miss, a failure."""
        self._batch.count(name)

    def count_use(self, name: str, entry: CachedCodes) -> None:
        """Counts a use that cost no encode under `name`, and the seconds it saved."""
        self._batch.used(entry.key)
        self._batch.count(name)
        self._batch.count("saved_seconds", entry.provenance.encode_seconds)

    def counters(self) -> dict[str, float]:
        """All counters up to now, with `entries` and `bytes` (of codes) as they are on disk."""
        self._batch.write()
        with connection(self._path) as db:
            entries, num_bytes = db.execute("SELECT count(*), coalesce(sum(length(codes)), 0) FROM codes").fetchone()
            return counters.stored(db) | {"entries": entries, "bytes": num_bytes}

    def close(self) -> None:
        """Writes the counts that are still in memory and lets go of the database; happens at exit by itself."""
        self._batch.write()
        self._keep_open.close()

    def _remember(self, entry: CachedCodes) -> None:
        self._memory.put(entry.key, entry, entry.codes.nbytes + _ENTRY_OVERHEAD)


def _read(db: Database, key: str) -> CachedCodes | None:
    # Text as bytes, because damaged text must read as a damaged row and not raise.
    row = db.execute(
        """SELECT codes, num_codebooks, num_frames, CAST(digest AS BLOB), CAST(provenance AS BLOB)
           FROM codes WHERE key = ?""",
        [key],
    ).fetchone()
    if row is None:
        return None
    try:
        return _entry(key, *row)
    except ValueError as error:
        _log.warning("the stored codes of %s are damaged: %s", key, error)
        return None


def _entry(
    key: str, packed: bytes, num_codebooks: int, num_frames: int, digest: bytes, provenance: bytes
) -> CachedCodes:
    """The entry that a row holds; ValueError where its parts do not fit each other."""
    codes = packed_codes.unpack(packed, num_codebooks, num_frames)
    found = packed_codes.digest(packed, num_codebooks, num_frames)
    if found.encode() != digest:
        raise ValueError(f"the codes' digest is {found}, not the one in the row")
    return CachedCodes(key=key, codes=codes, digest=found, provenance=Provenance.from_json(provenance))


def _store(db: Database, fresh: CachedCodes, codec: str) -> None:
    """Writes a fill in place of nothing or of a damaged row, and counts it in the same transaction."""
    expected = db.execute(
        """SELECT CAST(digest AS BLOB), 'repairs' FROM codes WHERE key = ?1
           UNION ALL SELECT CAST(digest AS BLOB), '' FROM tombstones WHERE key = ?1""",
        [fresh.key],
    ).fetchone()
    if expected is not None:
        _compare(db, fresh, *expected)
    num_codebooks, num_frames = fresh.codes.shape
    provenance = fresh.provenance.to_json()
    db.execute(
        """INSERT OR REPLACE INTO codes
           (key, codec, codes, num_codebooks, num_frames, digest, provenance, last_used, uses)
           VALUES (?, ?, ?, ?, ?, ?, ?, ?, 0)""",
        [fresh.key, codec, fresh.codes.tobytes(), num_codebooks, num_frames, fresh.digest, provenance, time.time()],
    )
    counters.add(db, "fills", 1)
    counters.add(db, "encode_seconds", fresh.provenance.encode_seconds)


def _compare(db: Database, fresh: CachedCodes, expected: bytes, counter: str) -> None:
    """Counts a repair or a change against the digest that the key had before; a changed one leaves a tombstone."""
    if fresh.digest.encode() == expected:
        if counter:
            counters.add(db, counter, 1)
        return
    _log.warning("%s had codes %r and is filled with %s now", fresh.key, expected, fresh.digest)
    counters.add(db, "changes", 1)
    db.execute(
        """INSERT OR REPLACE INTO tombstones (key, digest, provenance, retired)
           SELECT key, digest, provenance, ? FROM codes WHERE key = ?""",
        [time.time(), fresh.key],
    )
