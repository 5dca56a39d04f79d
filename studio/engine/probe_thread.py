"""The thread in which a probe computes: its thread count, dtype and attention backend are fixed there and read back."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from studio.engine.lanes import set_lane_threads
from studio.engine.probe import ProbeSetting

T = TypeVar("T")
_HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def network_dtype(setting: ProbeSetting) -> torch.dtype:
    """Of the networks' weights."""
    return _HALVES.get(setting.dtype, torch.float32)


def dtypes_on(device: str) -> tuple[str, ...]:
    """What can be asked of a probe on this device, the canonical dtype first."""
    return ("float32", "tf32", "bfloat16", "float16") if device == "cuda" else ("float32", "bfloat16", "float16")


class ProbeThread:
    """Runs one piece of work after another. It disturbs whatever else computes in this process: where a studio is
    running, use a process of its own."""

    def __init__(self, setting: ProbeSetting, device: str) -> None:
        if setting.dtype not in dtypes_on(device):
            raise ValueError(f"{setting.dtype} on {device}")
        self._setting, self._device = setting, device
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="lab-probe")

    def run(self, work: Callable[[], T]) -> T:
        """Waits for its turn, then does `work` under the setting."""
        return self._executor.submit(self._within, work).result()

    def _within(self, work: Callable[[], T]) -> T:
        """The count is set before every piece: torch keeps it with the thread, and its libraries with the process."""
        set_lane_threads(self._setting.num_threads)
        if self._device == "cuda":
            torch.set_float32_matmul_precision("high" if self._setting.dtype == "tf32" else "highest")
        with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH):
            return work()

    def networks(self) -> AbstractContextManager[object]:
        """Around what is computed in the networks' dtype: where a float32 factor meets 16 bit, torch goes on in 16."""
        dtype = network_dtype(self._setting)
        return nullcontext() if dtype is torch.float32 else torch.autocast(self._device, dtype=dtype)
