"""The bound on disk: least recently used entries go and leave a tombstone, those of saved voices stay."""

import logging
import multiprocessing
from pathlib import Path

import numpy as np
import pytest
from test_store_code_cache import CODES, OTHER, PROVENANCE, counted

from studio.store.code_cache import CodeCache
from studio.store.database import connection, transaction
from studio.store.reader import Reader

SIZE = CODES.nbytes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "studio.db"


def fill(cache: CodeCache, *keys: str) -> None:
    for key in keys:
        cache.insert(key, CODES, PROVENANCE, codec="c")


def left(path: Path) -> list[str]:
    return [key for key, _ in CodeCache(path).stored_keys()]


def pin(path: Path, *keys: str) -> None:
    """Makes each the entry of a saved voice."""
    with transaction(path) as db:
        for key in keys:
            db.execute(
                "INSERT INTO voices (id, name, folded_name, builtin, description, sex, created) VALUES (?, ?, ?, 0, '', '', 0)",  # noqa: E501
                [key, key, key],
            )
            db.execute(
                "INSERT INTO clips (id, voice_id, name, digest, transcript, duration, created) VALUES (?, ?, '', '', '', 1, 0)",  # noqa: E501
                [key, key],
            )
            db.execute("INSERT INTO clip_codes VALUES (?, 'c', ?, '')", [key, key])


def test_beyond_the_bound_the_least_recently_used_entry_goes(path: Path) -> None:
    cache = CodeCache(path, disk_bytes=3 * SIZE)
    fill(cache, "a", "b", "c")
    cache.get("a")
    fill(cache, "d")
    assert left(path) == ["a", "c", "d"]
    assert counted(cache, "evictions", "entries", "bytes") == [1, 3, 3 * SIZE]
    assert cache.get("b") is None


def test_an_entry_larger_than_the_bound_is_returned_to_who_filled_it_and_goes_next(path: Path) -> None:
    cache = CodeCache(path, disk_bytes=0)
    assert np.array_equal(cache.insert("a", CODES, PROVENANCE, codec="c").codes, CODES)
    assert left(path) == ["a"]
    fill(cache, "b")
    assert left(path) == ["b"]


def test_an_evicted_entry_leaves_a_tombstone_and_an_equal_fill_is_no_change(path: Path) -> None:
    cache = CodeCache(path)
    fill(cache, "a")
    assert cache.evict(0).evicted == 1
    with connection(path) as db:
        [(key, digest, provenance)] = db.execute("SELECT key, digest, provenance FROM tombstones").fetchall()
    assert (key, provenance) == ("a", PROVENANCE.to_json())
    assert cache.get("a") is None
    again = cache.insert("a", CODES, PROVENANCE, codec="c")
    assert again.digest == digest
    assert counted(cache, "changes", "repairs", "evictions") == [0, 0, 1]


def test_another_digest_after_an_eviction_is_reported(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = CodeCache(path)
    fill(cache, "a")
    cache.evict(0)
    with caplog.at_level(logging.WARNING):
        cache.insert("a", OTHER, PROVENANCE, codec="c")
    assert counted(cache, "changes") == [1]
    assert "is filled with" in caplog.text


def test_entries_of_saved_voices_stay_above_the_bound_and_it_is_said(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = CodeCache(path, disk_bytes=SIZE)
    pin(path, "a", "b")
    with caplog.at_level(logging.WARNING):
        fill(cache, "a", "b", "c", "d")
    assert left(path) == ["a", "b", "d"]
    assert caplog.text.count("they are kept") == 1
    done = cache.evict()
    assert left(path) == ["a", "b"]
    assert (done.evicted, done.freed, done.bound) == (1, SIZE, SIZE)
    assert (done.entries, done.bytes, done.pinned, done.pinned_bytes) == (2, 2 * SIZE, 2, 2 * SIZE)
    assert done.above_bound == SIZE


def test_the_bound_of_a_hundred_thousand_entries_is_read_from_an_index(path: Path) -> None:
    CodeCache(path)
    with connection(path) as db:
        plan = db.execute("EXPLAIN QUERY PLAN SELECT count(*), sum(2 * num_codebooks * num_frames) FROM codes")
        assert "COVERING INDEX" in str(plan.fetchall())


def evict_all(path: Path) -> None:
    CodeCache(path).evict(0)


def test_an_eviction_in_another_process_is_seen_by_a_memory_that_holds_the_entry(path: Path) -> None:
    cache = CodeCache(path)
    fill(cache, "a")
    process = multiprocessing.get_context("spawn").Process(target=evict_all, args=[path])
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert cache.get("a") is None


def test_memory_goes_on_serving_what_other_writes_did_not_touch(path: Path) -> None:
    cache = CodeCache(path)
    fill(cache, "a")
    for number in range(3):
        CodeCache(path).add_source(str(number), "k", codec="c", trim="")
        assert cache.get("a") is not None
    assert counted(cache, "hits_memory", "hits_disk") == [3, 0]


def test_a_refill_is_served_at_once_also_from_memory(path: Path) -> None:
    cache, other = CodeCache(path), CodeCache(path)
    fill(cache, "a")
    assert other.get("a") is not None
    assert cache.replace("a", OTHER, PROVENANCE, codec="c").changed
    for each in (cache, other):
        entry = each.get("a")
        assert entry is not None
        assert np.array_equal(entry.codes, OTHER)


def test_a_database_put_in_the_place_of_another_is_read_anew(path: Path, tmp_path: Path) -> None:
    cache = CodeCache(path)
    fill(cache, "a")
    cache.close()
    CodeCache(tmp_path / "other.db").close()
    assert cache.get("a") is not None
    (tmp_path / "other.db").replace(path)
    for leaving in ("studio.db-wal", "studio.db-shm"):
        (tmp_path / leaving).unlink(missing_ok=True)
    assert cache.get("a") is None


def test_the_reader_tells_whether_anybody_has_written(path: Path) -> None:
    reader = Reader(path)
    before = reader.version()
    assert reader.version() == before
    CodeCache(path).insert("a", CODES, PROVENANCE, codec="c")
    assert reader.version() != before


def forked(path: Path, reader: Reader) -> None:
    assert reader.row("SELECT key FROM codes", []) == ("a",)
    CodeCache(path).insert("b", CODES, PROVENANCE, codec="c")
    reader.close()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_reads_over_a_connection_of_its_own(path: Path) -> None:
    reader = Reader(path)
    fill(CodeCache(path), "a")
    process = multiprocessing.get_context("fork").Process(target=forked, args=[path, reader])
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert reader.row("SELECT count(*) FROM codes", []) == (2,)
