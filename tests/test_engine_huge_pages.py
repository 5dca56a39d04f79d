"""Memory in huge pages: what is asked for, and that nothing in it changes."""

import sys
from pathlib import Path

import numpy as np
import pytest

from studio.engine.huge_pages import large_mappings, use_huge_pages

LISTING = """\
7f0000000000-7f0000a00000 rw-p 00000000 00:00 0
Size:              10240 kB
Rss:               10000 kB
7f0001000000-7f0001a00000 rw-p 00000000 00:00 0
Size:              10240 kB
Rss:                  64 kB
7f0002000000-7f0002100000 rw-p 00000000 00:00 0
Size:               1024 kB
Rss:                1024 kB
7f0003000000-7f0003a00000 r--p 00000000 fe:00 1234                       /usr/lib/libsomething.so
Size:              10240 kB
Rss:               10240 kB
7f0004000000-7f0004a00000 rw-p 00000000 fe:00 1234                       /usr/lib/libsomething.so
Size:              10240 kB
Rss:               10240 kB
5f0004000000-5f0004a00000 rw-p 00000000 00:00 0                          [heap]
Size:              10240 kB
Rss:               10240 kB
"""


def test_only_memory_that_is_large_written_and_of_no_file_counts() -> None:
    assert list(large_mappings(LISTING.splitlines())) == [(0x7F0000000000, 0x7F0000A00000)]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has such pages to ask for")
def test_what_is_moved_stays_what_it_is() -> None:
    numbers = np.arange(8 << 20, dtype=np.float32)
    moved = use_huge_pages()
    assert moved >= 0
    assert np.array_equal(numbers, np.arange(8 << 20, dtype=np.float32))


def test_where_there_is_no_such_listing_nothing_is_done(tmp_path: Path) -> None:
    assert use_huge_pages(tmp_path / "smaps") == 0
