"""Take a folder of somebody's own as a model, where it lies: find both parts in it, and read each file once."""

import threading
from collections.abc import Iterator
from pathlib import Path

from studio.engine.model_catalogue import ModelEntry, Repository
from studio.engine.model_errors import FolderUnfit
from studio.engine.model_files import Progress, digests_of, ignore_progress, is_plain_name, missing_shard
from studio.engine.model_manifest import LOCAL, Manifest, StoredFile
from studio.engine.model_store import ModelStore


def adopt_folder(
    store: ModelStore, entry: ModelEntry, folder: Path, *, progress: Progress = ignore_progress
) -> tuple[Manifest, ...]:
    """Uses the files in `folder` from now on, language model and codec; they are neither copied nor ever removed.

    The two parts lie below it as `NAME`, `ORG/NAME` or `ORG--NAME`, with a folder of one commit in between where it was
    a store like ours, or as the hub's own programs keep them. Raises FolderUnfit where a part is missing or not whole;
    then nothing is changed.
    """
    whole = folder.expanduser().resolve()
    if not whole.is_dir():
        raise FolderUnfit(str(folder), "there is no such folder")
    manifests = tuple(_survey(repository, whole, progress) for repository in entry.repositories)
    for repository, manifest in zip(entry.repositories, manifests, strict=True):
        with store.locked(repository, threading.Event()):
            store.write(repository, manifest)
    return manifests


def _survey(repository: Repository, whole: Path, progress: Progress) -> Manifest:
    part = _part(repository, whole)
    names = repository.choose(_plain_files(part))
    assert names is not None, "that is how the part was found"
    try:
        shard = missing_shard(part, names)
    except ValueError as error:
        raise FolderUnfit(str(part), f"its index is damaged ({error})") from error
    if shard is not None:
        raise FolderUnfit(str(part), f"its index names {shard!r}, which is not there")
    files = tuple(_stored(repository, part / name, progress) for name in names)
    return Manifest(repository=repository.name, revision=LOCAL, source=str(part), files=files)


def _part(repository: Repository, whole: Path) -> Path:
    """The one folder that has what we want of a repository; two that have it are no choice we may make."""
    for place in _places(repository, whole):
        fitting = [folder for folder in place if repository.choose(_plain_files(folder)) is not None]
        if len(fitting) > 1:
            raise FolderUnfit(str(fitting[0].parent), "it holds more than one revision; keep one of them there")
        if fitting:
            return fitting[0]
    name = repository.name.split("/")[1]
    raise FolderUnfit(str(whole), f"a folder {name!r} in it should hold {repository.wanted}")


def _places(repository: Repository, whole: Path) -> Iterator[list[Path]]:
    """Where a repository may lie, the likeliest first; what one list names is one place."""
    for full_name in (repository.name, *repository.other_names):
        organisation, name = full_name.split("/")
        for folder in (whole / name, whole / organisation / name, whole / f"{organisation}--{name}"):
            yield [folder, *_folders_in(folder)]
        yield _folders_in(whole / f"models--{organisation}--{name}" / "snapshots")


def _folders_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []


def _plain_files(folder: Path) -> list[str]:
    """Links count as what they point to: the hub's own cache is made of them."""
    if not folder.is_dir():
        return []
    return [path.name for path in folder.iterdir() if path.is_file() and is_plain_name(path.name)]


def _stored(repository: Repository, path: Path, progress: Progress) -> StoredFile:
    """Other bytes than the catalogue's are no fault: it may be another revision, or one's own training."""
    try:
        num_bytes, digests = digests_of(path, f"{repository.name}/{path.name}", progress)
    except OSError as error:
        raise FolderUnfit(str(path.parent), f"{path.name} cannot be read ({error.strerror or error})") from error
    known = repository.known_file(path.name)
    check = "catalogue" if known is not None and known.sha256 == digests.sha256 else "none"
    return StoredFile(name=path.name, num_bytes=num_bytes, sha256=digests.sha256, check=check)
