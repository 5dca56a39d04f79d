"""Whether a model fits into what a device has free, said before anything is loaded."""

import ctypes
import os
import sys
from pathlib import Path

import torch

from studio.engine.model_catalogue import MemoryNeed, ModelEntry
from studio.engine.model_errors import MemoryTooSmall
from studio.errors import SettingError

_CONTROL_GROUP = Path("/sys/fs/cgroup")
_MEMORY_OF_LINUX = Path("/proc/meminfo")


def check_memory(entry: ModelEntry, device: str, dtype: str) -> None:
    """Raises MemoryTooSmall where the model needs more than the device has free now, and SettingError where it is not
    known to run there in that dtype. `device` as torch names it, as in "cuda:1"; `dtype` as in "bfloat16"."""
    needed = need_of(entry, device, dtype).num_bytes
    free = free_memory(device)
    if needed > free:
        raise MemoryTooSmall(entry.title, device, dtype, needed=needed, free=free)


def need_of(entry: ModelEntry, device: str, dtype: str) -> MemoryNeed:
    """What the catalogue says. Raises SettingError where it says nothing, naming what it knows."""
    kind = torch.device(device).type
    for need in entry.memory:
        if (need.device, need.dtype) == (kind, dtype):
            return need
    known = ", ".join(f"{need.device} with {need.dtype}" for need in entry.memory)
    raise SettingError("device", f"{device} with {dtype}", f"{entry.title} runs on {known}.")


def free_memory(device: str) -> int:
    """Bytes a program may still take on a device: of a graphics card what its driver says, of the processor what the
    operating system could give without swapping, within the limit of a container. Where the system does not tell
    (macOS) it is all the memory there is."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(torch.device(device))[0]
    if sys.platform == "win32":
        return _available_on_windows()
    if _MEMORY_OF_LINUX.is_file():
        return min(_available_on_linux(_MEMORY_OF_LINUX), _left_in_group(_CONTROL_GROUP))
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _available_on_linux(meminfo: Path) -> int:
    """The line `MemAvailable: 1234 kB`; kernels since 3.14 have it."""
    lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


def _left_in_group(group: Path) -> int:
    """What the limit of this process's control group (version 2) leaves; `sys.maxsize` where there is none. Files that
    are only cached count as taken, so it is a little less than there is."""
    limit, taken = group / "memory.max", group / "memory.current"
    if not limit.is_file() or not taken.is_file() or (said := limit.read_text().strip()) == "max":
        return sys.maxsize
    return max(int(said) - int(taken.read_text()), 0)


def _available_on_windows() -> int:
    """`ullAvailPhys` of `GlobalMemoryStatusEx`."""

    class MemoryStatus(ctypes.Structure):
        _fields_ = [
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *(
                (name, ctypes.c_ulonglong)
                for name in "total available pages pages_left virtual virtual_left more".split()
            ),
        ]

    status = MemoryStatus(length=ctypes.sizeof(MemoryStatus))
    ctypes.windll.kernel32.GlobalMemoryStatusEx(ctypes.byref(status))  # pyright: ignore[reportAttributeAccessIssue]
    return status.available
