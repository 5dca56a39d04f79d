"""Whether a database can still be read, told in milliseconds at every start and in full where there is a reason to."""

import sqlite3
from contextlib import closing
from pathlib import Path

from studio.store.database import BUSY_TIMEOUT, suspect

READ_WHOLE = 16 * 2**20
"""Bytes up to which a database is read whole at every start; a larger one only where damage was met in it."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def damage(database: Path) -> str:
    """What is wrong with the file; blank where nothing is, or only its place or another program is in the way."""
    if not database.is_file():
        return ""
    whole = database.stat().st_size <= READ_WHOLE or suspect(database).exists()
    try:
        with closing(sqlite3.connect(database, timeout=BUSY_TIMEOUT)) as raw:
            return _read(raw, whole=whole)
    except sqlite3.DatabaseError as error:
        return str(error) if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED else ""


def _read(raw: sqlite3.Connection, *, whole: bool) -> str:
    """Reads all pages, or else a row of every table, which fails where the file was cut short."""
    if whole:
        found = raw.execute("PRAGMA quick_check(1)").fetchall()[0][0]
        return "" if found == "ok" else found
    for (table,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        raw.execute(f'SELECT * FROM "{table}" LIMIT 1').fetchall()  # noqa: S608 - names from the file itself, quoted
    return ""
