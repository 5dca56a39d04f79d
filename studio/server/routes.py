"""The list of routes that a server adds to its app."""

from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from studio.server.answers import Endpoint, guarded
from studio.server.jobs import SpeechJobs
from studio.server.library import PAGE_FILES, LibraryRoutes
from studio.server.speech import SpeechRoutes
from studio.synthesis import Synthesizer

PREFIX = "/studio"


def studio_routes(
    synthesizer: Synthesizer, *, jobs: SpeechJobs, page_dir: Path, may_enter: Callable[[Request], bool]
) -> list[BaseRoute]:
    """Every route of the studio below `/studio`, each behind `may_enter`."""
    speech = SpeechRoutes(synthesizer, jobs)
    library = LibraryRoutes(synthesizer.takes, synthesizer.voices, {name: page_dir / name for name in PAGE_FILES})
    endpoints: list[tuple[str, str, Endpoint]] = [
        ("POST", "/speech", speech.ask),
        ("GET", "/speech/{job}", speech.status),
        ("GET", "/speech/{job}/pcm", speech.samples),
        ("POST", "/speech/{job}/stop", speech.stop),
        ("GET", "/takes/{take}/audio", library.take_audio),
        ("GET", "/takes/{take}/download", library.take_download),
        ("GET", "/voices/{voice}/clip", library.voice_clip),
        ("GET", "/page/{name}", library.page_file),
    ]
    return [Route(PREFIX + path, guarded(end, may_enter), methods=[verb]) for verb, path, end in endpoints]
