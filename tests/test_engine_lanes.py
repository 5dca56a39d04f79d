"""The encoder lanes: one thread each, any number of them at once, and the codes that one lane gives."""

import threading
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from counting_engine import talk
from toy_voice import toy_voice

from studio.engine import lanes
from studio.engine.embedded import EmbeddedEngine
from studio.engine.lanes import EncoderLanes, check_lanes
from studio.errors import LanesDiffer, SettingError
from studio.settings import Settings


def test_one_lane_runs_one_thing_at_a_time_with_one_intra_op_thread() -> None:
    lane, running, most = EncoderLanes(), [], []

    def encode() -> int:
        running.append(1)
        most.append(len(running))
        count = torch.get_num_threads()
        running.pop()
        return count

    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(lambda _: lane.run(encode), range(8))) == [1] * 8
    assert max(most) == 1


def test_several_lanes_run_at_once_each_with_one_intra_op_thread() -> None:
    threads = EncoderLanes(3).run_in_all(lambda: (threading.get_ident(), torch.get_num_threads()))
    assert len({identity for identity, _ in threads}) == 3
    assert {count for _, count in threads} == {1}


def test_an_error_in_a_lane_reaches_its_caller_and_the_lane_goes_on() -> None:
    lane = EncoderLanes()

    def failing() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        lane.run(failing)
    assert lane.run(lambda: 5) == 5


def test_a_lane_that_cannot_have_its_thread_count_encodes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes.torch, "get_num_threads", lambda: 4)
    with pytest.raises(BrokenExecutor):
        EncoderLanes().run(lambda: 5)


@pytest.mark.parametrize("count", [1, 3])
def test_lanes_that_give_equal_codes_pass(count: int) -> None:
    check_lanes(EncoderLanes(count), lambda: np.arange(6).reshape(2, 3), "cpu")


def test_lanes_are_refused_where_an_encode_beside_others_has_other_codes() -> None:
    running = threading.Semaphore(1)

    def disturbed() -> np.ndarray:
        """Another last code where anything else runs."""
        alone = running.acquire(blocking=False)
        codes = np.array([[1, 2, 3 if alone else 4]])
        threading.Event().wait(0.05)
        if alone:
            running.release()
        return codes

    with pytest.raises(LanesDiffer, match=r"2 of 3 encodes.*--lanes 1"):
        check_lanes(EncoderLanes(3), disturbed, "cpu")


def test_the_voice_model_has_the_codes_of_one_lane_in_several() -> None:
    clips = [talk(duration, seed=seed) for seed, duration in enumerate((0.4, 0.8, 1.2, 2.0, 3.1, 4.0))]
    one, several = EmbeddedEngine(toy_voice()), EmbeddedEngine(toy_voice(), lanes=3)
    several.check_lanes()
    expected = [one.encode(one.prepare(clip)).codes for clip in clips]
    with ThreadPoolExecutor(6) as callers:
        for _ in range(3):
            found = list(callers.map(lambda clip: several.encode(several.prepare(clip)), clips))
            assert all(np.array_equal(a.codes, b) for a, b in zip(found, expected, strict=True))
            assert {encoded.environment for encoded in found} == {several.environment}
    assert several.environment.num_threads == 1


def test_lanes_come_from_the_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings.from_environment().lanes == 1
    monkeypatch.setenv("STUDIO_LANES", "4")
    assert Settings.from_environment().lanes == 4
    assert Settings.from_environment(lanes=2).lanes == 2


@pytest.mark.parametrize("said", ["0", "-1", "many", "1.5", "1000"])
def test_a_number_of_lanes_that_cannot_be_is_a_sentence(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_LANES", said)
    with pytest.raises(SettingError, match=r"(?i)lanes"):
        Settings.from_environment()
