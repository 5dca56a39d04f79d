"""The migrations: what an older studio stored is there, whole, after this one has opened the file."""

import sqlite3
from pathlib import Path

import pytest
from sqlite_utils import Database

from studio.store.database import connection
from studio.store.schema import MIGRATIONS
from studio.store.takes import TakeLibrary
from studio.store.voices import VoiceLibrary

ROWS = """
    INSERT INTO voices (id, name, folded_name, builtin, transcript, description, sex, clip_name, clip_digest,
                        trim_start, trim_end, duration, created, last_used, times_used)
    VALUES ('clara', 'Clara', 'clara', 1, 'I keep bees.', 'warm', 'female', 'clara.flac', 'd1',
            NULL, NULL, 5.5, 100.0, NULL, 0),
           ('f00d', 'Zoë', 'zoë', 0, 'Hello.', '', '', 'a "b".m4a', 'd2', 0.5, 2.5, 2.0, 200.0, 300.0, 7);
    INSERT INTO voice_codes (voice_id, codec, key, codes_digest)
    VALUES ('clara', 'c', 'k1', 'e1'), ('f00d', 'c', 'k2', 'e2'), ('f00d', 'older', 'k3', 'e3');
    INSERT INTO takes VALUES (
        'ffffffffffffffffffffffffffffffff', 1.0, 'Text.', 'f00d', 'Zoë', 'embedded', 'r1', 'cpu', 4, '{"speed": 1.0}',
        'k2', x'01000200', 1, 2, 'e2', 'hit', 0.4, 212.0, 80.0, 1.5, 9.0, 'p', 0, NULL);
"""


@pytest.fixture
def version_3(tmp_path: Path) -> Path:
    """A database as version 3 left it, with rows in every table that has changed since."""
    path = tmp_path / "studio.db"
    db = Database(path)
    db.enable_wal()
    MIGRATIONS.apply(db, stop_before="m004_clips")
    db.executescript(ROWS)
    db.execute("PRAGMA user_version = 3")
    db.close()
    return path


def test_voices_of_version_3_keep_every_field_their_codes_and_their_clip_files(version_3: Path, tmp_path: Path) -> None:
    voices = VoiceLibrary(version_3, tmp_path / "clips", codec="c")
    clara, zoe = voices.list()
    assert (clara.id, clara.builtin, clara.transcript, clara.description, clara.sex, clara.trim, clara.key) == (
        ("clara", True, "I keep bees.", "warm", "female", None, "k1")
    )
    assert (zoe.name, zoe.clip_name, zoe.clip_digest, zoe.trim, zoe.duration) == (
        ("Zoë", 'a "b".m4a', "d2", (0.5, 2.5), 2.0)
    )
    assert (zoe.key, zoe.codes_digest, zoe.created, zoe.last_used, zoe.times_used) == ("k2", "e2", 200.0, 300.0, 7)
    assert VoiceLibrary(version_3, tmp_path / "clips", codec="older").get("zoë").key == "k3"
    with connection(version_3) as db:
        assert db.execute("SELECT id, voice_id, transcript_unchecked FROM clips ORDER BY id").fetchall() == (
            [("clara", "clara", 0), ("f00d", "f00d", 0)]
        )
        assert db.execute("SELECT reference_clip FROM voices ORDER BY id").fetchall() == [("clara",), ("f00d",)]
        assert not db["voice_codes"].exists()
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def test_takes_of_version_3_keep_every_field(version_3: Path, tmp_path: Path) -> None:
    (take,) = TakeLibrary(version_3, tmp_path / "takes").list()
    assert (
        take.script,
        take.voice_id,
        take.seed,
        take.options,
        take.codes.tolist(),
        take.pcm_digest,
        take.partial,
    ) == (("Text.", "f00d", 4, {"speed": 1.0}, [[1, 2]], "p", False))


def test_a_migration_that_breaks_off_leaves_the_old_database_as_it_was(
    version_3: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def break_off(*_: object) -> None:
        raise KeyError("killed")

    monkeypatch.setattr(MIGRATIONS, "_record_applied", break_off)
    with pytest.raises(KeyError, match="killed"), connection(version_3):
        pass
    with sqlite3.connect(version_3) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (3,)
        assert raw.execute("SELECT count(*) FROM voice_codes").fetchone() == (3,)
    raw.close()
    monkeypatch.undo()
    with connection(version_3) as db:
        assert db["clip_codes"].count == 3
