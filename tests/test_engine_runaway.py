"""When speech counts as run away."""

import numpy as np
import pytest

from studio.engine.runaway import Runaway, RunawayLimits, RunawayWatchdog

LIMITS = RunawayLimits(budget=100, repeated=4, silent=6)
SILENT = frozenset({7})


def verdict(frames: list[list[int]], limits: RunawayLimits = LIMITS) -> tuple[int, Runaway] | None:
    """The first frame, from 1, at which the watchdog speaks, and what it says."""
    watchdog = RunawayWatchdog(limits, SILENT)
    for number, frame in enumerate(frames, start=1):
        reason = watchdog.observe(np.array(frame))
        if reason is not None:
            return number, reason
    return None


def test_speech_that_changes_and_ends_in_time_is_left_alone() -> None:
    assert verdict([[index % 5, index] for index in range(100)]) is None


def test_the_first_frame_beyond_the_budget_is_too_much() -> None:
    assert verdict([[index % 5, index] for index in range(200)]) == (101, Runaway.OVER_BUDGET)


def test_frames_that_are_all_equal_are_a_repetition() -> None:
    assert verdict([[1, 2], [3, 4], *[[5, 6]] * 9]) == (6, Runaway.REPEATS)


def test_frames_that_differ_in_a_later_codebook_are_no_repetition() -> None:
    assert verdict([[5, index % 2] for index in range(50)]) is None


def test_a_run_that_is_broken_begins_anew() -> None:
    assert verdict([[5, 6]] * 3 + [[1, 1]] + [[5, 6]] * 3) is None


def test_a_long_silence_is_an_end_that_was_missed() -> None:
    assert verdict([[1, 2], *[[7, index] for index in range(20)]]) == (7, Runaway.SILENT)


def test_a_pause_in_the_middle_is_left_alone() -> None:
    assert verdict([[7, index] for index in range(5)] + [[1, 2]] + [[7, index] for index in range(5)]) is None


def test_without_known_silence_only_equal_frames_count() -> None:
    watchdog = RunawayWatchdog(LIMITS)
    assert all(watchdog.observe(np.array([7, index])) is None for index in range(50))


@pytest.mark.parametrize("limits", [{"budget": 0}, {"budget": 9, "repeated": 0}, {"budget": 9, "silent": -1}])
def test_limits_that_leave_no_frame_are_refused(limits: dict) -> None:
    with pytest.raises(ValueError, match="before the first frame"):
        RunawayLimits(**limits)


def test_frames_that_are_decoded_to_silence_count_as_silent_ones():
    dog, frame = RunawayWatchdog(RunawayLimits(budget=100, silent=3)), np.arange(4)
    seen = [dog.observe(frame + number, silent=number != 1) for number in range(5)]
    assert seen == [None, None, None, None, Runaway.SILENT]
