"""The headline says of alone and batched what the records say, and no more."""

from typing import Any

from studio.invariance.headline import headlines
from studio.invariance.record import Record, Verdict


def record(experiment: str, verdict: Verdict = "holds", threads: int = 1, **figures: Any) -> Record:
    return Record(
        experiment=experiment,
        question="?",
        setting={"dtype": "float32", "threads": threads, "seed": 0, "clips": []},
        figures=figures,
        verdict=verdict,
        sentence="",
        seconds=0.0,
    )


def shapes(ordinary: int, boundary: int, values: int, *, verdict: Verdict = "differs", threads: int = 1) -> Record:
    return record(
        "solo-batch",
        verdict,
        threads,
        ordinary={"codes": 1000, "differ": ordinary, "rate": ordinary / 1000},
        boundary={"codes": 40, "differ": boundary, "rate": boundary / 40},
        by_clip=[{"values": 1}, {"values": values}],
    )


CACHE = record("cache", clips=[{"digests": ["a"]}, {"digests": ["b"]}])


def test_alone_one_value_and_in_batches_several() -> None:
    (headline,) = headlines([shapes(78, 10, 3), CACHE])
    assert (headline.solo, headline.batched) == ("1 value per clip", "up to 3 values per clip, 7.8 % of codes")
    assert headline.note == (
        "78 of 1,000 codes of ordinary clips differ; 10 of 40 (25.0 %) of clips made to lie where a last bit decides."
    )


def test_what_only_shows_at_a_boundary_is_said_to() -> None:
    (headline,) = headlines([shapes(0, 4, 2), CACHE])
    assert headline.batched == "up to 2 values per clip, 10.0 % of codes at a boundary"


def test_where_nothing_shows_the_headline_does_not_claim_it() -> None:
    lengths = record("lengths", "differs", codes=100, differ=2, rate=0.02)
    (headline,) = headlines([shapes(0, 0, 1, verdict="holds")])
    assert (headline.solo, headline.batched) == ("", "1 value per clip too")
    assert "no promise for others" in headline.note
    (headline,) = headlines([shapes(0, 0, 1, verdict="holds"), lengths])
    assert headline.note.endswith("Beside longer clips 2.0 % differ.")


def test_noise_and_a_broken_cache_are_no_value() -> None:
    noise = shapes(5, 5, 3, verdict="not checkable")
    repeat = record("repeat-solo", "broken", codes=10, differ=3)
    (headline,) = headlines([repeat, noise])
    assert (headline.solo, headline.batched, headline.note) == ("not the same twice", "", "")
    two = record("cache", "broken", clips=[{"digests": ["a", "b"]}])
    assert headlines([two])[0].solo == "2 values per clip"


def test_every_setting_has_its_own_and_the_cache_holds_for_all() -> None:
    one, two = headlines([shapes(0, 4, 2), CACHE, shapes(10, 4, 4, threads=2)])
    assert (one.threads, two.threads) == (1, 2)
    assert one.solo == two.solo == "1 value per clip"
    assert two.batched == "up to 4 values per clip, 1.0 % of codes"
