"""What a hub says about a repository: the commit behind a revision, its files, their sizes and digests.

The paths and headers are those of the Hugging Face Hub: `/api/models/ORG/NAME/revision/REV?blobs=true` lists files,
`/ORG/NAME/resolve/COMMIT/FILE` leads to their bytes, `X-Linked-Etag` and `ETag` name the content: a SHA-256 for large
files, for others git's SHA-1.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx

from studio.engine.model_files import is_hostile_path, is_plain_name
from studio.engine.model_transport import BrokenTransfer, Transport

_LISTING_BYTES = 16 * 2**20
_COMMIT = re.compile("[0-9a-f]{40}")
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """A file of one commit as the hub describes it; None where it does not say."""

    name: str
    num_bytes: int | None
    sha256: str | None
    git_sha1: str | None

    @property
    def is_described(self) -> bool:
        return self.num_bytes is not None and (self.sha256 or self.git_sha1) is not None


@dataclass(frozen=True, kw_only=True)
class Listing:
    """A revision looked up: the commit it is, and the files in its top folder, by name."""

    commit: str
    files: dict[str, HubFile]


async def look_up(transport: Transport, repository: str, revision: str) -> Listing:
    """Raises HubUnreachable; HubRefused where there is no such revision, or the answer is no listing, or it names a
    path that could leave a folder."""
    failures = 0
    while True:
        try:
            content = await _read(transport, f"/api/models/{repository}/revision/{quote(revision, safe='')}?blobs=true")
            return _listing(transport, content, repository, revision)
        except BrokenTransfer as error:
            failures += 1
            await transport.rest(failures, error)


async def describe(transport: Transport, repository: str, commit: str, name: str) -> HubFile:
    """What the headers of a file say, for hubs whose listing says less. Raises HubUnreachable and HubRefused."""
    failures = 0
    while True:
        try:
            async with transport.answer("HEAD", _file_path(repository, commit, name)) as (_, headers):
                return _described(name, headers)
        except BrokenTransfer as error:
            failures += 1
            await transport.rest(failures, error)


@asynccontextmanager
async def open_file(
    transport: Transport, repository: str, commit: str, name: str, *, start: int
) -> AsyncIterator[httpx.Response]:
    """The answer to asking for a file from byte `start` on: status 206 from there, or 200 from its beginning.

    Raises BrokenTransfer, also while its bytes are read; HubRefused where it is of another commit or another part.
    """
    async with transport.answer("GET", _file_path(repository, commit, name), start=start) as (response, headers):
        if headers.get("X-Repo-Commit", commit) != commit:
            raise transport.refused(f"it sends {name} of another commit than {commit}")
        if response.status_code == 206 and not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
            raise transport.refused(f"it sends another part of {name} than asked for")
        yield response


async def _read(transport: Transport, path: str) -> bytes:
    content = bytearray()
    async with transport.answer("GET", path) as (response, _):
        async for block in response.aiter_raw():
            content += block
            if len(content) > _LISTING_BYTES:
                raise transport.refused("its list of files does not end")
    return bytes(content)


def _listing(transport: Transport, content: bytes, repository: str, revision: str) -> Listing:
    try:
        fields = json.loads(content)
        commit = fields["sha"]
        siblings = {sibling["rfilename"]: sibling for sibling in fields["siblings"]}
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise transport.refused(f"it gives no list of files for {repository}") from error
    if not isinstance(commit, str) or not _COMMIT.fullmatch(commit):
        raise transport.refused(f"it names no commit for {repository}")
    if _COMMIT.fullmatch(revision) and commit != revision:
        raise transport.refused(f"it gives commit {commit} of {repository} for {revision}")
    for path in siblings:
        if not isinstance(path, str) or is_hostile_path(path):
            raise transport.refused(f"it lists {path!r}, which could leave its folder")
    files = {path: _listed(path, sibling) for path, sibling in siblings.items() if is_plain_name(path)}
    return Listing(commit=commit, files=files)


def _file_path(repository: str, commit: str, name: str) -> str:
    return f"/{repository}/resolve/{commit}/{name}"


def _listed(name: str, sibling: dict[str, Any]) -> HubFile:
    large = sibling.get("lfs")
    if isinstance(large, dict):
        sha256 = _digest(_SHA256, large.get("sha256"))
        return HubFile(name=name, num_bytes=_size(large.get("size")), sha256=sha256, git_sha1=None)
    git_sha1 = _digest(_COMMIT, sibling.get("blobId"))
    return HubFile(name=name, num_bytes=_size(sibling.get("size")), sha256=None, git_sha1=git_sha1)


def _described(name: str, headers: httpx.Headers) -> HubFile:
    etag = headers.get("X-Linked-Etag") or headers.get("ETag") or ""
    content = etag.removeprefix("W/").strip('"')
    length = headers.get("X-Linked-Size") or headers.get("Content-Length") or ""
    return HubFile(
        name=name,
        num_bytes=int(length) if length.isascii() and length.isdigit() else None,
        sha256=_digest(_SHA256, content),
        git_sha1=_digest(_COMMIT, content),
    )


def _size(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _digest(form: re.Pattern[str], value: object) -> str | None:
    return value if isinstance(value, str) and form.fullmatch(value) else None
