"""Weights in pages of 2 MB. A model on a CPU reads all of its weights once a frame or more, and with pages of 4 KB some
of the time goes into finding out where they are. Linux gives such pages to who asks for them; elsewhere nothing is
done. Nano at its size: 5 to 10 % quicker.
"""

import ctypes
import mmap
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

_PAGE = 2 << 20
_SMALLEST = 2 * _PAGE
_FULL = 0.9
"""Share of a mapping that must be in memory already: what is reserved, like a thread's stack, stays as it is."""
_COLLAPSE = 25
"""MADV_COLLAPSE of Linux 6.1, which Python's mmap has no name for: now, not when the kernel comes by."""
_HEADER = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ \S+ 0 *$")


def use_huge_pages(listing: Path = Path("/proc/self/smaps")) -> int:
    """Has the large memory that this process wrote so far, and that no file stands behind, moved into huge pages as far
    as the kernel can; returns how many bytes it moved or had moved before."""
    try:
        lines = listing.read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return 0
    advise = ctypes.CDLL(None, use_errno=True).madvise
    moved = 0
    for start, end in large_mappings(lines):
        first, last = -(-start // _PAGE) * _PAGE, end // _PAGE * _PAGE
        where, length = ctypes.c_void_p(first), ctypes.c_size_t(last - first)
        advise(where, length, mmap.MADV_HUGEPAGE)
        if advise(where, length, _COLLAPSE) == 0:
            moved += last - first
    return moved


def large_mappings(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Start and end of each mapping that is anonymous, large and filled, of the listing's lines."""
    place: tuple[int, int] | None = None
    for line in lines:
        if line.startswith("Rss:") and place is not None:
            size = place[1] - place[0]
            if size >= _SMALLEST and int(line.split()[1]) * 1024 >= _FULL * size:
                yield place
            place = None
        elif found := _HEADER.match(line):
            place = int(found[1], 16), int(found[2], 16)
