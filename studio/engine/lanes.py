"""The threads in which models run: each fixes its intra-op thread count before its first operation."""

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
import torch

from studio.errors import LanesDiffer

T = TypeVar("T")
LANE_THREADS = 1
"""Intra-op threads in every encoder lane: other counts give other last bits; the cached value is defined for one."""
_MEETING_SECONDS = 60.0
_ROUNDS = 3


def set_lane_threads(count: int = LANE_THREADS) -> None:
    """Fixes this thread's intra-op thread count before its first operation; torch keeps the count per thread."""
    torch.set_num_threads(count)
    if torch.get_num_threads() != count:
        raise RuntimeError(f"torch runs {torch.get_num_threads()} threads where {count} was asked for")


class EncoderLanes:
    """Runs up to `count` encodes at once, each alone in a thread of its own; more wait their turn."""

    def __init__(self, count: int = 1) -> None:
        if count < 1:
            raise ValueError(f"{count} lanes")
        self.count = count
        self._executor = ThreadPoolExecutor(count, thread_name_prefix="encoder-lane", initializer=set_lane_threads)

    def run(self, encode: Callable[[], T]) -> T:
        """Waits for its turn, runs `encode` in a lane and returns or raises what it did."""
        return self._executor.submit(encode).result()

    def run_in_all(self, encode: Callable[[], T]) -> list[T]:
        """Runs `encode` in every lane at the same moment, for which it waits until all lanes are free."""
        together = threading.Barrier(self.count, timeout=_MEETING_SECONDS)

        def meet() -> T:
            together.wait()
            return encode()

        return [answer.result() for answer in [self._executor.submit(meet) for _ in range(self.count)]]


def check_lanes(lanes: EncoderLanes, encode: Callable[[], np.ndarray], device: str) -> None:
    """LanesDiffer where one clip, encoded in every lane at once, has other codes than encoded while nothing else runs.

    `encode` gives the codes of a fixed clip. A single lane has nothing to be compared with and encodes nothing.
    """
    if lanes.count == 1:
        return
    alone = _digest(lanes.run(encode))
    for _ in range(_ROUNDS):
        others = sum(_digest(codes) != alone for codes in lanes.run_in_all(encode))
        if others:
            raise LanesDiffer(device, lanes.count, others)


def _digest(codes: np.ndarray) -> str:
    return hashlib.sha256(repr(codes.shape).encode() + codes.tobytes()).hexdigest()
