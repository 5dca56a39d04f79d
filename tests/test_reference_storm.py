"""Many processes and threads on one cache: one fill a clip, one digest, and no kill that costs a stored value."""

import sys
from pathlib import Path

import pytest
from reference_storm import CLIPS, Kills, Storm, calm, check_values, killing, make_clips, report

from studio.store.code_cache import CodeCache


def prepared(folder: Path, engine: str) -> Storm:
    storm = Storm(folder=folder, engine=engine)
    make_clips(storm)
    return storm


def check_calm(storm: Storm, requests: int) -> None:
    """Exactly one fill a clip and one digest; after a restart, which all processes of the second call are, no fill."""
    first, again = calm(storm, requests, seed=1), calm(storm, requests, seed=2)
    assert (first.requests, again.requests) == (requests, requests)
    assert (first.fills, again.fills) == (CLIPS, 0)
    assert len(first.digests) == CLIPS
    assert {len(digests) for digests in first.digests.values()} == {1}
    assert again.digests == first.digests
    counters = CodeCache(storm.database).counters()
    for name, figures in (("first", first), ("after a restart", again)):
        sys.stdout.write(report(name, figures, counters=counters) + "\n")
    assert counters["fills"] == counters["misses"] == counters["entries"] == CLIPS
    assert counters["merged"] + counters["hits_memory"] + counters["hits_disk"] == 2 * requests - CLIPS
    assert (counters["failures"], counters["repairs"], counters["changes"]) == (0, 0, 0)


def check_kills(storm: Storm, kills: Kills) -> None:
    """Every stored value is the right one, none was reported twice differently, and a dead encode is no fill."""
    counters = CodeCache(storm.database).counters()
    assert counters["fills"] == counters["entries"] == check_values(storm, kills.rounds)
    assert (counters["repairs"], counters["changes"]) == (0, 0)
    assert {len(digests) for digests in kills.digests.values()} == {1}


def test_processes_and_threads_at_once_cost_one_encode_a_clip_and_none_after_a_restart(tmp_path: Path) -> None:
    storm = prepared(tmp_path, "counting")
    check_calm(storm, 500)
    assert (tmp_path / "encodes").stat().st_size == CLIPS


def test_processes_killed_at_any_moment_lose_and_falsify_nothing(tmp_path: Path) -> None:
    storm = prepared(tmp_path, "counting")
    check_kills(storm, killing(storm, 5, seed=1))


@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_five_thousand_requests_and_twenty_kills_inside_an_encode_or_a_commit(tmp_path: Path) -> None:
    """Prints its figures, one object a line; run with `-m storm -s`."""
    storm = prepared(tmp_path, "embedded")
    check_calm(storm, 5000)
    kills = killing(storm, 20, seed=1)
    assert kills.inside >= 20
    check_kills(storm, kills)
    sys.stdout.write(report("kills", kills, counters=CodeCache(storm.database).counters()) + "\n")
