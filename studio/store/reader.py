"""One connection that stays open for reading: it tells cheaply whether anybody has written, and reads single rows.

While it is open the calls beside it never are the last to close, which makes SQLite copy the log back: a write costs
one sync instead of three.
"""

import os
import sqlite3
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from studio.store.database import BUSY_TIMEOUT, check_version, connection, sentences, storing

Version = tuple[int, int]


class Reader:
    """Safe from any thread; opens anew where the file was replaced and in a forked process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connected: sqlite3.Connection | None = None
        self._close: Callable[[], object] = lambda: None
        self._opened: tuple[int, int, int] | None = None
        """Process, device and inode that the connection belongs to."""
        self._openings = 0
        self._data_version = 0
        with self._lock, sentences(path):
            self._current()

    def version(self) -> Version:
        """Another value than before where anybody, in any process, has written to the database since."""
        with self._lock, sentences(self._path):
            current = self._current()
            data_version = current.execute("PRAGMA data_version").fetchall()[0][0]
            if data_version != self._data_version:
                check_version(current.execute("PRAGMA user_version").fetchall()[0][0], self._path)
                self._data_version = data_version
            return self._openings, data_version

    def row(self, statement: str, parameters: list[Any]) -> tuple[Any, ...] | None:
        """The first row of a SELECT as it is stored now."""
        with self._lock, sentences(self._path):
            # All rows, because a statement that is not read to its end keeps the log from being copied back.
            rows = self._current().execute(statement, parameters).fetchall()
        return rows[0] if rows else None

    def close(self) -> None:
        """Lets go of the database; a later call opens it again."""
        with self._lock:
            self._let_go()

    def _current(self) -> sqlite3.Connection:
        if self._connected is None or self._opened != self._identity():
            self._open()
        assert self._connected is not None
        return self._connected

    def _open(self) -> None:
        self._let_go()
        with connection(self._path):
            opened = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT, check_same_thread=False)
            opened.execute("SELECT 1 FROM sqlite_schema").fetchall()
        self._close = weakref.finalize(self, _close, opened, os.getpid())
        self._connected = opened
        self._opened = self._identity()
        self._openings += 1
        self._data_version = 0

    def _identity(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - twice as quick as Path.stat, and on the way of every hit
        except FileNotFoundError:
            return None
        except OSError:
            with storing(self._path.parent):
                raise
        return os.getpid(), found.st_dev, found.st_ino

    def _let_go(self) -> None:
        self._connected = None
        self._close()


def _close(opened: sqlite3.Connection, process: int) -> None:
    if process == os.getpid():
        opened.close()
    else:
        _INHERITED.append(opened)


_INHERITED: list[sqlite3.Connection] = []
"""What a forked process got from its parent: SQLite forbids it to touch these, even to close them."""
