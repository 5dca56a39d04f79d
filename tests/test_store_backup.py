"""A library in one file and back: while it is in use, whole on the other side, hostile files refused."""

import json
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bundle_studio import DETAILS, Studio, members, rewritten, saved, with_a_take
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
    return with_a_take(tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "there")


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
