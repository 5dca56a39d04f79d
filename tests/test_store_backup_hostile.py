"""Hostile and broken backups: each is refused with a sentence, and the library that is there stays as it is."""

import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from bundle_studio import Studio, members, rewritten, saved, told, with_a_take, zipped

from studio.errors import ArchiveError, StudioError
from studio.settings import Settings
from studio.store.database import connection
from studio.store.restore import restore

Content = dict[str, bytes]


@pytest.fixture
def here(tmp_path: Path) -> Studio:
    return with_a_take(tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "there")


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
