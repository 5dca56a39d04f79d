"""Work that is done once however many ask for it at the same time, in this process and beside others.

It knows nothing of what the work is. A caller that stops waiting never stops the work: it runs on a thread of its own.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from filelock import FileLock

from studio.errors import StorageError

Result = TypeVar("Result")
_AT_ONCE = 16
"""Different keys under way at once; more wait for a free thread."""


class SingleFlight(Generic[Result]):
    """One flight a key: the first caller starts it, later callers join it until it has landed."""

    def __init__(self, locks_dir: Path) -> None:
        self._locks_dir = locks_dir
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="flight")
        self._flights: dict[str, Future[Result]] = {}
        self._lock = threading.Lock()

    def run(self, key: str, work: Callable[[], Result], *, timeout: float | None = None) -> tuple[Result, bool]:
        """The result of the key's flight, and whether this caller started it.

        Where the work fails every caller gets an exception of its own with the same message. TimeoutError after
        `timeout` seconds; the flight goes on for the others.
        """
        flight, started = self._join(key, work)
        error = flight.exception(timeout)
        if error is not None:
            raise _fresh(error) from error
        return flight.result(), started

    @contextmanager
    def alone(self, key: str) -> Iterator[None]:
        """Keeps other processes out; the operating system lets go of the lock when its holder dies."""
        lock = FileLock(self._locks_dir / f"{key}.lock")
        try:
            self._locks_dir.mkdir(parents=True, exist_ok=True)
            lock.acquire()
        except OSError as error:
            raise StorageError(str(self._locks_dir), error.strerror or str(error)) from error
        try:
            yield
        finally:
            lock.release()

    def _join(self, key: str, work: Callable[[], Result]) -> tuple[Future[Result], bool]:
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                return flight, False
            self._flights[key] = flight = self._pool.submit(self._fly, key, work)
            return flight, True

    def _fly(self, key: str, work: Callable[[], Result]) -> Result:
        try:
            return work()
        finally:
            with self._lock:
                del self._flights[key]


def _fresh(error: BaseException) -> BaseException:
    """Another exception of the same type and message, made without `__init__`, which may take other arguments."""
    fresh = type(error).__new__(type(error), *error.args)
    fresh.__dict__.update(error.__dict__)
    return fresh
