"""The code cache: what is stored stays, what is damaged is not believed, and everything is counted."""

import gc
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studio.errors import StorageError
from studio.store import counters, packed_codes
from studio.store.code_cache import CodeCache, Provenance
from studio.store.database import connection, transaction

PROVENANCE = Provenance(
    device="cpu",
    torch_version="2.13.0",
    cuda_version=None,
    num_threads=1,
    encode_seconds=0.25,
    filled=1_700_000_000.0,
    codec_id="toy",
    recipe="plain/1",
)
CODES = np.arange(24, dtype=np.int16).reshape(4, 6)
OTHER = CODES[::-1].copy()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "studio.db"


@pytest.fixture
def cache(path: Path) -> CodeCache:
    return CodeCache(path)


def damage(path: Path, change: str) -> None:
    with transaction(path) as db:
        db.execute("UPDATE codes SET " + change)  # noqa: S608 - the changes are written below


def counted(cache: CodeCache, *names: str) -> list[float]:
    values = cache.counters()
    return [values[name] for name in names]


def test_what_was_stored_is_read_back_after_reopening(cache: CodeCache, path: Path) -> None:
    stored = cache.insert("k", CODES, PROVENANCE, codec="c")
    found = CodeCache(path).get("k")
    assert found is not None
    assert np.array_equal(found.codes, CODES)
    assert (found.digest, found.provenance) == (stored.digest, PROVENANCE)


def test_a_key_that_was_never_filled_is_none(cache: CodeCache) -> None:
    assert cache.get("k") is None
    assert counted(cache, "hits_memory", "hits_disk", "misses") == [0, 0, 0]


def test_the_first_stored_value_wins_and_everyone_gets_it(cache: CodeCache, path: Path) -> None:
    first = cache.insert("k", CODES, PROVENANCE, codec="c")
    second = CodeCache(path).insert("k", OTHER, replace(PROVENANCE, device="cuda"), codec="c")
    assert np.array_equal(second.codes, CODES)
    assert (second.digest, second.provenance) == (first.digest, PROVENANCE)
    assert counted(cache, "fills", "entries", "encode_seconds") == [1, 1, 0.25]


def test_callers_cannot_write_into_the_cache(cache: CodeCache, path: Path) -> None:
    mine = CODES.copy()
    returned = [cache.insert("k", mine, PROVENANCE, codec="c"), cache.get("k"), CodeCache(path).get("k")]
    mine[:] = 0
    for entry in returned:
        assert entry is not None
        assert entry.codes[0, 1] == 1
        with pytest.raises(ValueError, match="read-only"):
            entry.codes[0, 0] = 9
        with pytest.raises(ValueError, match="WRITEABLE"):
            entry.codes.setflags(write=True)


def test_the_digest_tells_shapes_apart() -> None:
    assert packed_codes.digest(packed_codes.pack(CODES), 4, 6) != packed_codes.digest(packed_codes.pack(CODES), 6, 4)


@pytest.mark.parametrize("codes", [np.zeros(3, np.int16), np.full((2, 2), 40_000), np.full((2, 2), 0.5)])
def test_what_is_not_int16_codes_is_refused(codes: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"axes|int16"):
        packed_codes.pack(codes)


@pytest.mark.parametrize(
    "change",
    [
        "codes = CAST(x'0100' || substr(codes, 3) AS BLOB)",
        "codes = CAST(substr(codes, 1, length(codes) - 2) AS BLOB)",
        "codes = x''",
        "num_codebooks = 6, num_frames = 4",
        "num_codebooks = -4, num_frames = -6",
        "num_codebooks = 0, num_frames = 0",
        "provenance = '{}'",
        "provenance = 'nonsense'",
        "provenance = CAST(x'ff' AS TEXT)",
    ],
)
def test_a_damaged_row_is_a_miss_and_is_repaired(cache: CodeCache, path: Path, change: str) -> None:
    cache.insert("k", CODES, PROVENANCE, codec="c")
    damage(path, change)
    again = CodeCache(path)
    assert again.get("k") is None
    again.insert("k", CODES, PROVENANCE, codec="c")
    found = CodeCache(path).get("k")
    assert found is not None
    assert np.array_equal(found.codes, CODES)
    assert counted(again, "repairs", "changes", "fills", "entries") == [1, 0, 2, 1]


