"""A studio for the tests of the server: the real classes around a voice model of toy size."""

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute
from starlette.testclient import TestClient
from toy_voice import toy_voice

from studio.engine.embedded import EmbeddedEngine
from studio.engine_room import EngineRoom
from studio.reference import ReferenceDesk
from studio.server.jobs import SpeechJobs
from studio.server.lab_jobs import LabJobs
from studio.server.model_shelf import ModelShelf
from studio.server.routes import studio_routes
from studio.settings import Settings, assets_dir
from studio.store.code_cache import CodeCache
from studio.store.takes import TakeLibrary
from studio.store.voices import VoiceLibrary
from studio.synthesis import Synthesizer

SCRIPT = "The quick brown fox jumps. [pause 0.5s] Over the lazy dog!"
LONG = " ".join(["The quick brown fox jumps over the lazy dog."] * 100)


def toy_synthesizer(settings: Settings, engine: EmbeddedEngine | None = None) -> Synthesizer:
    """An opened library with two of the built-in voices, filled by the toy codec."""
    engine = engine or EmbeddedEngine(toy_voice())
    desk = ReferenceDesk(engine, CodeCache(settings.database), settings.locks_dir)
    voices = VoiceLibrary(settings.database, settings.clips_dir, codec=desk.codec)
    synthesizer = Synthesizer(engine, desk, voices, TakeLibrary(settings.database, settings.takes_dir))
    synthesizer.fill_builtins(_two_voices(settings.data_dir / "two voices"))
    return synthesizer


def _two_voices(folder: Path) -> Path:
    source = assets_dir() / "voices"
    entries = [entry for entry in json.loads((source / "voices.json").read_text()) if entry["id"] in ("clara", "robin")]
    folder.mkdir(parents=True)
    (folder / "voices.json").write_text(json.dumps(entries))
    for entry in entries:
        shutil.copy(source / entry["file"], folder)
    return folder


def no_other(name: str) -> Synthesizer:
    """For a studio that loads no model."""
    raise AssertionError(f"{name} was to be loaded")


def routes_of(
    synthesizer: Synthesizer, jobs: SpeechJobs, settings: Settings | None = None, *, entered: bool = True
) -> list[BaseRoute]:
    """All routes of a studio that has one engine and no models."""
    room = EngineRoom(synthesizer, no_other)
    settings = settings or Settings(data_dir=Path("nowhere"))
    shelf = ModelShelf(room, jobs, settings)
    lab = LabJobs(room, settings)
    return studio_routes(
        room, jobs=jobs, shelf=shelf, lab=lab, page_dir=assets_dir(), may_enter=lambda _request: entered
    )


def client(synthesizer: Synthesizer, jobs: SpeechJobs | None = None, *, entered: bool = True) -> TestClient:
    """The studio's routes in an app of their own."""
    return TestClient(Starlette(routes=routes_of(synthesizer, jobs or SpeechJobs(), entered=entered)))


@contextmanager
def served(synthesizer: Synthesizer, jobs: SpeechJobs) -> Iterator[httpx.Client]:
    """The studio's routes on a port of this machine, for what only a real connection can show."""
    with serving(routes_of(synthesizer, jobs)) as browser:
        yield browser


@contextmanager
def serving(routes: list[BaseRoute]) -> Iterator[httpx.Client]:
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}") as browser:
            yield browser
    finally:
        server.should_exit = True
        thread.join()
