"""The original bytes of saved clips, one file an id; a file is either whole or not there."""

import os
import re
from collections.abc import Collection
from pathlib import Path

from studio.store.database import storing

_IDENTIFIER = re.compile(r"[0-9a-z][0-9a-z_-]{0,63}")
_UNFINISHED = ".part"


class ClipFiles:
    """A folder of files named by id alone, whatever the clips were called."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, identifier: str) -> Path:
        """ValueError for an id that is not letters, digits, `-` and `_`: no id leads out of the folder."""
        if not _IDENTIFIER.fullmatch(identifier):
            raise ValueError(f"{identifier!r} is not an id")
        return self._folder / identifier

    def write(self, identifier: str, content: bytes) -> None:
        """Puts the whole file there at once, on the disk when this returns."""
        path = self.path(identifier)
        unfinished = path.with_name(identifier + _UNFINISHED)
        with storing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
            with unfinished.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)

    def read(self, identifier: str) -> bytes:
        with storing(self._folder):
            return self.path(identifier).read_bytes()

    def keep_only(self, identifiers: Collection[str]) -> None:
        """Removes every file that belongs to none of the ids: what a killed process left half-made or half-removed."""
        with storing(self._folder):
            for path in self._folder.iterdir() if self._folder.is_dir() else ():
                if path.name not in identifiers:
                    path.unlink()
