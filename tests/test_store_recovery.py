"""A damaged database is set aside and built anew; full disk, read-only folder, newer schema: sentences, no loss."""

import multiprocessing
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from test_store_code_cache import CODES, PROVENANCE

from studio.commands.application import run
from studio.errors import StorageError
from studio.settings import Settings
from studio.store import damage
from studio.store.backup import back_up
from studio.store.code_cache import CodeCache
from studio.store.database import connection, suspect
from studio.store.recovery import recover
from studio.store.schema import VERSION
from studio.store.voices import Voice, VoiceDetails, VoiceLibrary


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data")


def library(settings: Settings) -> VoiceLibrary:
    return VoiceLibrary(settings.database, settings.clips_dir, codec="c")


def save(settings: Settings, name: str) -> Voice:
    """A saved voice whose clip is its name."""
    return library(settings).add(VoiceDetails(name=name, notes="kept"), name.encode(), codes=None, duration=1.0)


def fill(settings: Settings, count: int = 200) -> None:
    cache = CodeCache(settings.database)
    for number in range(count):
        cache.insert(f"{number:064}", CODES, PROVENANCE, codec="c")
    cache.close()


def clips(settings: Settings) -> dict[str, bytes]:
    """The clip of every voice, by the voice's name."""
    return {voice.name: library(settings).clip_bytes(voice) for voice in library(settings).list()}


def cut(path: Path, length: int) -> bytes:
    with path.open("r+b") as file:
        file.truncate(length)
    return path.read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9])
def test_a_truncated_database_is_set_aside_and_built_anew_of_the_clips(settings: Settings, share: float) -> None:
    save(settings, "Ada")
    save(settings, "Zoë")
    fill(settings)
    (settings.takes_dir).mkdir()
    (settings.takes_dir / f"{'0' * 32}.wav").write_bytes(b"sound")
    left = cut(settings.database, int(share * settings.database.stat().st_size))
    recovery = recover(settings)
    assert recovery is not None
    assert recovery.set_aside is not None
    assert recovery.set_aside.read_bytes() == left
    assert clips(settings) == {"Recovered 1": b"Ada", "Recovered 2": "Zoë".encode()}
    assert str(recovery.set_aside) in recovery.sentence
    for part in ("without a backup and of 2 original clips", "names, words, trims", "list of 1 takes", "counters"):
        assert part in recovery.sentence
    assert recover(settings) is None
    save(settings, "Ben")  # sweeps what belongs to nobody
    assert sorted(clips(settings)) == ["Ben", "Recovered 1", "Recovered 2"]


