"""The files of a model as such: which names are safe, what a file's digests are, and which shards an index names.

Names from a hub, an index or a manifest are ids, not paths: each passes `is_plain_name` before it touches the disk.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

Progress = Callable[[str, int, int], None]
"""Told while bytes move or are read: `ORG/NAME/FILE`, how many bytes of it are done, and how many it has."""
INDEX_ENDING = ".index.json"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}(?<!\.)")
_DEVICES = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)
"""Names that mean a device in every folder of Windows, whatever ending they have."""
_BLOCK = 2**20


def ignore_progress(file: str, done: int, total: int) -> None:
    """For those who do not want to be told."""


def is_plain_name(name: str) -> bool:
    """Whether this is one file of one folder on every system: letters, digits, `_`, `-` and inner dots."""
    return bool(_PLAIN.fullmatch(name)) and not _DEVICES.match(name)


def is_hostile_path(path: str) -> bool:
    """Whether a repository's path could leave the folder it is written to. A harmless one may lie in folders below."""
    steps = path.split("/")
    return "\\" in path or ":" in path or "\0" in path or any(step in ("", ".", "..") for step in steps)


class Digests:
    """Grows with a file's bytes: SHA-256, and the SHA-1 by which git (so a hub) names small files."""

    def __init__(self, num_bytes: int) -> None:
        """`num_bytes`: of the whole file; git's name begins with it."""
        self._sha256 = hashlib.sha256()
        self._git = hashlib.sha1(b"blob %d\0" % num_bytes, usedforsecurity=False)

    def update(self, block: bytes) -> None:
        self._sha256.update(block)
        self._git.update(block)

    @property
    def sha256(self) -> str:
        return self._sha256.hexdigest()

    @property
    def git_sha1(self) -> str:
        return self._git.hexdigest()


def blocks(path: Path) -> Iterator[bytes]:
    """The file's bytes, 1 MiB at a time, so that whoever reads may stop in between."""
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def digests_of(path: Path, file: str, progress: Progress) -> tuple[int, Digests]:
    """Reads a whole file and returns its size in bytes with its digests; `file` names it to `progress`."""
    num_bytes, done = path.stat().st_size, 0
    digests = Digests(num_bytes)
    for block in blocks(path):
        digests.update(block)
        done += len(block)
        progress(file, done, num_bytes)
    return num_bytes, digests


def missing_shard(folder: Path, names: tuple[str, ...]) -> str | None:
    """The first name that an index among these files of `folder` refers to and that is not among them; else None.

    Raises ValueError where an index cannot be read.
    """
    for index in (name for name in names if name.endswith(INDEX_ENDING)):
        for shard in _shards(folder / index):
            if shard not in names:
                return shard
    return None


def _shards(index: Path) -> list[str]:
    try:
        content = json.loads(index.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(f"{index.name} is nested without end") from error
    places = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise ValueError(f"{index.name} has no map of tensors to files")
    return sorted(set(places.values()))


def size_of(path: Path, *, follow_symlinks: bool = True) -> int:
    """Bytes of a file; none where it is not there, or goes while it is looked at: a download or a removal may run."""
    try:
        return path.stat(follow_symlinks=follow_symlinks).st_size
    except FileNotFoundError:
        return 0


def changed_at(path: Path) -> float:
    """When a file or folder changed last, in seconds; 0 where it is not there any more."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
