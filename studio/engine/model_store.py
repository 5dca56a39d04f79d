"""Where models lie on this machine: `models/ORG--NAME/COMMIT/`, complete only with the manifest that is written last.

A folder of somebody's own is used where it lies: then only a manifest is written, in `models/ORG--NAME/local/`. Knows
nothing of a network.
"""

import logging
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from studio.engine.model_catalogue import ModelEntry, Repository
from studio.engine.model_errors import DownloadStopped, FolderUnfit, ModelAbsent, ModelInUse
from studio.engine.model_files import Progress, changed_at, digests_of, ignore_progress, size_of
from studio.engine.model_manifest import LOCAL, MANIFEST, Manifest, StoredFile, read_manifest, write_manifest
from studio.errors import StorageError

_logger = logging.getLogger(__name__)
_POLL = 0.2
"""Seconds between two looks at a lock that another process holds."""


@dataclass(frozen=True, kw_only=True)
class ModelFolders:
    """A complete model, for whoever loads it."""

    language_model: Path
    codec: Path
    revision: str
    """Names the bytes of both parts, wherever they came from."""


@dataclass(frozen=True, kw_only=True)
class Holding:
    """What there is of one repository; `manifest` is None where that is not complete."""

    repository: str
    manifest: Manifest | None
    num_bytes: int
    """Of files in this store, unfinished ones too; the files of a local folder are not counted."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One file looked at again; `fault` is None where it is still what the manifest says."""

    file: str
    fault: str | None


