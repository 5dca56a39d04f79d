"""A library in one file and back: while it is in use, whole on the other side, hostile files refused."""

import hashlib
import json
import shutil
import sqlite3
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bundle_studio import DETAILS, Studio, members, told, zipped
from sqlite_utils import Database
from test_store_takes import new_take

from studio.errors import ArchiveError, LibraryInUse, StudioError
from studio.settings import Settings
from studio.store.backup import back_up
from studio.store.database import connection
from studio.store.restore import restore
from studio.store.schema import MIGRATIONS
from studio.store.voices import VoiceLibrary


@pytest.fixture
def here(tmp_path: Path) -> Studio:
    """A library with a voice of two clips and a take."""
    studio = Studio(tmp_path / "here")
    studio.add_rich()
    take = studio.takes.save(new_take(note="Keep."))
    studio.takes.path(take.id).write_bytes(b"RIFF sound")
    return studio


@pytest.fixture
def there(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "there")


def saved(studio: Studio, *, take_sound: bool = True) -> Path:
    back_up(Settings(data_dir=studio.folder), studio.folder.parent / "all.zip", take_sound=take_sound)
    return studio.folder.parent / "all.zip"


def contents(folder: Path) -> dict[str, Any]:
    """Rows and files of a library."""
    with connection(folder / "studio.db") as db:
        tables = ("voices", "clips", "clip_codes", "codes", "takes", "sources", "tombstones")
        rows = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in tables}  # noqa: S608
    files = {path.name: path.read_bytes() for part in ("clips", "takes") for path in (folder / part).glob("*")}
    return rows | {"files": files}


def test_a_backup_restored_elsewhere_is_equal(here: Studio, there: Settings) -> None:
    restored = restore(there, saved(here))
    assert contents(there.data_dir) == contents(here.folder)
    assert (restored.num_voices, restored.num_takes, restored.takes_with_sound) == (1, 1, 1)
    assert restored.set_aside is None
    with connection(there.database) as db:
        assert db.journal_mode == "wal"
    assert sorted(path.name for path in there.data_dir.iterdir()) == ["clips", "studio.db", "takes"]
    again = Studio(there.data_dir)
    (voice,) = again.voices.list()
    assert again.desk.from_voice(voice, again.voices).outcome == "hit"


def test_without_their_sound_the_takes_keep_their_rows(here: Studio, there: Settings) -> None:
    restored = restore(there, saved(here, take_sound=False))
    assert (restored.num_takes, restored.takes_with_sound) == (1, 0)
    assert contents(there.data_dir)["takes"] == contents(here.folder)["takes"]


def test_a_backup_is_whole_while_others_write(here: Studio, there: Settings) -> None:
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            here.voices.touch(here.voices.list()[0].id)
            here.takes.remove(here.takes.save(new_take()).id)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        backups = [saved(here) for _ in range(3)]
    finally:
        stop.set()
        writer.join()
    assert restore(there, backups[-1]).num_voices == 1


def test_a_clip_whose_file_is_gone_is_named_and_the_rest_is_saved(here: Studio, there: Settings) -> None:
    (voice,) = here.voices.list()
    (here.folder / "clips" / voice.clip_id).unlink()
    done = back_up(Settings(data_dir=here.folder), here.folder.parent / "all.zip", take_sound=True)
    assert done.missing == (f"clips/{voice.clip_id}",)
    assert restore(there, done.path).missing == done.missing


def test_the_library_that_is_there_is_set_aside_whole(here: Studio, there: Settings) -> None:
    old = Studio(there.data_dir)
    old.add(replace(DETAILS, name="Old"), seed=5)
    before = contents(there.data_dir)
    old.cache.close()
    restored = restore(there, saved(here))
    assert restored.set_aside is not None
    assert contents(restored.set_aside) == before
    assert contents(there.data_dir) == contents(here.folder)
    assert VoiceLibrary(there.database, there.clips_dir, codec="c").list()[0].name == DETAILS.name


def test_a_damaged_library_is_set_aside_too(here: Studio, there: Settings) -> None:
    there.data_dir.mkdir()
    there.database.write_bytes(b"dear diary, " * 1000)
    restored = restore(there, saved(here))
    assert restored.set_aside is not None
    assert (restored.set_aside / "studio.db").read_bytes() == b"dear diary, " * 1000


