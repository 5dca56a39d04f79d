"""Counts what the cache does, and writes the counts in batches: never a write for a hit.

A killed process loses at most its last batch.
"""

import logging
import threading
import time
import weakref
from collections import Counter
from pathlib import Path

from sqlite_utils import Database

from studio.errors import StorageError
from studio.store.database import transaction

NAMES: tuple[str, ...] = (
    "hits_memory",
    "hits_disk",
    "misses",
    "merged",
    "fills",
    "failures",
    "repairs",
    "changes",
    "evictions",
    "encode_seconds",
    "saved_seconds",
)
BATCH_EVENTS = 1000
BATCH_SECONDS = 15.0

_log = logging.getLogger(__name__)


def add(db: Database, name: str, amount: float) -> None:
    """Adds to a stored counter, inside the caller's transaction."""
    db.execute(
        """INSERT INTO counters (name, value) VALUES (?, ?)
           ON CONFLICT (name) DO UPDATE SET value = value + excluded.value""",
        [name, amount],
    )


def stored(db: Database) -> dict[str, float]:
    """Every counter as it is on disk; zero where nothing was counted yet. Only seconds have fractions."""
    values = dict.fromkeys(NAMES, 0.0) | dict(db.execute("SELECT name, value FROM counters").fetchall())
    return {name: value if name.endswith("seconds") else int(value) for name, value in values.items()}


class Batch:
    """Counts and uses that are not written yet; safe from any thread; written at exit too."""

    def __init__(self, path: Path) -> None:
        self._unwritten = _Unwritten(path)
        weakref.finalize(self, self._unwritten.write)

    def count(self, name: str, amount: float = 1.0) -> None:
        self._unwritten.note(name, amount)

    def used(self, key: str) -> None:
        """Notes one use of a cache entry, now."""
        self._unwritten.use(key)

    def write(self) -> None:
        """Writes what there is; where that fails it says so in the log and keeps the counts for the next time."""
        self._unwritten.write()


class _Unwritten:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._counts = dict.fromkeys(NAMES, 0.0)
        self._uses: Counter[str] = Counter()
        self._last_used: dict[str, float] = {}
        self._events = 0
        self._written = time.monotonic()

    def note(self, name: str, amount: float) -> None:
        with self._lock:
            self._counts[name] += amount
            self._events += 1
        self._write_when_due()

    def use(self, key: str) -> None:
        with self._lock:
            self._uses[key] += 1
            self._last_used[key] = time.time()

    def write(self) -> None:
        with self._lock:
            counts, uses, last_used = self._counts, self._uses, self._last_used
            self._counts, self._uses, self._last_used = dict.fromkeys(NAMES, 0.0), Counter(), {}
            self._events = 0
            self._written = time.monotonic()
        if not any(counts.values()) or not self._path.exists():
            return
        try:
            self._store(counts, uses, last_used)
        except StorageError as error:
            _log.warning("cache counters are not written yet: %s", error)
            with self._lock:
                for name, amount in counts.items():
                    self._counts[name] += amount
                self._uses.update(uses)
                self._last_used = last_used | self._last_used

    def _write_when_due(self) -> None:
        if self._events >= BATCH_EVENTS or time.monotonic() - self._written >= BATCH_SECONDS:
            self.write()

    def _store(self, counts: dict[str, float], uses: Counter[str], last_used: dict[str, float]) -> None:
        with transaction(self._path) as db:
            for name, amount in counts.items():
                if amount:
                    add(db, name, amount)
            db.conn.executemany(
                "UPDATE codes SET uses = uses + ?, last_used = max(last_used, ?) WHERE key = ?",
                [(count, last_used[key], key) for key, count in uses.items()],
            )
