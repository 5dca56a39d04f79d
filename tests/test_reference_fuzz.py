"""Whatever is sent to the reference desk ends in codes or in a sentence: no traceback, no hang, no crash."""

import os
import time
from pathlib import Path

import clip_fuzz
import pytest
from clip_mutations import FORMATS, generated, valid_files

from studio.audio.files import read

CI_INPUTS = 300
ALL_INPUTS = 20_000
FAULTS = {"traceback", "hang", "crash"}


def test_300_inputs_end_in_codes_or_a_sentence(tmp_path: Path) -> None:
    check(clip_fuzz.fuzz(0, CI_INPUTS, tmp_path / "faults"), CI_INPUTS)


@pytest.mark.fuzz
@pytest.mark.timeout(6 * 3600)
def test_20000_inputs_end_in_codes_or_a_sentence(tmp_path: Path) -> None:
    check(clip_fuzz.fuzz(0, ALL_INPUTS, tmp_path / "faults"), ALL_INPUTS)


def check(outcomes: clip_fuzz.Outcomes, total: int) -> None:
    print(outcomes)  # noqa: T201 - the figures are what the run is for
    assert not outcomes.faults, outcomes.faults
    assert outcomes.counts.total() == total
    assert outcomes.counts["used"] > total / 10, "the way through is not open, so little was tried"
    assert len(outcomes.counts) >= 5
    assert outcomes.peak - outcomes.baseline < clip_fuzz.MEMORY


def test_every_format_is_read_before_it_is_mutated() -> None:
    assert len(valid_files()) >= 2 * len(FORMATS) + 10
    for content in valid_files():
        assert read(content, name="valid").duration == pytest.approx(1.2, abs=0.12)


def test_the_same_seed_makes_the_same_input() -> None:
    assert [generated(seed) for seed in range(20)] == [generated(seed) for seed in range(20)]
    assert len({generated(seed) for seed in range(50)}) == 50


CHILD = """
import json, os, signal, sys, time
if os.environ["FUZZ_TEST"] == "crash": signal.signal(signal.SIGABRT, signal.SIG_DFL)
for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    if seed == 2:
        if os.environ["FUZZ_TEST"] == "crash": os.abort()
        if os.environ["FUZZ_TEST"] == "hang": time.sleep(60)
    outcome = os.environ["FUZZ_TEST"] if seed == 2 else "used"
    print(json.dumps({"seed": seed, "outcome": outcome, "reason": "", "seconds": 0, "memory": 1}), flush=True)
"""


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_is_counted_kept_and_does_not_end_the_run(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child.py"
    child.write_text(CHILD)
    monkeypatch.setattr(clip_fuzz, "CHILD", child)
    monkeypatch.setattr(clip_fuzz, "PATIENCE", 5.0)
    monkeypatch.setenv("FUZZ_TEST", fault)
    outcomes = clip_fuzz.fuzz(0, 5, tmp_path / "faults")
    assert dict(outcomes.counts) == {"used": 4, fault: 1}
    assert (tmp_path / "faults" / "input-2").read_bytes() == generated(2)
    assert set(outcomes.faults) == {2}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit of processor time")
def test_an_input_has_a_limit_of_processor_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    child = tmp_path / "child.py"
    child.write_text("import resource\nresource.setrlimit(resource.RLIMIT_CPU, (1, 9))\nwhile True: pass")
    monkeypatch.setattr(clip_fuzz, "CHILD", child)
    started = time.monotonic()
    outcomes = clip_fuzz.fuzz(0, 1, tmp_path)
    assert dict(outcomes.counts) == {"hang": 1}
    assert time.monotonic() - started < clip_fuzz.PATIENCE
