"""One flight a key: joined by all who ask meanwhile, failed for each alike, and never stopped by who stops waiting."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from studio.errors import DegenerateCodes, StorageError, StudioError
from studio.single_flight import SingleFlight


@pytest.fixture
def flights(tmp_path: Path) -> SingleFlight[int]:
    return SingleFlight(tmp_path / "locks")


def test_callers_at_once_share_one_flight(flights: SingleFlight[int]) -> None:
    landing, runs = threading.Event(), []

    def work() -> int:
        runs.append(1)
        assert landing.wait(10)
        return 7

    with ThreadPoolExecutor(16) as callers:
        answers = [callers.submit(flights.run, "k", work) for _ in range(16)]
        time.sleep(0.1)
        landing.set()
        results = [answer.result() for answer in answers]
    assert len(runs) == 1
    assert [value for value, _ in results] == [7] * 16
    assert sum(started for _, started in results) == 1


def test_a_later_caller_starts_another_flight(flights: SingleFlight[int]) -> None:
    assert flights.run("k", lambda: 1) == (1, True)
    assert flights.run("k", lambda: 2) == (2, True)


def test_two_keys_fly_side_by_side(flights: SingleFlight[int]) -> None:
    both = threading.Barrier(2, timeout=10)
    with ThreadPoolExecutor(2) as callers:
        answers = [callers.submit(flights.run, key, both.wait) for key in ("a", "b")]
        assert sorted(answer.result()[0] for answer in answers) == [0, 1]


def test_each_caller_gets_an_error_of_its_own_with_the_same_message(flights: SingleFlight[int]) -> None:
    landing = threading.Event()

    def work() -> int:
        assert landing.wait(10)
        raise DegenerateCodes("every frame is the same")

    with ThreadPoolExecutor(4) as callers:
        answers = [callers.submit(flights.run, "k", work) for _ in range(4)]
        time.sleep(0.1)
        landing.set()
        errors = [answer.exception() for answer in answers]
    assert all(isinstance(error, DegenerateCodes) for error in errors)
    assert {str(error) for error in errors} == {str(DegenerateCodes("every frame is the same"))}
    assert len({id(error) for error in errors}) == 4


def test_a_failure_is_not_kept(flights: SingleFlight[int]) -> None:
    def fail() -> int:
        raise StudioError("no")

    with pytest.raises(StudioError, match="no"):
        flights.run("k", fail)
    assert flights.run("k", lambda: 1) == (1, True)


def test_who_stops_waiting_does_not_stop_the_flight(flights: SingleFlight[int]) -> None:
    landing = threading.Event()

    def work() -> int:
        assert landing.wait(10)
        return 7

    with pytest.raises(TimeoutError):
        flights.run("k", work, timeout=0.05)
    with ThreadPoolExecutor(1) as callers:
        joined = callers.submit(flights.run, "k", work)
        with pytest.raises(TimeoutError):
            flights.run("k", work, timeout=0.05)
        landing.set()
        assert joined.result(10) == (7, False)


def test_alone_keeps_a_second_one_out_until_the_first_is_done(tmp_path: Path) -> None:
    mine, theirs = SingleFlight(tmp_path / "locks"), SingleFlight(tmp_path / "locks")
    order: list[str] = []

    def enter() -> None:
        with theirs.alone("k"):
            order.append("second")

    with mine.alone("k"):
        second = threading.Thread(target=enter)
        second.start()
        time.sleep(0.2)
        order.append("first")
    second.join(10)
    assert order == ["first", "second"]
    with mine.alone("other"), theirs.alone("k"):
        pass


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="--data-dir"), SingleFlight(tmp_path / "file" / "locks").alone("k"):
        pass