@pytest.mark.parametrize("change", ["digest = 'other'", "digest = CAST(x'ff' AS TEXT)"])
def test_a_repair_that_does_not_meet_its_digest_is_counted_as_changed(
    cache: CodeCache, path: Path, change: str
) -> None:
    cache.insert("k", CODES, PROVENANCE, codec="c")
    damage(path, change)
    again = CodeCache(path)
    assert again.get("k") is None
    assert np.array_equal(again.insert("k", OTHER, PROVENANCE, codec="c").codes, OTHER)
    assert counted(again, "repairs", "changes") == [0, 1]
    with connection(path) as db:
        assert db.execute("SELECT key FROM tombstones").fetchall() == [("k",)]


def test_a_fill_that_differs_from_a_retired_one_is_reported(cache: CodeCache, path: Path) -> None:
    cache.insert("k", CODES, PROVENANCE, codec="c")
    with transaction(path) as db:
        db.execute("INSERT INTO tombstones SELECT key, digest, provenance, 0.0 FROM codes")
        db.execute("DELETE FROM codes")
    again = CodeCache(path)
    again.insert("k", OTHER, PROVENANCE, codec="c")
    assert counted(again, "repairs", "changes") == [0, 1]


def test_hits_are_counted_with_the_seconds_they_saved(cache: CodeCache, path: Path) -> None:
    cache.insert("k", CODES, PROVENANCE, codec="c")
    other = CodeCache(path)
    for _ in range(3):
        other.get("k")
    assert counted(other, "hits_disk", "hits_memory", "saved_seconds") == [1, 2, 0.75]
    assert counted(cache, "entries", "bytes") == [1, 48]


def test_counters_survive_reopening(cache: CodeCache, path: Path) -> None:
    cache.insert("k", CODES, PROVENANCE, codec="c")
    cache.get("k")
    cache.count("failures")
    cache.close()
    assert counted(CodeCache(path), "fills", "hits_memory", "failures") == [1, 1, 1]


def test_counters_are_written_when_the_cache_goes_away_unclosed(path: Path) -> None:
    cache = CodeCache(path)
    cache.count("failures")
    del cache
    gc.collect()
    assert counted(CodeCache(path), "failures") == [1]


def test_counters_are_written_when_the_process_ends(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from studio.store.code_cache import CodeCache\n"
        "cache = CodeCache(Path(sys.argv[1])); cache.count('merged')"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", script, path], check=True)
    assert counted(CodeCache(path), "merged") == [1]


def test_uses_are_written_in_batches_and_not_with_each_hit(cache: CodeCache, path: Path) -> None:
    cache.insert("k", CODES, PROVENANCE, codec="c")
    for _ in range(5):
        cache.get("k")
    with connection(path) as db:
        assert db.execute("SELECT uses FROM codes").fetchone() == (0,)
    cache.close()
    with connection(path) as db:
        assert db.execute("SELECT uses FROM codes").fetchone() == (5,)


def test_a_full_batch_is_written_without_being_asked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters, "BATCH_EVENTS", 10)
    cache = CodeCache(path)
    for _ in range(10):
        cache.count("misses")
    with connection(path) as db:
        assert counters.stored(db)["misses"] == 10


def test_counts_that_cannot_be_written_are_kept_for_later(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = CodeCache(path)
    cache.count("misses")
    with transaction(path) as db:
        db.execute("PRAGMA user_version = 99")
    cache.close()
    assert "newer version" in caplog.text
    with pytest.raises(StorageError):
        cache.counters()
    path.unlink()
    with connection(path):
        pass
    cache.count("misses")
    assert counted(cache, "misses") == [2]


def test_a_counter_that_does_not_exist_is_a_bug(cache: CodeCache) -> None:
    with pytest.raises(KeyError):
        cache.count("hitz")


def test_memory_is_bounded_and_disk_serves_what_left_it(path: Path) -> None:
    cache = CodeCache(path, memory_bytes=1200)
    for key in ("a", "b"):
        cache.insert(key, CODES, PROVENANCE, codec="c")
    assert cache.get("a") is not None
    assert counted(cache, "hits_disk", "hits_memory") == [1, 0]


def test_source_bytes_lead_to_their_key_under_their_codec_and_trim(cache: CodeCache, path: Path) -> None:
    cache.add_source("s", "k", codec="c", trim="")
    cache.add_source("s", "k2", codec="c", trim="0.0:2.0")
    again = CodeCache(path)
    assert again.find_source("s", codec="c", trim="") == "k"
    assert again.find_source("s", codec="c", trim="0.0:2.0") == "k2"
    assert again.find_source("s", codec="other", trim="") is None
    assert again.find_source("t", codec="c", trim="") is None
