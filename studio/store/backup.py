"""The whole library in one file: the database through SQLite's backup call, and the files beside it.

Version 1 is a zip of `studio.db`, `clips/<id>`, where asked for `takes/<id>.wav`, and last `manifest.json` with size
and digest of each.
"""

import json
import sqlite3
import time
import uuid
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studio.settings import Settings
from studio.store.archives import MANIFEST, ArchiveWriter
from studio.store.clip_files import ClipFiles
from studio.store.database import connection, sentences, storing
from studio.store.schema import VERSION as SCHEMA
from studio.store.takes import TakeLibrary

FORMAT, VERSION = "solo-studio library", 1
DATABASE = "studio.db"


@dataclass(frozen=True, kw_only=True)
class BackedUp:
    """What a backup holds."""

    path: Path
    num_bytes: int
    num_voices: int
    num_clips: int
    num_takes: int
    """Rows; their sound is in it where `takes_with_sound` says so."""
    takes_with_sound: int
    missing: tuple[str, ...]
    """Members whose files are not in the data folder, or went while the backup was made."""


def back_up(settings: Settings, output: Path, *, take_sound: bool) -> BackedUp:
    """Writes the library as it is now, also while a studio runs and writes; the file is whole or not there.

    StorageError where the data folder or the place of the file does not allow it.
    """
    with storing(output.parent):
        unfinished = output.with_name(f".{output.name}.{uuid.uuid4().hex[:8]}.part")
        snapshot = unfinished.with_suffix(".db")
        unfinished.touch(exist_ok=False)
        try:
            copy_database(settings.database, snapshot)
            done = _write(settings, snapshot, unfinished, take_sound=take_sound)
            unfinished.replace(output)
        finally:
            unfinished.unlink(missing_ok=True)
            snapshot.unlink(missing_ok=True)
        return BackedUp(path=output, num_bytes=output.stat().st_size, **done)


def copy_database(database: Path, target: Path) -> None:
    """Copies a database that may be in use into a single new file."""
    with connection(database) as db, sentences(target), closing(sqlite3.connect(target)) as copy:
        db.conn.backup(copy)


def _write(settings: Settings, snapshot: Path, unfinished: Path, *, take_sound: bool) -> dict[str, Any]:
    clips, takes, num_voices = _rows(snapshot)
    clip_files, take_files = ClipFiles(settings.clips_dir), TakeLibrary(settings.database, settings.takes_dir)
    with unfinished.open("wb") as file, closing(ArchiveWriter(file)) as archive:
        digest, size = archive.add_file(DATABASE, snapshot)
        files = {DATABASE: {"digest": digest, "num_bytes": size}}
        wanted = {f"clips/{each}": clip_files.path(each) for each in clips}
        if take_sound:
            wanted |= {f"takes/{each}.wav": take_files.path(each) for each in takes}
        missing = _add_files(archive, wanted.items(), files)
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "schema": SCHEMA,
            "created": time.time(),
            "files": files,
            "missing": missing,
        }
        archive.add(MANIFEST, json.dumps(manifest).encode(), squeeze=True)
    return {
        "num_voices": num_voices,
        "num_clips": sum(name.startswith("clips/") for name in files),
        "num_takes": len(takes),
        "takes_with_sound": sum(name.startswith("takes/") for name in files),
        "missing": tuple(missing),
    }


def _rows(snapshot: Path) -> tuple[list[str], list[str], int]:
    """Ids of clips and of takes, and the number of voices, as they are in the copy."""
    with closing(sqlite3.connect(snapshot)) as db:
        clips = [row[0] for row in db.execute("SELECT id FROM clips ORDER BY id")]
        takes = [row[0] for row in db.execute("SELECT id FROM takes ORDER BY id")]
        return clips, takes, db.execute("SELECT count(*) FROM voices").fetchone()[0]


def _add_files(
    archive: ArchiveWriter, wanted: Iterable[tuple[str, Path]], files: dict[str, dict[str, Any]]
) -> list[str]:
    """Copies what is there and notes digest and size in `files`; returns the members whose file is not."""
    missing = []
    for member, path in wanted:
        if path.is_file():
            digest, size = archive.add_file(member, path)
            files[member] = {"digest": digest, "num_bytes": size}
        else:
            missing.append(member)
    return missing
