"""The switches of torch that decide last bits, held still for as long as anybody needs them so.

Attention by plain matrix products, and float32 products in float32 (no TF32). Torch keeps both for the whole process:
where two threads each set them and set them back, the second works on under what the first restored.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

ATTENTION = "sdpa-math"
"""What a cache key calls it."""


class _Switches:
    """Sets them with the first who asks, sets them back with the last who leaves."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders = 0
        self._back = ExitStack()

    @contextmanager
    def held(self) -> Iterator[None]:
        with self._lock:
            if self._holders == 0:
                self._back.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
                torch.set_float32_matmul_precision("highest")
                self._back.enter_context(sdpa_kernel(SDPBackend.MATH))
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if self._holders == 0:
                    self._back.close()


_SWITCHES = _Switches()


def fixed_arithmetic() -> AbstractContextManager[None]:
    """A block in which last bits do not depend on what other threads do with torch's switches."""
    return _SWITCHES.held()
