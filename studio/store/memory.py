"""A bounded number of bytes kept in memory, the least recently used going first."""

import threading
from collections import OrderedDict
from typing import Generic, TypeVar

Value = TypeVar("Value")


class RecentlyUsed(Generic[Value]):
    """Values by key, up to `max_bytes` in all; safe from any thread. A value larger than the bound is not kept."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._num_bytes = 0
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> Value | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def put(self, key: str, value: Value, num_bytes: int) -> None:
        """Keeps a value in place of an earlier one, and drops the oldest until all fit."""
        with self._lock:
            self._drop(key)
            self._values[key] = (value, num_bytes)
            self._num_bytes += num_bytes
            while self._num_bytes > self._max_bytes:
                self._drop(next(iter(self._values)))

    @property
    def num_bytes(self) -> int:
        return self._num_bytes

    def _drop(self, key: str) -> None:
        _, num_bytes = self._values.pop(key, (None, 0))
        self._num_bytes -= num_bytes