@pytest.mark.parametrize("content", [b"dear diary, " * 1000, b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_database_is_set_aside(settings: Settings, content: bytes) -> None:
    save(settings, "Ada")
    for leaving in ("-wal", "-shm"):
        settings.database.with_name("studio.db" + leaving).unlink(missing_ok=True)
    settings.database.write_bytes(content)
    recovery = recover(settings)
    assert recovery is not None
    assert recovery.set_aside is not None
    assert recovery.set_aside.read_bytes() == content
    assert clips(settings) == {"Recovered 1": b"Ada"}


def test_the_last_usable_backup_brings_back_what_it_knows(settings: Settings) -> None:
    settings.backups_dir.mkdir(parents=True)
    ada = save(settings, "Ada")
    back_up(settings, settings.backups_dir / "one.zip", take_sound=False)
    save(settings, "Ben")
    (settings.backups_dir / "two.zip").write_bytes(b"PK, or not")
    shutil.copystat(settings.backups_dir / "one.zip", settings.backups_dir / "two.zip")
    os.utime(settings.backups_dir / "two.zip")
    (settings.clips_dir / ada.clip_id).unlink()
    cut(settings.database, 5000)
    recovery = recover(settings)
    assert recovery is not None
    assert (recovery.backup, recovery.from_backup, recovery.from_clips) == (settings.backups_dir / "one.zip", 1, 1)
    assert clips(settings) == {"Ada": b"Ada", "Recovered 1": b"Ben"}
    assert library(settings).get("Ada").notes == "kept"
    assert "of the backup one.zip (1 voices) and of 1 original clips" in recovery.sentence
    assert sorted(path.name for path in settings.data_dir.iterdir() if path.suffix == ".part") == []


def spoil(settings: Settings) -> None:
    """Writes over the pages in the middle of the file, where the codes are."""
    size = settings.database.stat().st_size
    with settings.database.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xa5" * (size // 4))


def test_spoilt_pages_are_found_at_the_start(settings: Settings) -> None:
    save(settings, "Ada")
    fill(settings)
    spoil(settings)
    recovery = recover(settings)
    assert recovery is not None
    assert clips(settings) == {"Recovered 1": b"Ada"}


def test_spoilt_pages_of_a_large_database_are_found_once_a_read_has_met_them(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damage, "READ_WHOLE", 0)
    save(settings, "Ada")
    fill(settings)
    spoil(settings)
    assert recover(settings) is None
    with pytest.raises(StorageError, match="start the studio again"), connection(settings.database) as db:
        db.execute("SELECT sum(length(codes)), sum(length(provenance)) FROM codes NOT INDEXED").fetchall()
    assert suspect(settings.database).exists()
    assert recover(settings) is not None
    assert not suspect(settings.database).exists()
    assert clips(settings) == {"Recovered 1": b"Ada"}


def test_a_sound_library_is_left_as_it_is_and_a_false_suspicion_ends(settings: Settings) -> None:
    assert recover(settings) is None
    assert not settings.data_dir.exists()
    save(settings, "Ada")
    suspect(settings.database).touch()
    assert recover(settings) is None
    assert not suspect(settings.database).exists()
    assert clips(settings) == {"Ada": b"Ada"}


def test_a_database_that_was_deleted_is_built_anew_before_its_clips_are_swept(settings: Settings) -> None:
    save(settings, "Ada")
    for path in settings.data_dir.glob("studio.db*"):
        path.unlink()
    recovery = recover(settings)
    assert recovery is not None
    assert recovery.set_aside is None
    assert clips(settings) == {"Recovered 1": b"Ada"}


def test_a_database_of_a_newer_studio_is_no_damage_and_stays_untouched(settings: Settings) -> None:
    save(settings, "Ada")
    with closing(sqlite3.connect(settings.database)) as raw:
        raw.execute(f"PRAGMA user_version = {VERSION + 1}")
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = settings.database.read_bytes()
    assert recover(settings) is None
    for opening in (lambda: CodeCache(settings.database), lambda: library(settings).list()):
        with pytest.raises(StorageError, match="newer version"):
            opening()
    assert settings.database.read_bytes() == before


def test_the_command_line_says_what_was_done(
    settings: Settings, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save(settings, "Ada")
    cut(settings.database, 5000)

    def assemble(*_: object) -> None:
        raise AssertionError("statistics need no engine")

    assert run(["--data-dir", str(settings.data_dir), "cache", "stats", "--json"], assemble) == 0  # pyright: ignore[reportArgumentType]
    said = capsys.readouterr()
    assert "It was set aside as" in said.err
    assert '"entries": 0' in said.out
    assert clips(settings) == {"Recovered 1": b"Ada"}


MOUNT = shutil.which("mount") or ""


def mountable() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([MOUNT or "false", "-t", "tmpfs", "tmpfs", folder], capture_output=True, check=False)
        return done.returncode == 0 and subprocess.run(["umount", folder], check=False).returncode == 0


@pytest.fixture(params=["pages", *(["tmpfs"] if sys.platform == "linux" and mountable() else [])])
def small_disk(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for a megabyte: a small file system where one can be mounted, and a database that may not grow."""
    folder = tmp_path / "small"
    folder.mkdir()
    if request.param == "tmpfs":
        subprocess.run([MOUNT, "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True)
        yield folder
        subprocess.run(["umount", folder], check=True)
        return
    connect = sqlite3.connect

    def limited(*arguments: object, **options: object) -> sqlite3.Connection:
        connected = connect(*arguments, **options)  # pyright: ignore[reportArgumentType, reportCallIssue]
        connected.execute("PRAGMA max_page_count = 100").close()
        return connected

    monkeypatch.setattr("studio.store.database.sqlite3.connect", limited)
    yield folder


def test_a_full_disk_is_a_sentence_and_every_stored_entry_is_still_there(small_disk: Path) -> None:
    database = small_disk / "studio.db"
    cache = CodeCache(database)
    stored: list[str] = []

    def fill_up() -> None:
        while len(stored) < 5000:
            key = f"{len(stored):064}"
            cache.insert(key, CODES, PROVENANCE, codec="c")
            stored.append(key)

    with pytest.raises(StorageError, match=r"disk is full|reading or writing failed"):
        fill_up()
    assert len(stored) > 50
    again = CodeCache(database)
    assert all(again.look(key) is not None for key in stored)
    with connection(database) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def as_nobody(folder: Path, say: Connection) -> None:
    """What another user is told; root writes everywhere, so it becomes nobody first."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
    try:
        CodeCache(folder / "studio.db").add_source("s", "k", codec="c", trim="")
    except StorageError as error:
        say.send(str(error))
    else:
        say.send("it was written")


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no mode there")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_read_only_folder_of_another_user_is_a_sentence_and_nothing_is_lost() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        settings = Settings(data_dir=folder / "data")
        fill(settings, 3)
        before = settings.database.read_bytes()
        for path, mode in ((folder, 0o755), (settings.data_dir, 0o555), (settings.database, 0o444)):
            path.chmod(mode)
        context = multiprocessing.get_context("fork")
        heard, say = context.Pipe(duplex=False)
        process = context.Process(target=as_nobody, args=[settings.data_dir, say])
        process.start()
        assert heard.poll(60)
        told = heard.recv()
        process.join(60)
        settings.data_dir.chmod(0o755)
        assert told.startswith(f"The data folder {settings.data_dir} cannot be used (")
        assert settings.database.read_bytes() == before
