"""The database file: its settings, its migrations, and what a person is told when it cannot be used."""

import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from sqlite_utils import Database

from studio.errors import StorageError
from studio.store.database import connection, suspect, transaction
from studio.store.reader import Reader
from studio.store.schema import MIGRATIONS, VERSION


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "studio.db"


def test_a_new_database_is_wal_and_survives_a_power_cut(path: Path) -> None:
    with connection(path) as db:
        assert db.journal_mode == "wal"
        assert db.execute("PRAGMA synchronous").fetchone() == (2,)
        assert db.execute("PRAGMA busy_timeout").fetchone()[0] >= 10_000
        assert db.execute("PRAGMA foreign_keys").fetchone() == (1,)


def test_every_table_of_ours_is_strict(path: Path) -> None:
    with connection(path) as db:
        ours = [table for table in db.tables if table.name != "_sqlite_migrations"]
        assert {table.name for table in ours} >= {"codes", "sources", "tombstones", "counters", "voices", "takes"}
        assert all(table.strict for table in ours)


def test_the_version_counts_the_migrations(path: Path) -> None:
    with Database(memory=True) as empty:
        assert len(MIGRATIONS.pending(empty)) == VERSION
    with connection(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (VERSION,)
        assert not MIGRATIONS.pending(db)


def test_a_connection_is_closed_after_its_call(path: Path) -> None:
    with connection(path) as db:
        pass
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        db.execute("SELECT 1")


def test_a_failed_transaction_leaves_nothing(path: Path) -> None:
    def fail() -> None:
        with transaction(path) as db:
            db.execute("INSERT INTO counters (name, value) VALUES ('fills', 1)")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    with connection(path) as db:
        assert db["counters"].count == 0


def test_threads_write_without_finding_the_database_locked(path: Path) -> None:
    with transaction(path) as db:
        db.execute("INSERT INTO counters (name, value) VALUES ('fills', 0)")

    def add() -> None:
        for _ in range(10):
            with transaction(path) as db:
                db.execute("UPDATE counters SET value = value + 1")

    kept = Reader(path)
    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept.close()
    with connection(path) as db:
        assert db.execute("SELECT value FROM counters").fetchone() == (80,)


def _open(path: Path) -> None:
    with connection(path) as db:
        db.execute("SELECT * FROM codes")


def test_processes_make_one_database_at_the_same_time(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_open, args=[path]) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]


def test_a_database_of_a_newer_studio_is_refused_and_kept(path: Path) -> None:
    with connection(path) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")
    with pytest.raises(StorageError, match="newer version"), connection(path):
        pass
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (VERSION + 1,)
    raw.close()


def test_a_file_that_is_no_database_is_refused_and_kept(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"dear diary, " * 1000)
    with pytest.raises(StorageError, match="not a database"), connection(path):
        pass
    assert path.read_bytes() == b"dear diary, " * 1000
    assert suspect(path).exists()


def test_a_folder_that_is_a_file_is_refused(path: Path) -> None:
    path.parent.write_text("a file")
    with pytest.raises(StorageError, match="--data-dir"), connection(path):
        pass


def test_a_folder_in_the_place_of_the_database_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StorageError, match="cannot be opened"), connection(path):
        pass


def test_a_full_disk_is_a_sentence_and_nothing_stored_is_lost(path: Path) -> None:
    with transaction(path) as db:
        db.execute("INSERT INTO counters (name, value) VALUES ('fills', 7)")

    def fill() -> None:
        with transaction(path) as db:
            pages = db.execute("PRAGMA page_count").fetchone()[0]
            db.execute(f"PRAGMA max_page_count = {pages}")
            db.execute("INSERT INTO counters (name, value) VALUES (hex(zeroblob(100000)), 1)")

    with pytest.raises(StorageError, match="full"):
        fill()
    with connection(path) as db:
        assert db.execute("SELECT name, value FROM counters").fetchall() == [("fills", 7)]


def test_a_file_that_may_not_grow_is_a_sentence(path: Path) -> None:
    with connection(path):
        size = path.stat().st_size
    script = (
        "import resource, signal, sys; from pathlib import Path; from studio.store.database import transaction\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))\n"
        "from studio.errors import StorageError\n"
        "try:\n"
        "    with transaction(Path(sys.argv[1])) as db:\n"
        "        db.execute('INSERT INTO counters (name, value) VALUES (hex(zeroblob(1000000)), 1)')\n"
        "except StorageError as error:\n"
        "    sys.exit('said: ' + str(error))\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path, str(size)], capture_output=True, text=True, check=False)
    assert done.stderr.startswith("said: The data folder"), done.stderr


def test_a_read_only_folder_is_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    script = (
        "import sys; from pathlib import Path; from studio.store.database import connection\n"
        "from studio.errors import StorageError\n"
        "try:\n"
        "    with connection(Path(sys.argv[1])): pass\n"
        "except StorageError as error:\n"
        "    sys.exit('said: ' + str(error))\n"
    )
    # Root writes everywhere while it has its capabilities.
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    done = subprocess.run([*drop, sys.executable, "-c", script, folder / "studio.db"], capture_output=True, text=True)
    assert done.stderr.startswith("said: The data folder"), done.stderr


def test_a_wrong_statement_stays_a_bug(path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError, match="no such table"), connection(path) as db:
        db.execute("SELECT * FROM nowhere")


def test_an_idle_connection_does_not_stand_in_the_way(path: Path) -> None:
    kept = Reader(path)
    with transaction(path) as db:
        db.execute("INSERT INTO counters (name, value) VALUES ('fills', 1)")
    kept.close()
    kept.close()
    assert not path.with_name("studio.db-wal").exists()
