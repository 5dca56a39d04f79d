"""Move one file here: into `FILE.partial`, broken transfers taken up at the byte where they broke, and its name given
only after the bytes on the disk were held against what was promised.
"""

import asyncio
import os
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Literal

from studio.engine.model_errors import FileRefused
from studio.engine.model_files import Digests, Progress, blocks
from studio.engine.model_hub import open_file
from studio.engine.model_manifest import StoredFile
from studio.engine.model_transport import BrokenTransfer, Transport
from studio.errors import StorageError


@dataclass(frozen=True, kw_only=True)
class WantedFile:
    """One file, and all it must be to be kept; a digest is None where nobody gave one."""

    name: str
    num_bytes: int
    sha256: str | None
    git_sha1: str | None
    check: str
    """As in `StoredFile`."""

    def place(self, folder: Path) -> Path:
        return folder / self.name

    def unfinished(self, folder: Path) -> Path:
        return folder / f"{self.name}.partial"

    def missing_bytes(self, folder: Path) -> int:
        """How many bytes are still to come."""
        here = max(_size(self.place(folder)), _size(self.unfinished(folder)))
        return max(self.num_bytes - here, 0)

    def fault(self, digests: Digests) -> str | None:
        """What is wrong with bytes of these digests; None where nothing is."""
        if self.sha256 not in (None, digests.sha256):
            return f"its SHA-256 is {digests.sha256} instead of {self.sha256}"
        if self.git_sha1 not in (None, digests.git_sha1):
            return f"its git SHA-1 is {digests.git_sha1} instead of {self.git_sha1}"
        return None


class Transfer:
    """One file of one commit on its way into a folder."""

    def __init__(
        self,
        transport: Transport,
        repository: str,
        commit: str,
        file: WantedFile,
        folder: Path,
        progress: Progress,
    ) -> None:
        self._transport = transport
        self._repository = repository
        self._commit = commit
        self._file = file
        self._folder = folder
        self._place = file.place(folder)
        self._partial = file.unfinished(folder)
        self._progress = progress
        self._title = f"{repository}/{file.name}"

    async def run(self) -> StoredFile:
        """Raises FileRefused, and the bytes are gone, where they are not what was promised; HubUnreachable and
        HubRefused, StorageError where the disk does not take them, and what has arrived stays."""
        self._begin()
        await self._complete()
        digests = await self._digests()
        fault = self._file.fault(digests)
        if fault is not None:
            self._partial.unlink()
            raise FileRefused(self._title, fault)
        self._finish()
        return StoredFile(
            name=self._file.name, num_bytes=self._file.num_bytes, sha256=digests.sha256, check=self._file.check
        )

    def _begin(self) -> None:
        """A file that has its name already but no manifest vouches for is a partial one that may be complete."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self._place.is_file():
                self._place.replace(self._partial)
            if _size(self._partial) > self._file.num_bytes:
                self._partial.unlink()
            self._partial.touch()
        except OSError as error:
            raise self._disk_fault(error) from error

    async def _complete(self) -> None:
        failures = 0
        while (start := _size(self._partial)) < self._file.num_bytes:
            try:
                await self._receive(start)
            except BrokenTransfer as error:
                failures = 1 if _size(self._partial) > start else failures + 1
                await self._transport.rest(failures, error)

    async def _receive(self, start: int) -> None:
        opened = open_file(self._transport, self._repository, self._commit, self._file.name, start=start)
        async with opened as response:
            goes_on = response.status_code == 206
            done = start if goes_on else 0
            with self._open("a" if goes_on else "w") as file:
                self._progress(self._title, done, self._file.num_bytes)
                async for block in response.aiter_raw():
                    done += len(block)
                    if done > self._file.num_bytes:
                        break
                    self._write(file, block)
                    self._progress(self._title, done, self._file.num_bytes)
        if done > self._file.num_bytes:
            self._partial.unlink()
            raise FileRefused(self._title, f"it has more than {self._file.num_bytes:,} bytes")
        if done < self._file.num_bytes:
            raise BrokenTransfer("the answer ended early")

    async def _digests(self) -> Digests:
        """Of the bytes as they are on the disk, whichever download they came with."""
        digests = Digests(self._file.num_bytes)
        try:
            for block in blocks(self._partial):
                digests.update(block)
                await asyncio.sleep(0)  # gigabytes take a while, and a download may be stopped at any await
        except OSError as error:
            raise self._disk_fault(error) from error
        return digests

    def _finish(self) -> None:
        try:
            with self._partial.open("rb+") as file:
                os.fsync(file.fileno())
            self._partial.replace(self._place)
        except OSError as error:
            raise self._disk_fault(error) from error

    def _open(self, mode: Literal["a", "w"]) -> FileIO:
        """Without a buffer: one would be written once more when the file is closed, and fail again on a full disk."""
        try:
            return FileIO(self._partial, mode)
        except OSError as error:
            raise self._disk_fault(error) from error

    def _write(self, file: FileIO, block: bytes) -> None:
        rest = memoryview(block)
        while rest:
            try:
                rest = rest[file.write(rest) :]
            except OSError as error:
                raise self._disk_fault(error) from error

    def _disk_fault(self, error: OSError) -> StorageError:
        return StorageError(str(self._folder), error.strerror or str(error))


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
