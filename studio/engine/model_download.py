"""Bring a model onto this machine: looked up, room on the disk checked, each file moved, the manifest written last.

One process at a time downloads a repository; another one waits and finds it done. What stops a download leaves behind
what has arrived, and the next download goes on there.
"""

import asyncio
import shutil
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from studio.engine.model_catalogue import ModelEntry, Repository
from studio.engine.model_errors import DiskTooFull, DownloadStopped, FileRefused
from studio.engine.model_files import Progress, ignore_progress, missing_shard
from studio.engine.model_hub import HubFile, Listing, describe, look_up
from studio.engine.model_manifest import Manifest
from studio.engine.model_store import ModelStore
from studio.engine.model_transfer import Transfer, WantedFile
from studio.engine.model_transport import Patience, Transport

Result = TypeVar("Result")
_ROOM_LEFT = 64 * 2**20
"""Bytes that stay free on the disk, so that nothing else fails for our sake."""
_POLL = 0.1
"""Seconds between two looks at whether to stop."""


def download_model(
    entry: ModelEntry,
    store: ModelStore,
    hub: str,
    *,
    progress: Progress = ignore_progress,
    cancel: threading.Event | None = None,
    patience: Patience | None = None,
) -> tuple[Manifest, ...]:
    """The manifests of language model and codec; asks the network nothing for what is there already.

    Blocks, in any thread that runs no event loop; setting `cancel` stops it within a second, and `progress` is called
    in that thread. Raises DownloadStopped, HubUnreachable, HubRefused, FileRefused, DiskTooFull, StorageError.
    """
    stop = cancel or threading.Event()
    manifests = []
    for repository in entry.repositories:
        found = store.find(repository)
        if found is None:
            with store.locked(repository, stop):
                found = store.find(repository)  # another process may have brought it while this one waited
                if found is None:
                    found = _unless_stopped(
                        lambda wanted=repository: _fetch(wanted, store, hub, progress, patience or Patience()),
                        stop,
                        repository.name,
                    )
        manifests.append(found)
    return tuple(manifests)


def _unless_stopped(work: Callable[[], Coroutine[Any, Any, Result]], stop: threading.Event, name: str) -> Result:
    """Runs `work` in an event loop of its own; once `stop` is set it is cancelled at whatever it awaits."""

    async def watched() -> Result:
        task = asyncio.ensure_future(work())
        while not task.done():
            await asyncio.wait({task}, timeout=_POLL)
            if stop.is_set():
                task.cancel()
        return task.result()

    try:
        return asyncio.run(watched())
    except asyncio.CancelledError as error:
        raise DownloadStopped(name) from error


async def _fetch(
    repository: Repository, store: ModelStore, hub: str, progress: Progress, patience: Patience
) -> Manifest:
    """Only under the repository's lock."""
    async with Transport(hub, patience) as transport:
        listing = await look_up(transport, repository.name, repository.revision)
        names = repository.choose(listing.files)
        if names is None:
            raise transport.refused(f"{repository.name} should hold {repository.wanted}, and does not")
        described = [await _described(transport, repository, listing, name) for name in names]
        wanted = [_wanted(transport, repository, file) for file in described]
        record = store.record(repository, listing.commit)
        _check_room(record, wanted)
        for file in wanted:  # so that whoever shows progress knows the whole of it from the beginning
            progress(f"{repository.name}/{file.name}", file.num_bytes - file.missing_bytes(record), file.num_bytes)
        files = []
        for file in wanted:
            transfer = Transfer(transport, repository.name, listing.commit, file, record, progress)
            files.append(await transfer.run())
        _check_shards(transport, record, names)
    manifest = Manifest(repository=repository.name, revision=listing.commit, source=hub, files=tuple(files))
    store.write(repository, manifest)
    return manifest


async def _described(transport: Transport, repository: Repository, listing: Listing, name: str) -> HubFile:
    file = listing.files[name]
    return file if file.is_described else await describe(transport, repository.name, listing.commit, name)


def _wanted(transport: Transport, repository: Repository, file: HubFile) -> WantedFile:
    """What the catalogue knows of a file counts more than what the hub says, and both must agree on the size."""
    known = repository.known_file(file.name)
    if file.num_bytes is None:
        raise transport.refused(f"it does not say how large {file.name} of {repository.name} is")
    if known is not None and known.num_bytes != file.num_bytes:
        reason = f"the hub has {file.num_bytes:,} bytes, the catalogue {known.num_bytes:,}"
        raise FileRefused(f"{repository.name}/{file.name}", reason)
    sha256 = file.sha256 if known is None else known.sha256
    if sha256 is not None:
        check = "hub-sha256" if known is None else "catalogue"
    else:
        check = "hub-size" if file.git_sha1 is None else "hub-git-sha1"
    return WantedFile(name=file.name, num_bytes=file.num_bytes, sha256=sha256, git_sha1=file.git_sha1, check=check)


def _check_room(record: Path, wanted: list[WantedFile]) -> None:
    missing = sum(file.missing_bytes(record) for file in wanted)
    place = next(folder for folder in (record, *record.parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    if missing and missing + _ROOM_LEFT > free:
        raise DiskTooFull(str(place), missing, free)


def _check_shards(transport: Transport, record: Path, names: tuple[str, ...]) -> None:
    try:
        shard = missing_shard(record, names)
    except ValueError as error:
        raise transport.refused(f"its index of the weights cannot be read ({error})") from error
    if shard is not None:
        raise transport.refused(f"its index of the weights names {shard!r}, which it does not have")
