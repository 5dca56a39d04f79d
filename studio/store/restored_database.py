"""Whether a database that came from elsewhere is a library of ours: whole, of our own schema, of plain content."""

import re
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from sqlite_utils import Database

from studio.errors import StorageError
from studio.store.database import connection
from studio.store.schema import MIGRATIONS, VERSION

_CLIP = re.compile(r"[0-9a-z][0-9a-z_-]{0,63}")
_TAKE = re.compile(r"[0-9a-f]{32}")


def check_database(path: Path, clips: set[str], missing: Sequence[str], refusal: Callable[[str], Exception]) -> None:
    """Raises what `refusal` makes of the reason. An older schema is migrated in place, so the file must be a copy.

    `clips` are the members that there are files for, `missing` those that are known to have none.
    """
    try:
        _check_file(path, refusal)
        with connection(path) as db:
            _check_schema(db, refusal)
            _read_all(db)
            _check_rows(db, clips | set(missing), refusal)
    except (sqlite3.DatabaseError, UnicodeDecodeError, StorageError) as error:
        raise refusal(f"its database is damaged ({error})") from error


def _check_file(path: Path, refusal: Callable[[str], Exception]) -> None:
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("PRAGMA trusted_schema = OFF")
        version = raw.execute("PRAGMA user_version").fetchone()[0]
        if not 1 <= version <= VERSION:
            raise refusal(f"its database is of version {version}, and this studio reads 1 to {VERSION}")
        if raw.execute("SELECT 1 FROM sqlite_schema WHERE type IN ('trigger', 'view')").fetchone():
            raise refusal("its database holds more than tables")
        if raw.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
            raise refusal("its database is damaged")
        if raw.execute("PRAGMA foreign_key_check").fetchone():
            raise refusal("its database has rows that belong to nothing")


def _check_schema(db: Database, refusal: Callable[[str], Exception]) -> None:
    """The statements must be those of our own migrations: a table may carry expressions that run when it is used."""
    with Database(memory=True) as fresh:
        MIGRATIONS.apply(fresh)
        if _statements(db) != _statements(fresh):
            raise refusal("its database has other tables than a library of this studio")


def _statements(db: Database) -> dict[str, str]:
    return dict(db.execute("SELECT name, coalesce(sql, '') FROM sqlite_schema").fetchall())


def _read_all(db: Database) -> None:
    """Text that is no UTF-8 passes SQLite's own check, and raises when it is read."""
    for table in ("voices", "clips", "clip_codes", "takes", "codes", "sources", "tombstones", "counters"):
        for _ in db.execute(f"SELECT * FROM {table}"):  # noqa: S608 - our own names
            pass


def _check_rows(db: Database, known: set[str], refusal: Callable[[str], Exception]) -> None:
    clips = [row[0] for row in db.execute("SELECT id FROM clips").fetchall()]
    takes = [row[0] for row in db.execute("SELECT id FROM takes").fetchall()]
    if not all(_CLIP.fullmatch(each) for each in clips) or not all(_TAKE.fullmatch(each) for each in takes):
        raise refusal("its database has an id that is none")
    if any(f"clips/{each}" not in known for each in clips):
        raise refusal("its database speaks of a clip that is not in it")
    lost = "SELECT 1 FROM voices WHERE reference_clip NOT IN (SELECT id FROM clips WHERE voice_id = voices.id)"
    for doubt in (
        lost,
        "SELECT 1 FROM voices WHERE NOT json_valid(tags)",
        "SELECT 1 FROM takes WHERE NOT json_valid(options)",
    ):
        if db.execute(doubt).fetchone():
            raise refusal("its database has a row that cannot be used")