class ModelStore:
    """The folder of models. Nothing is made before something is put there."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def record(self, repository: Repository, revision: str) -> Path:
        """The folder of one commit, or with `LOCAL` that of a local folder's manifest; it need not be there."""
        return self._home(repository) / revision

    def find(self, repository: Repository) -> Manifest | None:
        """The complete copy with all its files in their sizes, none of them read; None where there is none."""
        manifest = self._recorded(repository)
        if manifest is None or self._first_gone(repository, manifest) is not None:
            return None
        return manifest

    def folders(self, entry: ModelEntry, hub: str) -> ModelFolders:
        """Where both parts of a model lie. Raises ModelAbsent, which names the hub to get it from, and FolderUnfit
        where a local folder is not what it was: another copy is not taken in its place."""
        found = [self._present(repository) for repository in entry.repositories]
        language_model, codec = found
        if language_model is None or codec is None:
            raise ModelAbsent(entry.name, entry.about_bytes, hub)
        return ModelFolders(
            language_model=self._folder(entry.language_model, language_model),
            codec=self._folder(entry.codec, codec),
            revision=f"{language_model.digest}+{codec.digest}",
        )

    def holdings(self, entry: ModelEntry) -> tuple[Holding, ...]:
        """What there is of each of a model's repositories."""
        return tuple(
            Holding(
                repository=repository.name,
                manifest=self.find(repository),
                num_bytes=_bytes_below(self._home(repository)),
            )
            for repository in entry.repositories
        )

    def check(self, entry: ModelEntry, hub: str, *, progress: Progress = ignore_progress) -> list[Finding]:
        """Reads every file of a model again and compares size and SHA-256; changes nothing. Raises ModelAbsent where it
        was never complete."""
        findings: list[Finding] = []
        for repository in entry.repositories:
            manifest = self._recorded(repository)
            if manifest is None:
                raise ModelAbsent(entry.name, entry.about_bytes, hub)
            folder = self._folder(repository, manifest)
            for file in manifest.files:
                findings.append(_look_at(f"{repository.name}/{file.name}", folder / file.name, file, progress))
        return findings

    def remove(self, entry: ModelEntry) -> int:
        """Removes a model, unfinished files too, and returns how many bytes of files are gone. A local folder is only
        forgotten. Raises ModelInUse while another process downloads it, StorageError where a file cannot go."""
        freed = 0
        for repository in entry.repositories:
            with self.locked_at_once(repository):
                for record in self._records(repository):
                    freed += _clear(record)
        return freed

    def write(self, repository: Repository, manifest: Manifest) -> None:
        """Makes a folder complete; what else there is of the repository and is not complete goes, and so does a local
        folder's manifest where this is none. Only under the repository's lock. StorageError where it fails."""
        record = self.record(repository, manifest.revision)
        try:
            record.mkdir(parents=True, exist_ok=True)
            write_manifest(manifest, record)
        except OSError as error:
            raise StorageError(str(record), error.strerror or str(error)) from error
        for other in self._records(repository):
            if other != record and (other.name == LOCAL or read_manifest(other) is None):
                _clear(other)

    @contextmanager
    def locked(self, repository: Repository, cancel: threading.Event) -> Iterator[None]:
        """Waits until no other process or thread changes this repository; DownloadStopped where `cancel` is set."""
        lock = self._lock(repository)
        if not _taken(lock, _POLL):
            _logger.warning("Another process is busy with %s; waiting for it.", repository.name)
            while not _taken(lock, _POLL):
                if cancel.is_set():
                    raise DownloadStopped(repository.name)
        try:
            yield
        finally:
            lock.release()

    @contextmanager
    def locked_at_once(self, repository: Repository) -> Iterator[None]:
        """Like `locked`, but raises ModelInUse instead of waiting."""
        lock = self._lock(repository)
        if not _taken(lock, 0):
            raise ModelInUse(repository.name)
        try:
            yield
        finally:
            lock.release()

    def _home(self, repository: Repository) -> Path:
        return self._root / repository.name.replace("/", "--")

    def _lock(self, repository: Repository) -> FileLock:
        """Its file lies outside the folder that is removed under it."""
        locks = self._root / "locks"
        try:
            locks.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(str(locks), error.strerror or str(error)) from error
        return FileLock(locks / f"{self._home(repository).name}.lock")

    def _records(self, repository: Repository) -> list[Path]:
        home = self._home(repository)
        return sorted(home.iterdir()) if home.is_dir() else []

    def _recorded(self, repository: Repository) -> Manifest | None:
        """What was complete once: a local folder first, then the pinned commit, else the commit that came last."""
        records = [self.record(repository, LOCAL), self.record(repository, repository.revision)]
        if repository.revision == "main":
            records += sorted(self._records(repository), key=changed_at, reverse=True)
        for record in records:
            manifest = read_manifest(record)
            if manifest is not None and (manifest.repository, manifest.revision) == (repository.name, record.name):
                return manifest
        return None

    def _present(self, repository: Repository) -> Manifest | None:
        manifest = self._recorded(repository)
        gone = None if manifest is None else self._first_gone(repository, manifest)
        if manifest is None or gone is None:
            return manifest
        if manifest.revision == LOCAL:
            raise FolderUnfit(
                manifest.source, f"{gone} is gone or has another size; put it back, or get the model again"
            )
        return None

    def _folder(self, repository: Repository, manifest: Manifest) -> Path:
        return manifest.folder(self.record(repository, manifest.revision))

    def _first_gone(self, repository: Repository, manifest: Manifest) -> str | None:
        folder = self._folder(repository, manifest)
        for file in manifest.files:
            path = folder / file.name
            if not path.is_file() or size_of(path) != file.num_bytes:
                return file.name
        return None


def _taken(lock: FileLock, timeout: float) -> bool:
    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        return False
    except OSError as error:
        raise StorageError(lock.lock_file, error.strerror or str(error)) from error
    return True


def _look_at(name: str, path: Path, file: StoredFile, progress: Progress) -> Finding:
    try:
        num_bytes, digests = digests_of(path, name, progress)
    except OSError as error:
        return Finding(file=name, fault=f"it cannot be read ({error.strerror or error})")
    if num_bytes != file.num_bytes:
        return Finding(file=name, fault=f"it has {num_bytes:,} bytes and should have {file.num_bytes:,}")
    return Finding(file=name, fault=None if digests.sha256 == file.sha256 else "its SHA-256 is another")


def _bytes_below(folder: Path) -> int:
    return sum(size_of(path, follow_symlinks=False) for path in folder.rglob("*") if not path.is_dir())


def _clear(record: Path) -> int:
    """Removes one folder, its manifest first, so that a removal that breaks leaves nothing that looks complete."""
    num_bytes = _bytes_below(record) if record.is_dir() else record.lstat().st_size
    try:
        (record / MANIFEST).unlink(missing_ok=True)
        if record.is_symlink() or not record.is_dir():
            record.unlink()
        else:
            shutil.rmtree(record)
    except OSError as error:
        raise StorageError(str(record), error.strerror or str(error)) from error
    return num_bytes
