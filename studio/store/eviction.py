"""The bound on what the cache keeps on disk: the least recently used entries go, those of saved voices stay."""

from dataclasses import dataclass

from sqlite_utils import Database

from studio.store import code_rows, counters


@dataclass(frozen=True, kw_only=True)
class Eviction:
    """What an eviction did and what is left, in entries and bytes of codes."""

    evicted: int
    freed: int
    """Bytes."""
    bound: int
    """Bytes."""
    entries: int
    bytes: int
    pinned: int
    """Entries among them that a saved voice uses; these stay, whatever the bound."""
    pinned_bytes: int

    @property
    def above_bound(self) -> int:
        """Bytes of pinned entries that the bound has no room for."""
        return max(self.pinned_bytes - self.bound, 0)


_NUM_BYTES = "2 * num_codebooks * num_frames"
_PINNED = "key IN (SELECT key FROM clip_codes)"


def size(db: Database) -> tuple[int, int]:
    """Entries and bytes of codes on disk, read from an index alone."""
    return db.execute(f"SELECT count(*), coalesce(sum({_NUM_BYTES}), 0) FROM codes").fetchone()  # noqa: S608


def evict(db: Database, bound: int, *, spare: str = "") -> Eviction:
    """Removes least recently used entries until the rest fits into `bound` bytes; each leaves a tombstone.

    Entries of saved voices and the one named `spare` stay. Inside the caller's write transaction.
    """
    entries, num_bytes = size(db)
    keys, freed = _oldest(db, num_bytes - bound, spare)
    code_rows.bury(db, keys)
    db.conn.executemany("DELETE FROM codes WHERE key = ?", [(key,) for key in keys])
    if keys:
        counters.add(db, "evictions", len(keys))
    pinned, pinned_bytes = db.execute(
        f"SELECT count(*), coalesce(sum({_NUM_BYTES}), 0) FROM codes WHERE {_PINNED}"  # noqa: S608
    ).fetchone()
    return Eviction(
        evicted=len(keys),
        freed=freed,
        bound=bound,
        entries=entries - len(keys),
        bytes=num_bytes - freed,
        pinned=pinned,
        pinned_bytes=pinned_bytes,
    )


def _oldest(db: Database, excess: int, spare: str) -> tuple[list[str], int]:
    """Keys that make room for `excess` bytes, the longest unused first, and the bytes they have."""
    keys: list[str] = []
    freed = 0
    if excess <= 0:
        return keys, freed
    for key, num_bytes in db.execute(
        f"SELECT key, {_NUM_BYTES} FROM codes WHERE NOT {_PINNED} AND key != ? ORDER BY last_used",  # noqa: S608
        [spare],
    ):
        keys.append(key)
        freed += num_bytes
        if freed >= excess:
            break
    return keys, freed
