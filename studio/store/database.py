"""Opens the studio's database: one connection a call, closed after it, at the schema this version knows.

WAL with `synchronous=FULL`: what a call reported as written is there after a killed process and after a power cut.
"""

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from filelock import FileLock
from sqlite_utils import Database

from studio.errors import StorageError
from studio.store.schema import MIGRATIONS, VERSION

BUSY_TIMEOUT = 20.0
"""Seconds a call waits for another thread's or process's write."""

_REASONS = {
    sqlite3.SQLITE_PERM: "no permission",
    sqlite3.SQLITE_BUSY: "another program keeps the database locked",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_IOERR: "reading or writing failed",
    sqlite3.SQLITE_CORRUPT: "the database is damaged",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "the database cannot be opened",
    sqlite3.SQLITE_NOTADB: "the file is not a database",
}


@contextmanager
def connection(path: Path) -> Iterator[Database]:
    """A connection for this thread, migrated and configured; StorageError where the file or disk does not allow it."""
    with storing(path.parent), _sentences(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path, timeout=BUSY_TIMEOUT)) as connected:
            db = Database(connected)
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            _migrate(db, path)
            yield db


@contextmanager
def transaction(path: Path) -> Iterator[Database]:
    """A connection inside a write transaction that holds the lock from its start, so that nothing it reads can change
    before it writes; an exception undoes all of it."""
    with connection(path) as db, _immediate(db):
        yield db


class KeptOpen:
    """One idle connection for the life of its owner, so that the calls beside it never are the last to close, which
    makes SQLite copy the log back: 0.3 ms a read instead of 1.2, one sync a write instead of three."""

    def __init__(self, path: Path) -> None:
        with connection(path):
            kept = sqlite3.connect(path, check_same_thread=False)
            kept.execute("SELECT 1 FROM sqlite_schema").close()
        self._close = weakref.finalize(self, kept.close)

    def close(self) -> None:
        self._close()


@contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Turns what the operating system says about the data folder into a StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(str(folder), error.strerror or str(error)) from error


@contextmanager
def _immediate(db: Database) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    with db.conn:
        yield


@contextmanager
def _sentences(path: Path) -> Iterator[None]:
    """SQLite's complaints about the file or the disk become sentences; a wrong statement stays a bug."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        reason = _REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF)
        if reason is None:
            raise
        raise StorageError(str(path.parent), f"{path.name}: {reason}") from error


def _migrate(db: Database, path: Path) -> None:
    found = _version(db)
    if found > VERSION:
        raise StorageError(str(path.parent), f"{path.name} was written by a newer version of the studio")
    if found == VERSION:
        return
    # The file lock, because a switch to WAL does not wait for other connections as a write does.
    with FileLock(f"{path}.lock"):
        db.enable_wal()
        with _immediate(db):
            if _version(db) < VERSION:
                MIGRATIONS.apply(db)
                db.execute(f"PRAGMA user_version = {VERSION}")


def _version(db: Database) -> int:
    return db.execute("PRAGMA user_version").fetchone()[0]
