"""A hub on this machine with the paths and headers of the real one, and with faults that can be switched on.

As the real one does, it answers large files with a redirect to another path that holds the bytes, small ones directly.
"""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from studio.engine.model_catalogue import MOSS_NANO, KnownFile, ModelEntry, Repository

INDEX = "model.safetensors.index.json"
_PIECE = 4096


@dataclass(frozen=True)
class Request:
    """What was asked for, and how many bytes of a body were sent."""

    method: str
    path: str
    start: int
    sent: int


@dataclass
class ToyHub:
    """What it has, how it fails, and what it was asked."""

    repositories: dict[str, dict[str, dict[str, bytes]]] = field(default_factory=dict)
    """Repository to commit to path to bytes; the last commit is `main`."""
    renamed: dict[str, str] = field(default_factory=dict)
    breaks: dict[str, list[int]] = field(default_factory=dict)
    """File to byte counts: each answer in turn is cut off after so many bytes."""
    statuses: list[int] = field(default_factory=list)
    """Statuses of the next answers, whatever is asked."""
    retry_after: str = "0"
    pace: float = 0.0
    """Seconds between two pieces of 4 KiB."""
    stall: dict[str, int] = field(default_factory=dict)
    """File to the byte after which nothing comes any more, with the connection open."""
    corrupt: set[str] = field(default_factory=set)
    """Files whose last byte is sent wrong."""
    without_digests: bool = False
    """The listing names files only, as some mirrors do; their headers describe them."""
    without_ranges: bool = False
    hostile_paths: list[str] = field(default_factory=list)
    sends_on_to: str | None = None
    """Where the bytes of large files are said to be."""
    listing: bytes | None = None
    """What it answers in place of a listing."""
    listed_size: dict[str, int] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def publish(self, repository: str, files: dict[str, bytes], *, commit: str | None = None) -> str:
        """Adds a commit, which is then `main`, and returns its name."""
        names = "".join(f"{name} {hashlib.sha1(content).hexdigest()}\n" for name, content in files.items())  # noqa: S324
        commit = commit or hashlib.sha1(names.encode()).hexdigest()  # noqa: S324
        self.repositories.setdefault(repository, {})[commit] = files
        return commit

    def bodies(self, name: str) -> list[Request]:
        """The requests that were answered with bytes of a file."""
        return [request for request in self.requests if request.path.endswith(f"/{name}") and request.sent]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub: ToyHub

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        said = self.headers.get("Range")
        self.start = int(said.removeprefix("bytes=").rstrip("-")) if said else 0
        self.sent = 0
        try:
            if hub.statuses:
                self._answer(hub.statuses.pop(0), {"Retry-After": hub.retry_after}, b"")
            else:
                self._route(path)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        hub.requests.append(Request(self.command, path, self.start, self.sent))

    def _route(self, path: str) -> None:
        parts = path.strip("/").split("/")
        is_listing = parts[:2] == ["api", "models"]
        organisation, name = parts[2:4] if is_listing else parts[:2]
        new = self.hub.renamed.get(f"{organisation}/{name}")
        if new is not None:
            self._answer(307, {"Location": self.path.replace(f"{organisation}/{name}", new)}, b"")
        elif is_listing:
            self._listing(f"{organisation}/{name}", parts[5])
        elif parts[0] == "bytes":
            self._file(parts[1:3], parts[3], parts[4], {})
        else:
            self._resolve([organisation, name], parts[3], parts[4])

    def _listing(self, repository: str, revision: str) -> None:
        commits = self.hub.repositories.get(repository, {})
        commit = list(commits)[-1] if revision == "main" and commits else revision
        if commit not in commits:
            self._answer(404, {}, b"")
            return
        siblings = [self._sibling(path, content) for path, content in commits[commit].items()]
        siblings += [{"rfilename": path} for path in self.hub.hostile_paths]
        whole = json.dumps({"id": repository, "sha": commit, "siblings": siblings}).encode()
        self._answer(200, {}, whole if self.hub.listing is None else self.hub.listing)

    def _sibling(self, path: str, content: bytes) -> dict[str, Any]:
        if self.hub.without_digests:
            return {"rfilename": path}
        size = self.hub.listed_size.get(path, len(content))
        if is_large(path):
            return {"rfilename": path, "size": size, "lfs": {"size": size, "sha256": sha256(content)}}
        return {"rfilename": path, "size": size, "blobId": git_sha1(content)}

    def _resolve(self, repository: list[str], commit: str, name: str) -> None:
        content = self.hub.repositories.get("/".join(repository), {}).get(commit, {}).get(name)
        if content is None:
            self._answer(404, {}, b"")
            return
        headers = {"X-Repo-Commit": commit}
        if not is_large(name):
            self._file(repository, commit, name, headers | {"ETag": f'"{git_sha1(content)}"'})
            return
        headers |= {"X-Linked-Etag": f'"{sha256(content)}"', "X-Linked-Size": str(len(content))}
        location = self.hub.sends_on_to or f"/bytes/{'/'.join(repository)}/{commit}/{name}"
        self._answer(302, headers | {"Location": location}, b"")

    def _file(self, repository: list[str], commit: str, name: str, headers: dict[str, str]) -> None:
        content = self.hub.repositories["/".join(repository)][commit][name]
        if name in self.hub.corrupt:
            content = content[:-1] + bytes([content[-1] ^ 1])
        if self.start and not self.hub.without_ranges:
            headers |= {"Content-Range": f"bytes {self.start}-{len(content) - 1}/{len(content)}"}
            self._answer(206, headers, content[self.start :], name)
        else:
            self._answer(200, headers, content, name)

    def _answer(self, status: int, headers: dict[str, str], body: bytes, name: str = "") -> None:
        self.send_response(status)
        for header, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(header, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        breaks = self.hub.breaks.get(name, [])
        end = breaks.pop(0) if breaks else len(body)
        stall = self.hub.stall.get(name, len(body) + self.start) - self.start
        for place in range(0, min(end, max(stall, 0)), _PIECE):
            piece = body[place : min(place + _PIECE, end, stall)]
            self.wfile.write(piece)
            self.sent += len(piece)
            time.sleep(self.hub.pace)
        if stall < len(body):
            self.hub.closing.wait()
        if end < len(body):
            self.close_connection = True


@contextmanager
def serving(hub: ToyHub) -> Iterator[ToyHub]:
    """Answers on a free port of this machine until the block ends."""
    handler = type("Handler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield hub
    finally:
        hub.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()


def is_large(name: str) -> bool:
    return name.endswith((".safetensors", ".bin"))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_sha1(content: bytes) -> str:
    """As `git hash-object` gives it."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()  # noqa: S324


def content(name: str, num_bytes: int) -> bytes:
    """Bytes that differ from file to file and from place to place."""
    return hashlib.shake_128(name.encode()).digest(num_bytes)


def speaker_files(num_bytes: int = 300_000) -> dict[str, bytes]:
    """A language model in one file, and what we never want beside it."""
    return {
        "README.md": b"words",
        "config.json": b'{"model_type": "toy"}',
        "modeling_toy.py": b"raise SystemExit",
        "onnx/model.safetensors": b"another layout",
        "model.safetensors": content("speaker", num_bytes),
        "tokenizer.model": content("tokenizer", 2_000),
        "training_args.bin": b"a pickle",
    }


def codec_files() -> dict[str, bytes]:
    """A codec in two shards and their index."""
    shards = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
    index = {"weight_map": {"a": shards[0], "b": shards[1], "c": shards[1]}}
    return {
        "config.json": b'{"model_type": "toy-codec"}',
        INDEX: json.dumps(index).encode(),
        **{shard: content(shard, 50_000) for shard in shards},
    }


def toy_entry(speaker: str, codec: str, *, known: tuple[KnownFile, ...] = ()) -> ModelEntry:
    """A model of these two revisions, otherwise like Nano."""
    layouts = MOSS_NANO.language_model.layouts
    return ModelEntry(
        name="toy",
        title="Toy",
        language_model=Repository(
            name="Toys/Speaker",
            revision=speaker,
            files=("config.json", "tokenizer.model"),
            layouts=layouts,
            about_bytes=300_000,
            known=known,
        ),
        codec=Repository(
            name="Toys/Codec", revision=codec, files=("config.json",), layouts=layouts[:2], about_bytes=100_000
        ),
        licence="Apache-2.0",
        languages=("en",),
        sample_rate=48_000,
        channels=2,
        runs_on_cpu=True,
        memory=MOSS_NANO.memory,
    )


def published(hub: ToyHub, num_bytes: int = 300_000) -> ModelEntry:
    """Both parts put on the hub, and the model pinned to them."""
    speaker = hub.publish("Toys/Speaker", speaker_files(num_bytes))
    return toy_entry(speaker, hub.publish("Toys/Codec", codec_files()))


def write_folder(folder: Path, files: dict[str, bytes]) -> Path:
    """The files of a repository on the disk, those in folders below left out."""
    folder.mkdir(parents=True)
    for name, content in files.items():
        if "/" not in name:
            (folder / name).write_bytes(content)
    return folder
