"""Opens the studio's database: one connection a call, closed after it, at the schema this version knows.

WAL with `synchronous=FULL`: what a call reported as written is there after a killed process and after a power cut.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from filelock import FileLock
from sqlite_utils import Database

from studio.errors import StorageError
from studio.store.schema import MIGRATIONS, VERSION

BUSY_TIMEOUT = 20.0
"""Seconds a call waits for another thread's or process's write."""

_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_REASONS = {
    sqlite3.SQLITE_PERM: "no permission",
    sqlite3.SQLITE_BUSY: "another program keeps the database locked",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_IOERR: "reading or writing failed",
    sqlite3.SQLITE_CORRUPT: "the database is damaged; start the studio again, and it is set aside and built anew",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "the database cannot be opened",
    sqlite3.SQLITE_NOTADB: "the file is not a database",
}


@contextmanager
def connection(path: Path) -> Iterator[Database]:
    """A connection for this thread, migrated and configured; StorageError where the file or disk does not allow it."""
    with storing(path.parent), sentences(path):
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


@contextmanager
def storing(folder: Path) -> Iterator[None]:
    """Turns what the operating system says about the data folder into a StorageError."""
    try:
        yield
    except OSError as error:
        raise StorageError(str(folder), error.strerror or str(error)) from error


@contextmanager
def sentences(path: Path) -> Iterator[None]:
    """SQLite's complaints about the file or the disk become sentences; a wrong statement stays a bug.

    A database that turns out to be damaged is marked, so that the next start looks at all of it.
    """
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code not in _REASONS:
            raise
        if code in _DAMAGE:
            mark_suspect(path)
        raise StorageError(str(path.parent), f"{path.name}: {_REASONS[code]}") from error


def suspect(path: Path) -> Path:
    """The mark of a database in which damage was met."""
    return path.with_name(path.name + ".suspect")


def mark_suspect(path: Path) -> None:
    """Leaves the mark where the folder can be written; the complaint itself is not to be lost over it."""
    with contextlib.suppress(OSError):
        suspect(path).touch()


def check_version(found: int, path: Path) -> None:
    """Refuses a database of a schema that this version does not know."""
    if found > VERSION:
        raise StorageError(str(path.parent), f"{path.name} was written by a newer version of the studio")


@contextmanager
def _immediate(db: Database) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    with db.conn:
        yield


def _migrate(db: Database, path: Path) -> None:
    found = _version(db)
    check_version(found, path)
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
