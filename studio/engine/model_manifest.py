"""The record beside a repository's files that is written last: which files there are, with size and SHA-256.

Where it is missing the folder is not complete, whatever lies in it.
"""

import hashlib
import json
import logging
import os
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from studio.engine.model_files import is_plain_name

MANIFEST = "manifest.json"
LOCAL = "local"
"""In place of a commit: the files are somebody's own folder."""
CHECKS = ("catalogue", "hub-sha256", "hub-git-sha1", "hub-size", "none")
"""What a file was held against when it came in: the SHA-256 of our catalogue, that of the hub, the hub's git name, its
size alone because the hub gave no digest, or nothing (a local folder of other bytes than the catalogue's)."""
_FORMAT = 1
_SHA256 = re.compile("[0-9a-f]{64}")
_REVISION = re.compile(f"[0-9a-f]{{40}}|{LOCAL}")
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """One file as it was when the manifest was written."""

    name: str
    num_bytes: int
    sha256: str
    check: str
    """One of `CHECKS`."""

    def __post_init__(self) -> None:
        if not is_plain_name(self.name):
            raise ValueError(f"{self.name!r} is no file name")
        if type(self.num_bytes) is not int or self.num_bytes < 0:
            raise ValueError(f"{self.num_bytes!r} is no size")
        if not _SHA256.fullmatch(self.sha256) or self.check not in CHECKS:
            raise ValueError(f"{self.name} has no digest, or another check than we know")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All of one repository that is on this machine."""

    repository: str
    revision: str
    """The commit; or `LOCAL`."""
    source: str
    """The hub's address; for a local folder its path, where the files stay."""
    files: tuple[StoredFile, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.repository, str) or not isinstance(self.source, str):
            raise ValueError("repository and source are text")
        if not _REVISION.fullmatch(self.revision):
            raise ValueError(f"{self.revision!r} is no commit")
        if not self.files:
            raise ValueError("a model has files")

    @property
    def num_bytes(self) -> int:
        return sum(file.num_bytes for file in self.files)

    @property
    def digest(self) -> str:
        """Short name of these bytes, the same wherever they came from."""
        lines = "".join(f"{file.name} {file.sha256}\n" for file in sorted(self.files, key=lambda file: file.name))
        return hashlib.sha256(lines.encode()).hexdigest()[:12]

    def folder(self, record: Path) -> Path:
        """Where the files lie, given the folder of the record."""
        return Path(self.source) if self.revision == LOCAL else record


def write_manifest(manifest: Manifest, record: Path) -> None:
    """Into the folder `record`; after a power cut it is there whole, or not at all. OSError where that fails."""
    text = json.dumps({"format": _FORMAT} | asdict(manifest), indent=1)
    unfinished = record / f"{MANIFEST}.partial"
    with unfinished.open("w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(record / MANIFEST)


def read_manifest(record: Path) -> Manifest | None:
    """None where there is none; one that is damaged counts as none, with a line in the log."""
    try:
        fields = json.loads((record / MANIFEST).read_text(encoding="utf-8"))
        return _manifest(fields)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        _logger.warning("the manifest in %s is damaged and does not count (%s)", record, error)
        return None


def _manifest(fields: dict[str, Any]) -> Manifest:
    if fields.pop("format") != _FORMAT:
        raise ValueError("another format")
    files = tuple(StoredFile(**file) for file in fields.pop("files"))
    return Manifest(**fields, files=files)
