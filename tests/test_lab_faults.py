"""Planted faults are found and named: the right verdicts turn, and no other."""

from pathlib import Path

import pytest
from lab_bench import (
    BatchFilledCodes,
    CrowdedProbe,
    LeakyProbe,
    NoisyProbe,
    RememberingProbe,
    TalkativeProbe,
    bench,
    filled_by,
    verdicts,
)

from studio.invariance.record import Record

ENCODE_NOTHING = {"sampling", "slots", "cache", "library"}
"""Experiments that do not ask the probe to encode."""
Verdicts = dict[str, str]


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    """What the codec without a fault is said to be."""
    return _said(verdicts(bench(tmp_path_factory.mktemp("sound"))))


def _said(records: dict[str, Record]) -> Verdicts:
    return {name: record.verdict for name, record in records.items()}


def _turned(found: Verdicts, sound: Verdicts) -> Verdicts:
    return {name: verdict for name, verdict in found.items() if verdict != sound[name]}


def test_without_a_fault_every_promise_holds(sound: Verdicts) -> None:
    assert "broken" not in sound.values()
    held = (
        "repeat-solo",
        "repeat-batch",
        "history",
        "neighbour",
        "padding",
        "cost",
        "cache",
        "sampling",
        "slots",
        "chunks",
    )
    assert {sound[name] for name in held} == {"holds"}
    assert sound["library"] == "not checkable"


def test_a_mask_that_leaks_turns_the_padding_only(tmp_path: Path, sound: Verdicts) -> None:
    assert _turned(_said(verdicts(bench(tmp_path, LeakyProbe))), sound) == {"padding": "broken"}


def test_an_encode_that_depends_on_the_one_before_turns_the_history_only(tmp_path: Path, sound: Verdicts) -> None:
    assert _turned(_said(verdicts(bench(tmp_path, RememberingProbe))), sound) == {"history": "broken"}


def test_noise_turns_the_repeats_and_nothing_else_can_be_said(tmp_path: Path, sound: Verdicts) -> None:
    found = _said(verdicts(bench(tmp_path, NoisyProbe)))
    assert {name for name, verdict in found.items() if verdict == "broken"} == {"repeat-solo", "repeat-batch"}
    unsaid = {
        "history",
        "solo-batch",
        "neighbour",
        "rows",
        "lengths",
        "padding",
        "margins",
        "trace",
        "settings",
        "search",
    }
    assert {found[name] for name in unsaid} == {"not checkable"}
    assert {name: found[name] for name in ENCODE_NOTHING} == {name: sound[name] for name in ENCODE_NOTHING}


def test_a_neighbour_that_is_heard_turns_the_neighbour(tmp_path: Path) -> None:
    found = _said(verdicts(bench(tmp_path, TalkativeProbe)))
    assert found["neighbour"] == "broken"
    assert {found[name] for name in ("repeat-solo", "repeat-batch", "history", "padding", "cache")} == {"holds"}


def test_a_cache_filled_by_batch_turns_the_cache_only(tmp_path: Path) -> None:
    lab = bench(tmp_path, CrowdedProbe)
    solo, batch = (_said(verdicts(each)) for each in (lab, filled_by(lab, lambda: BatchFilledCodes(lab.probe))))
    assert _turned(batch, solo) == {"cache": "broken"}


def test_a_shape_that_moves_codes_far_is_not_taken_for_rounding(tmp_path: Path) -> None:
    records = verdicts(bench(tmp_path, CrowdedProbe))
    found = _said(records)
    assert (found["solo-batch"], found["rows"], found["search"], found["margins"]) == (*("differs",) * 3, "broken")
    assert records["solo-batch"].figures["ordinary"]["differ"] > 0
    assert {found[name] for name in ("repeat-solo", "neighbour", "padding", "history")} == {"holds"}
