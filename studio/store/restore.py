"""A backup into the data folder: checked whole in a folder of its own, then put in the place of a library set aside."""

import hashlib
import re
import shutil
import sqlite3
import time
import uuid
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from studio.errors import LibraryInUse
from studio.settings import Settings
from studio.store.archives import MANIFEST, Archive
from studio.store.backup import DATABASE, FORMAT, VERSION
from studio.store.database import connection, storing
from studio.store.restored_database import check_database
from studio.store.strict_fields import Fields

LARGEST_LIBRARY = 2**40
MOST_FILES = 1_000_000
LARGEST_CLIP = 256 * 2**20
SPARE_BYTES = 64 * 2**20
"""Room that must be left on the disk beside the restored library."""

_MEMBER = re.compile(
    rf"{re.escape(MANIFEST)}|{re.escape(DATABASE)}|clips/[0-9a-z][0-9a-z_-]{{0,63}}|takes/[0-9a-f]{{32}}\.wav"
)


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What is in the data folder now."""

    num_voices: int
    num_takes: int
    takes_with_sound: int
    missing: tuple[str, ...]
    """Members that the backup did without, because their files were gone when it was made."""
    set_aside: Path | None
    """Where the library is that was here before; None where there was none."""


def restore(settings: Settings, path: Path) -> Restored:
    """Puts the library of a backup into the data folder; the one that is there is set aside whole, never overwritten.

    ArchiveError where the file is not a whole backup, LibraryInUse where another process has the library open (which
    shows where it keeps the database open, as a running studio does), StorageError where the disk is full. In each of
    these nothing is changed.
    """
    staging = settings.data_dir / f"restoring-{uuid.uuid4().hex[:8]}"
    with storing(settings.data_dir):
        try:
            with _open(path) as archive:
                missing = _unpack(archive, staging, settings.data_dir)
                check_database(
                    staging / DATABASE,
                    {f"clips/{each.name}" for each in _files(staging / "clips")},
                    missing,
                    archive.refusal,
                )
            num_voices, num_takes = _count(staging / DATABASE)
            refuse_in_use(settings.database)
            takes_with_sound = len(_files(staging / "takes"))
            set_aside = _exchange(settings, staging)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return Restored(
        num_voices=num_voices,
        num_takes=num_takes,
        takes_with_sound=takes_with_sound,
        missing=tuple(missing),
        set_aside=set_aside,
    )


def refuse_in_use(database: Path) -> None:
    """LibraryInUse where another connection is open; a database that is too damaged to tell is in nobody's use."""
    if not database.exists():
        return
    try:
        with closing(sqlite3.connect(database, timeout=0.5)) as alone:
            # In this mode SQLite takes the file for itself alone, which fails beside any other open connection.
            alone.execute("PRAGMA locking_mode = EXCLUSIVE")
            alone.execute("SELECT count(*) FROM sqlite_schema").fetchall()
    except sqlite3.DatabaseError as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LibraryInUse(str(database.parent)) from error


def _open(path: Path) -> Archive:
    return Archive(path, may_hold=lambda name: bool(_MEMBER.fullmatch(name)), largest=LARGEST_LIBRARY, most=MOST_FILES)


def _unpack(archive: Archive, staging: Path, data_dir: Path) -> list[str]:
    """Writes every member under `staging`, digests checked; returns the members that the backup did without."""
    fields = Fields(archive.manifest(FORMAT, VERSION), MANIFEST, archive.refusal)
    fields.text("format", longest=40)
    for whole in ("version", "schema"):
        fields.whole(whole, largest=2**31)
    fields.seconds("created")
    missing = list(fields.texts("missing", most=MOST_FILES, longest=128))
    told = fields.mapping("files", most=MOST_FILES)
    fields.done()
    if set(told) != archive.names - {MANIFEST} or DATABASE not in told:
        raise archive.refusal(f"it holds other files than its {MANIFEST} says")
    data_dir.mkdir(parents=True, exist_ok=True)
    needed = sum(archive.size(member) for member in told) + SPARE_BYTES
    if (free := shutil.disk_usage(data_dir).free) < needed:
        raise archive.refusal(f"it needs {needed / 1e6:,.0f} MB of room, and the disk has {free / 1e6:,.0f} MB")
    for member, record in told.items():
        said = Fields(record, f"{MANIFEST}.files", archive.refusal)
        digest, size = said.digest("digest"), said.whole("num_bytes", largest=LARGEST_LIBRARY)
        said.done()
        if size != archive.size(member) or (member.startswith("clips/") and size > LARGEST_CLIP):
            raise archive.refusal(f"{member} has another size than its {MANIFEST} says, or too large a one")
        _write(archive, member, staging / member, digest)
    return missing


def _write(archive: Archive, member: str, target: Path, digest: str) -> None:
    """`member` was matched against the few names that a backup has, so that no name leads out of the folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    found = hashlib.sha256()
    with target.open("xb") as file:
        for block in archive.blocks(member):
            found.update(block)
            file.write(block)
    if found.hexdigest() != digest:
        raise archive.refusal(f"{member} is damaged: its digest is another")


def _count(database: Path) -> tuple[int, int]:
    with connection(database) as db:
        return db["voices"].count, db["takes"].count


def _files(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _exchange(settings: Settings, staging: Path) -> Path | None:
    """Moves the present library aside and the new one in; where a move fails, what was moved goes back."""
    database = settings.database
    beside = [database.with_name(database.name + ending) for ending in ("-wal", "-shm", "-journal", ".suspect")]
    present = [path for path in (database, *beside, settings.clips_dir, settings.takes_dir) if path.exists()]
    aside = settings.data_dir / f"set-aside-{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:4]}"
    moves = [(path, aside / path.name) for path in present]
    new = {DATABASE: database, "clips": settings.clips_dir, "takes": settings.takes_dir}
    moves += [(staging / name, target) for name, target in new.items() if (staging / name).exists()]
    if present:
        aside.mkdir()
    done: list[tuple[Path, Path]] = []
    try:
        for source, target in moves:
            source.rename(target)
            done.append((source, target))
    except OSError:
        for source, target in reversed(done):
            target.rename(source)
        raise
    return aside if present else None
