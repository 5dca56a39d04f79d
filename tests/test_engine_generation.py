import subprocess
import sys
import threading
from collections.abc import Generator

import numpy as np
import pytest

from studio.engine.generation import GenerationLane, Stream


def chunk(value: int) -> np.ndarray:
    return np.full((1, 4), value, dtype=np.int16)


def counting(count: int, log: list[str] | None = None, name: str = "") -> Generator[np.ndarray, None, None]:
    for value in range(count):
        if log is not None:
            log.append(name)
        yield chunk(value)


def values(stream: Stream) -> list[int]:
    return [int(part[0, 0]) for part in stream]


def test_a_stream_gives_all_chunks_in_order_and_ends():
    stream = GenerationLane().open(counting(200))
    assert values(stream) == list(range(200))
    assert stream.stopped.wait(1)


def test_steps_without_sound_are_not_handed_out():
    def quiet() -> Generator[np.ndarray, None, None]:
        yield np.empty((1, 0), dtype=np.int16)
        yield chunk(3)
        yield np.empty((1, 0), dtype=np.int16)

    assert values(GenerationLane().open(quiet())) == [3]


def test_streams_take_turns_step_by_step():
    lane, log, gate = GenerationLane(), [], threading.Event()

    def holding() -> Generator[np.ndarray, None, None]:
        gate.wait(5)
        yield chunk(0)

    first = lane.open(holding())
    streams = [lane.open(counting(5, log, name)) for name in "abc"]
    gate.set()
    assert [values(stream) for stream in [first, *streams]] == [[0]] + [list(range(5))] * 3
    assert log == list("abc") * 5


def test_closing_stops_the_producer_after_the_step_that_runs():
    log: list[str] = []
    closed = threading.Event()

    def endless() -> Generator[np.ndarray, None, None]:
        try:
            while True:
                log.append("step")
                yield chunk(1)
        finally:
            closed.set()

    stream = GenerationLane(capacity=3).open(endless())
    next(stream)
    stream.close()
    assert closed.wait(5)
    assert stream.stopped.wait(5)
    assert len(log) <= 5
    assert list(stream) == []


def test_closing_wakes_a_consumer_that_waits():
    lane, gate = GenerationLane(), threading.Event()

    def stuck() -> Generator[np.ndarray, None, None]:
        gate.wait(10)
        yield chunk(0)

    stream, got = lane.open(stuck()), []
    consumer = threading.Thread(target=lambda: got.append(list(stream)))
    consumer.start()
    stream.close()
    consumer.join(5)
    gate.set()
    assert got == [[]]


def test_a_stream_that_nobody_reads_rests_and_does_not_hold_up_others():
    lane, log = GenerationLane(capacity=4), []
    idle = lane.open(counting(1000, log, "idle"))
    assert values(lane.open(counting(50))) == list(range(50))
    assert log.count("idle") <= 5
    idle.close()
    assert idle.stopped.wait(5)


def test_an_error_of_the_producer_reaches_the_consumer_after_the_chunks_before_it():
    lane = GenerationLane()

    def failing() -> Generator[np.ndarray, None, None]:
        yield chunk(1)
        raise ValueError("broken weights")

    stream = lane.open(failing())
    assert next(stream)[0, 0] == 1
    with pytest.raises(ValueError, match="broken weights"):
        next(stream)
    assert values(lane.open(counting(3))) == [0, 1, 2]


def test_an_interpreter_that_ends_while_a_stream_runs_ends_cleanly():
    program = (
        "import torch\n"
        "from studio.engine.generation import GenerationLane\n"
        "def endless():\n"
        "    while True:\n"
        "        yield (torch.ones(300, 300) @ torch.ones(300, 300)).short().numpy()[:1]\n"
        "next(GenerationLane(capacity=10**9).open(endless()))\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