def test_nothing_is_restored_while_another_process_has_the_library_open(here: Studio, there: Settings) -> None:
    with connection(there.database):
        pass
    script = (
        "import sys; from pathlib import Path; from studio.store.code_cache import CodeCache\n"
        "cache = CodeCache(Path(sys.argv[1])); print('open', flush=True); sys.stdin.read()"
    )
    line = [sys.executable, "-c", script, there.database]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as studio:
        assert studio.stdout is not None
        assert studio.stdout.readline() == "open\n"
        with pytest.raises(LibraryInUse, match="Close the studio"):
            restore(there, saved(here))
        studio.communicate("")
    assert VoiceLibrary(there.database, there.clips_dir, codec="c").list() == []
    assert restore(there, saved(here)).num_voices == 1


def test_a_library_of_an_older_studio_is_migrated(there: Settings, tmp_path: Path) -> None:
    old = tmp_path / "old" / "studio.db"
    old.parent.mkdir()
    db = Database(old)
    MIGRATIONS.apply(db, stop_before="m004_clips")
    db.execute("PRAGMA user_version = 3")
    db.close()
    content = members(saved(Studio(tmp_path / "empty")))
    bundle = rewritten(tmp_path / "old.zip", content, old.read_bytes())
    assert restore(there, bundle).num_voices == 0


def rewritten(path: Path, content: dict[str, bytes], database: bytes) -> Path:
    """The backup with another database, its digest and size told truly."""

    def tell(manifest) -> None:
        manifest["files"]["studio.db"] = {"digest": hashlib.sha256(database).hexdigest(), "num_bytes": len(database)}

    return zipped(path, told(content | {"studio.db": database}, tell))


Content = dict[str, bytes]
HOSTILE: dict[str, tuple[Callable[[Content], Content], str]] = {
    "a path upwards": (lambda content: content | {"../evil": b"x"}, "is a path"),
    "a path upwards inside": (lambda content: content | {"clips/../../evil": b"x"}, "is a path"),
    "an absolute path": (lambda content: content | {"/etc/evil": b"x"}, "is a path"),
    "a drive": (lambda content: content | {"C:/evil": b"x"}, "is a path"),
    "backslashes": (lambda content: content | {"clips\\evil": b"x"}, "is a path"),
    "a program": (lambda content: content | {"run.py": b"x"}, "does not belong"),
    "a take that is no id": (lambda content: content | {"takes/evil.wav": b"x"}, "does not belong"),
    "a clip nobody speaks of": (lambda content: content | {"clips/evil": b"x"}, "other files"),
    "no manifest": (lambda content: {name: content[name] for name in content if name[0] != "m"}, "no manifest"),
    "a manifest that is no JSON": (lambda content: content | {"manifest.json": b"{"}, "not JSON"),
    "a voice bundle": (lambda content: told(content, lambda m: m.update(format="solo-studio voice")), "is not a solo"),
    "a later version": (lambda content: told(content, lambda m: m.update(version=2)), "version 2"),
    "files that are no object": (lambda content: told(content, lambda m: m.update(files=[])), "right type"),
    "no digest": (lambda content: told(content, lambda m: m["files"]["studio.db"].pop("digest")), "missing"),
    "a damaged database": (lambda content: content | {"studio.db": content["studio.db"][::-1]}, "digest is another"),
    "no database": (lambda content: {name: content[name] for name in content if name[0] != "s"}, "other files"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_backup_is_refused_and_nothing_is_changed(here: Studio, there: Settings, kind: str) -> None:
    change, sentence = HOSTILE[kind]
    assert_refused(there, zipped(here.folder.parent / "hostile.zip", change(members(saved(here)))), sentence)


def assert_refused(there: Settings, backup: Path, sentence: str) -> None:
    with connection(there.database) as db:
        db.execute("INSERT INTO counters (name, value) VALUES ('fills', 7)")
    before = sorted(path.name for path in there.data_dir.iterdir())
    around = sorted(path.name for path in there.data_dir.parent.iterdir())
    with pytest.raises(StudioError, match=sentence):
        restore(there, backup)
    assert sorted(path.name for path in there.data_dir.iterdir()) == before
    assert sorted(path.name for path in there.data_dir.parent.iterdir()) == around
    with connection(there.database) as db:
        assert db.execute("SELECT value FROM counters").fetchall() == [(7,)]


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("CREATE TRIGGER t AFTER INSERT ON takes BEGIN DELETE FROM voices; END", "more than tables"),
        ("CREATE VIEW v AS SELECT 1", "more than tables"),
        ("CREATE TABLE extra (a)", "other tables"),
        ("CREATE INDEX extra ON voices (upper(name))", "other tables"),
        ("DROP TABLE tombstones", "other tables"),
        ("PRAGMA user_version = 99", "version 99"),
        ("PRAGMA user_version = 0", "version 0"),
        ("UPDATE takes SET id = '../../evil'", "an id that is none"),
        ("UPDATE takes SET options = '{'", "cannot be used"),
        ("UPDATE takes SET script = CAST(x'ff' AS TEXT)", "damaged"),
        ("UPDATE voices SET notes = CAST(x'c3' AS TEXT)", "damaged"),
        ("UPDATE voices SET tags = 'a'", "cannot be used"),
        ("UPDATE voices SET reference_clip = 'x'", "cannot be used"),
        ("UPDATE clips SET id = 'evil' WHERE id = (SELECT max(id) FROM clips)", "belong to nothing|not in it"),
        ("DELETE FROM voices", "belong to nothing"),
    ],
)
def test_a_database_that_is_not_ours_is_refused(here: Studio, there: Settings, statement: str, sentence: str) -> None:
    content = members(saved(here))
    path = here.folder.parent / "other.db"
    path.write_bytes(content["studio.db"])
    with sqlite3.connect(path) as raw:
        raw.execute(statement)
    raw.close()
    assert_refused(there, rewritten(here.folder.parent / "other.zip", content, path.read_bytes()), sentence)


