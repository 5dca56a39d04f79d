"""Zip files that come from anywhere: only what is expected is read, up to stated sizes; anything else is refused.

Nothing is ever extracted by a name from inside: who reads an archive asks for members by name and gets bytes.
"""

import hashlib
import json
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from studio.errors import ArchiveError

MANIFEST = "manifest.json"
LARGEST_MANIFEST = 8 * 2**20
DEEPEST_MANIFEST = 12
_BLOCK = 1 << 20
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time stamp of every member, so that equal content is an equal archive."""
_PLAIN = re.compile(r"[0-9a-z._/-]{1,128}")
_STEPS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


class Archive:
    """An opened archive whose list of members has been checked; ArchiveError where anything about it is not right."""

    def __init__(self, path: Path, *, may_hold: Callable[[str], bool], largest: int, most: int) -> None:
        """`may_hold` says which names are expected; `largest` bounds the bytes of all members, as declared and as they
        come; `most` their number."""
        self.name = path.name
        self._left = largest
        with self._reading():
            self._zip = zipfile.ZipFile(path)
        self._members: dict[str, zipfile.ZipInfo] = {}
        try:
            self._check_members(may_hold, largest, most)
        except ArchiveError:
            self._zip.close()
            raise

    @property
    def names(self) -> set[str]:
        return set(self._members)

    def size(self, member: str) -> int:
        """Bytes of a member, as declared; reading gives exactly so many or is refused."""
        return self._member(member).file_size

    def read(self, member: str, *, largest: int) -> bytes:
        """All bytes of a member of at most `largest`."""
        if self.size(member) > largest:
            raise self.refusal(f"{member} has {self.size(member):,} bytes, and at most {largest:,} are read")
        return b"".join(self.blocks(member))

    def blocks(self, member: str) -> Iterator[bytes]:
        """The bytes of a member, never more than were declared and never more than the archive may have in all."""
        expected = self.size(member)
        with self._reading(), self._zip.open(self._member(member)) as file:
            while block := file.read(_BLOCK):
                expected -= len(block)
                self._left -= len(block)
                if expected < 0 or self._left < 0:
                    raise self.refusal(f"{member} is larger than it says")
                yield block
        if expected:
            raise self.refusal(f"{member} is shorter than it says")

    def manifest(self, kind: str, version: int) -> dict[str, Any]:
        """The object in manifest.json, whose `format` and `version` are these; the rest of it is not checked yet."""
        if MANIFEST not in self._members:
            raise self.refusal(f"it has no {MANIFEST}")
        text = self.read(MANIFEST, largest=LARGEST_MANIFEST)
        if _depth(text) > DEEPEST_MANIFEST:
            raise self.refusal(f"its {MANIFEST} is nested deeper than {DEEPEST_MANIFEST} levels")
        try:
            found = json.loads(text)
        except ValueError as error:
            raise self.refusal(f"its {MANIFEST} is not JSON") from error
        if not isinstance(found, dict) or found.get("format") != kind:
            raise self.refusal(f"it is not a {kind}")
        if found.get("version") != version or isinstance(found["version"], bool):
            raise self.refusal(f"it is of version {str(found.get('version'))[:20]}, and this studio reads {version}")
        return found

    def refusal(self, reason: str) -> ArchiveError:
        return ArchiveError(self.name, reason)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._zip.close()

    def _member(self, name: str) -> zipfile.ZipInfo:
        if name not in self._members:
            raise self.refusal(f"{name} is missing")
        return self._members[name]

    def _check_members(self, may_hold: Callable[[str], bool], largest: int, most: int) -> None:
        infos = self._zip.infolist()
        if len(infos) > most:
            raise self.refusal(f"it has {len(infos):,} members, and at most {most:,} are read")
        if sum(info.file_size for info in infos) > largest:
            raise self.refusal(f"it unpacks to more than {largest // 2**20:,} MB")
        for info in infos:
            name = info.orig_filename  # as it is written: `filename` is already cut and straightened
            reason = _objection(info, name) or ("" if may_hold(name) else f"{_shown(name)} does not belong in it")
            if reason or name in self._members:
                raise self.refusal(reason or f"{name} is in it twice")
            self._members[name] = info

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """What zipfile and zlib say of a broken file, in one sentence."""
        try:
            yield
        except FileNotFoundError as error:
            raise self.refusal("there is no such file") from error
        except (
            zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, OverflowError
        ) as error:  # fmt: skip
            raise self.refusal(f"it is no whole zip file ({str(error)[:80] or type(error).__name__})") from error


class ArchiveWriter:
    """Writes an archive that `Archive` reads; equal members make equal bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED)

    def add(self, member: str, content: bytes, *, squeeze: bool = False) -> None:
        info = zipfile.ZipInfo(member, _EPOCH)
        info.compress_type = zipfile.ZIP_DEFLATED if squeeze else zipfile.ZIP_STORED
        self._zip.writestr(info, content)

    def add_file(self, member: str, path: Path) -> tuple[str, int]:
        """Copies a file in as it is now; returns SHA-256 and number of the bytes that were copied."""
        digest, size = hashlib.sha256(), 0
        with (
            path.open("rb") as source,
            self._zip.open(zipfile.ZipInfo(member, _EPOCH), "w", force_zip64=True) as target,
        ):
            while block := source.read(_BLOCK):
                digest.update(block)
                size += len(block)
                target.write(block)
        return digest.hexdigest(), size

    def close(self) -> None:
        self._zip.close()


def _objection(info: zipfile.ZipInfo, name: str) -> str:
    """What is wrong with a member whatever it holds; blank where nothing is."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    if name.startswith(("/", "\\")) or ".." in re.split(r"[/\\]", name) or "\\" in name or ":" in name:
        return f"{_shown(name)} is a path, and members have plain names"
    if kind not in (0, stat.S_IFREG):
        return f"{_shown(name)} is a link or another thing that is no file"
    if info.flag_bits & 0x1:
        return "it is encrypted"
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return f"{_shown(name)} is packed in a way that is not read here"
    return "" if _PLAIN.fullmatch(name) else f"{_shown(name)} does not belong in it"


def _shown(name: str) -> str:
    return ascii(name if len(name) <= 60 else name[:60] + "…")


def _depth(text: bytes) -> int:
    """How deep brackets are nested outside strings, without recursion."""
    deepest = depth = 0
    for step in _STEPS.finditer(text.decode("utf-8", "replace")):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(step[0], 0)
        deepest = max(deepest, depth)
    return deepest
