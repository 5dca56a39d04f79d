"""Canonical codes by key: memory in front of SQLite, digest checked on reading, first stored value kept for ever.

It knows nothing of clips or engines: who may fill a key, and with what, is `studio.reference`'s business.
"""

import logging
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from studio.store import code_rows, counters, eviction
from studio.store.code_rows import CachedCodes, Provenance
from studio.store.database import connection, transaction
from studio.store.eviction import Eviction
from studio.store.memory import RecentlyUsed
from studio.store.reader import Reader, Version

MEMORY_BYTES = 64 * 2**20
DISK_BYTES = 512 * 2**20
_ENTRY_OVERHEAD = 1024
"""Bytes counted for an entry in memory beside its codes."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Remembered:
    """An entry as it was on disk at some version of the database."""

    entry: CachedCodes
    version: Version


@dataclass(frozen=True, kw_only=True)
class Refilled:
    """A refill: the entry that is stored now, and the digest of the one before, None where there was none."""

    entry: CachedCodes
    digest_before: str | None

    @property
    def changed(self) -> bool:
        return self.digest_before not in (None, self.entry.digest)


class CodeCache:
    """The one home of canonical codes; safe from any thread and beside other processes on the same database.

    Codes on disk are bounded by `disk_bytes`: beyond it the least recently used entries go, and those of saved voices
    stay.
    """

    def __init__(self, path: Path, *, memory_bytes: int = MEMORY_BYTES, disk_bytes: int = DISK_BYTES) -> None:
        self._path = path
        self._memory: RecentlyUsed[_Remembered] = RecentlyUsed(memory_bytes)
        self._batch = counters.Batch(path)
        self._reader = Reader(path)
        self._said_pins = False
        self.disk_bytes = disk_bytes

    def get(self, key: str) -> CachedCodes | None:
        """The entry of a key, counted as a hit with the encode it saved; None where there is none or it is damaged."""
        entry = self._recall(key)
        if entry is not None:
            self.count_use("hits_memory", entry)
            return entry
        entry = self.look(key)
        if entry is not None:
            self.count_use("hits_disk", entry)
        return entry

    def look(self, key: str) -> CachedCodes | None:
        """The entry of a key as it is on disk, not counted; None where there is none or it is damaged."""
        version = self._reader.version()
        row = self._reader.row(code_rows.SELECT, [key])
        entry = None if row is None else code_rows.parse(key, row)
        if entry is not None:
            self._remember(entry, version)
        return entry

    def insert(self, key: str, codes: np.ndarray, provenance: Provenance, *, codec: str) -> CachedCodes:
        """Stores a fill unless the key has a sound entry already; returns what is stored then, which callers must use.

        `codec` is the digest of all key fields that are not the clip's. A damaged row is replaced, and counted as
        repaired where the new codes have the digest it named and as changed where they have not.
        """
        fresh = CachedCodes.of(key, codes, provenance)
        version = self._reader.version()
        with transaction(self._path) as db:
            entry = code_rows.read(db, key)
            if entry is None:
                code_rows.fill(db, fresh, codec)
                entry = fresh
            full = eviction.size(db)[1] > self.disk_bytes
        if entry.digest != fresh.digest:
            _log.warning("another fill of %s gave codes %s; %s is kept", key, fresh.digest, entry.digest)
        self._remember(entry, version)
        if full:
            self._make_room(key)
        return entry

    def replace(self, key: str, codes: np.ndarray, provenance: Provenance, *, codec: str) -> Refilled:
        """Puts other codes in a key's place, which leaves a tombstone; counted as changed where the digest differs.

        Only for a user who asked for it; every process sees the new codes from its next look on.
        """
        fresh = CachedCodes.of(key, codes, provenance)
        with transaction(self._path) as db:
            digest_before = code_rows.replace(db, fresh, codec)
        return Refilled(entry=fresh, digest_before=digest_before)

    def evict(self, bound: int | None = None) -> Eviction:
        """Removes least recently used entries until the rest fits into `bound` bytes, else into the cache's own bound.
        Entries of saved voices stay."""
        self._batch.write()
        with transaction(self._path) as db:
            return eviction.evict(db, self.disk_bytes if bound is None else bound)

    def stored_keys(self) -> list[tuple[str, str]]:
        """Key and codec of every entry, in the order of the keys."""
        with connection(self._path) as db:
            return db.execute("SELECT key, codec FROM codes ORDER BY key").fetchall()

    def find_source(self, source: str, *, codec: str, trim: str) -> str | None:
        """The key that source bytes (by SHA-256) had under this codec and trim; None where they were never seen."""
        row = self._reader.row(
            "SELECT key FROM sources WHERE source = ? AND codec = ? AND trim = ?", [source, codec, trim]
        )
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
            entries, num_bytes = eviction.size(db)
            return counters.stored(db) | {"entries": entries, "bytes": num_bytes}

    def close(self) -> None:
        """Writes the counts that are still in memory and lets go of the database; happens at exit by itself."""
        self._batch.write()
        self._reader.close()

    def _recall(self, key: str) -> CachedCodes | None:
        """The entry in memory, where the one on disk is still that one."""
        remembered = self._memory.get(key)
        if remembered is None:
            return None
        version = self._reader.version()
        if remembered.version != version:
            row = self._reader.row("SELECT CAST(digest AS BLOB) FROM codes WHERE key = ?", [key])
            if row is None or row[0] != remembered.entry.digest.encode():
                return None
            self._remember(remembered.entry, version)
        return remembered.entry

    def _remember(self, entry: CachedCodes, version: Version) -> None:
        """`version` was asked for before the entry was read, so that no later write can be missed."""
        self._memory.put(entry.key, _Remembered(entry, version), entry.codes.nbytes + _ENTRY_OVERHEAD)

    def _make_room(self, spare: str) -> None:
        self._batch.write()
        with transaction(self._path) as db:
            done = eviction.evict(db, self.disk_bytes, spare=spare)
        if done.above_bound and not self._said_pins:
            self._said_pins = True
            _log.warning(
                "%d entries of saved voices have %d bytes, more than the bound of %d; they are kept",
                done.pinned, done.pinned_bytes, done.bound,
            )  # fmt: skip