def test_a_database_of_noise_is_refused(here: Studio, there: Settings) -> None:
    content = members(saved(here))
    noise = content["studio.db"][:100] + bytes(len(content["studio.db"]) - 100)
    for database in (b"dear diary, " * 1000, noise, content["studio.db"][:5000], b""):
        bundle = rewritten(here.folder.parent / "other.zip", content, database)
        with pytest.raises(ArchiveError, match="database"):
            restore(there, bundle)
    assert not there.database.exists()


def test_a_backup_that_was_cut_off_is_refused(here: Studio, there: Settings) -> None:
    backup = saved(here)
    backup.write_bytes(backup.read_bytes()[:-30])
    assert_refused(there, backup, "no whole zip file")


def test_a_symbolic_link_is_refused(here: Studio, there: Settings) -> None:
    backup = saved(here)
    with zipfile.ZipFile(backup, "a") as archive:
        link = zipfile.ZipInfo("clips/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    assert_refused(there, backup, "is a link")


def test_a_move_that_fails_puts_everything_back(here: Studio, there: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Studio(there.data_dir)
    old.add(replace(DETAILS, name="Old"), seed=5)
    old.cache.close()
    before = contents(there.data_dir)
    rename = Path.rename

    def fail(path: Path, target: Path) -> Path:
        if path.parent.name.startswith("restoring-") and path.name == "clips":
            raise OSError(13, "Permission denied")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(StudioError, match="Permission denied"):
        restore(there, saved(here))
    monkeypatch.undo()
    assert contents(there.data_dir) == before


def test_a_disk_without_room_is_said_before_anything_is_written(
    here: Studio, there: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage(here.folder)._replace(free=1_000_000)
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    with pytest.raises(ArchiveError, match="the disk has 1 MB"):
        restore(there, saved(here))
    assert list(there.data_dir.iterdir()) == []


def test_a_backup_that_cannot_be_written_leaves_nothing(here: Studio) -> None:
    with pytest.raises(StudioError, match="No such file"):
        back_up(Settings(data_dir=here.folder), here.folder / "nowhere" / "all.zip", take_sound=False)


def test_the_manifest_names_what_is_in_it(here: Studio) -> None:
    content = members(saved(here))
    manifest = json.loads(content["manifest.json"])
    assert set(manifest["files"]) == set(content) - {"manifest.json"}
    assert manifest["missing"] == []
