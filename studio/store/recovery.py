"""A damaged database is set aside, and a new one is built of the last backup and the original clips.

Nothing is overwritten and nothing is deleted: what could not be read stays beside the new one, under another name.
"""

import logging
import re
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from studio.errors import StudioError
from studio.settings import Settings
from studio.store.archives import Archive
from studio.store.backup import DATABASE, FORMAT, VERSION
from studio.store.damage import damage
from studio.store.database import connection, storing, suspect, transaction
from studio.store.restored_database import check_database
from studio.store.voice_records import NewClip, Usage, VoiceDetails, checked
from studio.store.voice_rows import put_clip, put_voice

_OWN_CLIP = re.compile(r"[0-9a-f]{32}")
"""Files of clips that a user gave; built-in ones have other ids and come from the studio itself."""
_MEMBER = re.compile(r"manifest\.json|studio\.db|clips/[0-9a-z][0-9a-z_-]{0,63}|takes/[0-9a-f]{32}\.wav")
_LARGEST = 2**40
_MOST = 1_000_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """What became of a damaged library."""

    reason: str
    set_aside: Path | None
    """Where the damaged database is now; None where the file was gone."""
    backup: Path | None
    from_backup: int
    """Voices that the backup brought back as they were then."""
    from_clips: int
    """Voices made anew of clips that the backup, if there is one, does not know."""
    unlisted_takes: int
    """Files of takes that no row speaks of any more."""

    @property
    def sentence(self) -> str:
        """What happened, where everything is, and what is missing."""
        where = f" It was set aside as {self.set_aside}." if self.set_aside else ""
        told = [f"The library's database could not be used ({self.reason}).{where} A new one was built"]
        told.append(
            f" of the backup {self.backup.name} ({self.from_backup} voices)" if self.backup else " without a backup"
        )
        told.append(f" and of {self.from_clips} original clips." if self.from_clips else ".")
        missing = ["the counters and the codes of clips that were not kept, which are encoded again when they are used"]
        if self.from_clips:
            missing.insert(0, "the names, words, trims and notes of the voices that are called Recovered now")
        if self.unlisted_takes:
            missing.append(f"the list of {self.unlisted_takes} takes, whose sound is still in the takes folder")
        if self.backup:
            missing.append("whatever was changed after that backup")
        return "".join(told) + f" Missing: {'; '.join(missing)}."


def recover(settings: Settings) -> Recovery | None:
    """Builds a new database where the present one is damaged, empty or gone; None where there is nothing to do.

    A database of a newer studio is not damaged. StorageError where the data folder does not allow it.
    """
    if not _reason(settings):
        return None
    with storing(settings.data_dir), FileLock(settings.data_dir / "recovery.lock"):
        reason = _reason(settings)  # another process may have done it by now
        return _rebuild(settings, reason) if reason else None


def _reason(settings: Settings) -> str:
    """Blank where the database is as it should be; then the mark of a suspicion is wiped, too."""
    database = settings.database
    found = damage(database)
    if not found and (not database.exists() or database.stat().st_size == 0) and _own_clips(settings):
        log = database.with_name(database.name + "-wal")
        found = "" if log.exists() and log.stat().st_size else "it is empty or gone, though there are clips"
    if not found and suspect(database).exists():
        with storing(settings.data_dir):
            suspect(database).unlink(missing_ok=True)
    return found


def _rebuild(settings: Settings, reason: str) -> Recovery:
    set_aside = _set_aside(settings.database)
    backup = next((path for path in _backups(settings) if _take_from(settings, path)), None)
    with connection(settings.database) as db:
        known = {row[0] for row in db.execute("SELECT id FROM clips").fetchall()}
        from_backup = db.execute("SELECT count(*) FROM voices WHERE NOT builtin").fetchone()[0]
        takes = {row[0] for row in db.execute("SELECT id FROM takes").fetchall()}
    lost = [path for path in _own_clips(settings) if path.name not in known]
    _make_voices(settings, lost)
    sounds = settings.takes_dir.glob("*.wav") if settings.takes_dir.is_dir() else ()
    recovery = Recovery(
        reason=reason,
        set_aside=set_aside,
        backup=backup,
        from_backup=from_backup,
        from_clips=len(lost),
        unlisted_takes=sum(path.stem not in takes for path in sounds),
    )
    _log.warning("%s", recovery.sentence)
    return recovery


def _set_aside(database: Path) -> Path | None:
    """Renames the file and its log, which belong together; the name it gets has never been used."""
    aside = database.with_name(f"{database.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}-{uuid.uuid4().hex[:4]}")
    found = database.exists()
    for ending in ("-wal", "-shm", ""):
        source = database.with_name(database.name + ending)
        if source.exists():
            source.rename(aside.with_name(aside.name + ending))
    suspect(database).unlink(missing_ok=True)
    return aside if found else None


def _own_clips(settings: Settings) -> list[Path]:
    """Files of clips that users gave, oldest first."""
    if not settings.clips_dir.is_dir():
        return []
    found = [path for path in settings.clips_dir.iterdir() if _OWN_CLIP.fullmatch(path.name)]
    return sorted(found, key=lambda path: (path.stat().st_mtime, path.name))


def _backups(settings: Settings) -> Iterable[Path]:
    """The newest first."""
    found = settings.backups_dir.glob("*.zip") if settings.backups_dir.is_dir() else ()
    return sorted(found, key=lambda path: path.stat().st_mtime, reverse=True)


def _take_from(settings: Settings, path: Path) -> bool:
    """Puts a backup's database in place, and those of its clips that have no file; false where it cannot be used."""
    staged = settings.database.with_name(f"{settings.database.name}.{uuid.uuid4().hex[:8]}.part")
    clips_dir = settings.clips_dir
    try:
        with Archive(
            path, may_hold=lambda name: bool(_MEMBER.fullmatch(name)), largest=_LARGEST, most=_MOST
        ) as archive:
            missing = archive.manifest(FORMAT, VERSION)["missing"]
            _copy(archive, DATABASE, staged)
            in_archive = {name for name in archive.names if name.startswith("clips/")}
            here = {f"clips/{each.name}" for each in clips_dir.iterdir()} if clips_dir.is_dir() else set()
            check_database(staged, in_archive | here, missing, archive.refusal)
            for member in sorted(in_archive - here):
                _copy(archive, member, settings.data_dir / member)
        staged.rename(settings.database)
    except (StudioError, KeyError) as error:
        _log.warning("the backup %s cannot be used: %s", path, error)
        return False
    finally:
        for ending in ("", "-wal", "-shm", ".lock"):
            staged.with_name(staged.name + ending).unlink(missing_ok=True)
    return True


def _copy(archive: Archive, member: str, target: Path) -> None:
    """`member` was matched against the few names that a backup has, so that no name leads out of the folder."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        for block in archive.blocks(member):
            file.write(block)


def _make_voices(settings: Settings, clips: list[Path]) -> None:
    """A voice for each clip, named by number; their files stay where they are."""
    with transaction(settings.database) as db:
        taken = {row[0] for row in db.execute("SELECT folded_name FROM voices").fetchall()}
        numbers = (number for number in range(1, _MOST) if f"recovered {number}" not in taken)
        for path, number in zip(clips, numbers, strict=False):
            details = checked(VoiceDetails(name=f"Recovered {number}"))
            put_voice(db, path.name, details, Usage(created=path.stat().st_mtime), builtin=False)
            put_clip(db, path.name, path.name, NewClip(content=path.read_bytes()))
