"""`cache stats`, `cache verify` and `cache evict`, as a person types them."""

from command_line import CommandLine
from test_store_code_cache import CODES, PROVENANCE

from studio.store.code_cache import CodeCache
from studio.store.database import transaction

STATS = (
    "hits_memory hits_disk misses merged fills failures repairs changes evictions entries bytes "
    "encode_seconds saved_seconds"
).split()


def fill(studio: CommandLine, *keys: str) -> None:
    cache = CodeCache(studio.data_dir / "studio.db")
    for key in keys:
        cache.insert(key, CODES, PROVENANCE, codec="c")
    cache.get(keys[0])
    cache.close()


def test_stats_are_exactly_the_counters(studio: CommandLine) -> None:
    fill(studio, "a", "b")
    record = studio("cache", "stats", "--json").record
    assert list(record) == STATS
    assert (record["fills"], record["hits_memory"], record["entries"], record["bytes"]) == (2, 1, 2, 96)
    assert (record["encode_seconds"], record["saved_seconds"]) == (0.5, 0.25)
    assert "saved_seconds" in studio("cache", "stats").stdout


def test_evict_takes_a_bound_and_keeps_what_fits(studio: CommandLine) -> None:
    fill(studio, "a", "b", "c")
    assert studio("cache", "evict", "--json").record["evicted"] == 0
    record = studio("cache", "evict", "--max-bytes", "100", "--json").record
    assert (record["evicted"], record["entries"], record["bytes"], record["above_bound"]) == (1, 2, 96, 0)
    assert studio("cache", "evict", "--max-bytes", "-1").status == 2


def test_built_in_voices_stay_and_it_is_said(library: CommandLine) -> None:
    said = library("cache", "evict", "--max-bytes", "0").stdout
    assert "belong to saved voices and stay" in said


def test_verify_encodes_the_kept_clips_and_says_what_it_found(library: CommandLine) -> None:
    fill(library, "unkept")
    before = library("cache", "stats", "--json").record
    record = library("cache", "verify", "--json").record
    assert (record["entries"], record["equal"], record["not_checkable"]) == (5, 4, 1)
    assert (record["differing"], record["damaged"]) == (0, 0)
    assert library("cache", "stats", "--json").record == before
    with transaction(library.data_dir / "studio.db") as db:
        db.execute("UPDATE codes SET codes = zeroblob(length(codes)) WHERE key = (SELECT min(key) FROM clip_codes)")
    answer = library("cache", "verify")
    assert answer.status == 1
    assert "damaged; the next use fills it again" in answer.stdout
