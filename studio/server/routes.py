"""The list of routes that a server adds to its app."""

from collections.abc import Callable
from pathlib import Path

from starlette.requests import Request
from starlette.routing import BaseRoute, Route

from studio.engine_room import EngineRoom
from studio.server.answers import Endpoint, guarded
from studio.server.bundles import BundleRoutes
from studio.server.jobs import SpeechJobs
from studio.server.lab import LabRoutes
from studio.server.lab_jobs import LabJobs
from studio.server.library import PAGE_FILES, LibraryRoutes
from studio.server.model_shelf import ModelShelf
from studio.server.models import ModelRoutes
from studio.server.speech import SpeechRoutes
from studio.server.voices import VoiceRoutes

PREFIX = "/studio"
_End = tuple[str, str, Endpoint]
"""Verb, path and endpoint."""


def studio_routes(
    room: EngineRoom,
    *,
    jobs: SpeechJobs,
    shelf: ModelShelf,
    lab: LabJobs,
    page_dir: Path,
    may_enter: Callable[[Request], bool],
) -> list[BaseRoute]:
    """Every route of the studio below `/studio`, each behind `may_enter`."""
    page_files = {name: page_dir / name for name in PAGE_FILES}
    library = LibraryRoutes(room.embedded.takes, room.embedded.voices, page_files)
    bundles, voices = BundleRoutes(room), VoiceRoutes(room)
    endpoints = [*_speech(SpeechRoutes(room, jobs)), *_takes(library), *_voices(voices), *_models(ModelRoutes(shelf))]
    endpoints += [
        *_lab(LabRoutes(lab)),
        ("GET", "/voices/{voice}/clip", library.voice_clip),
        ("GET", "/voices/{voice}/export", bundles.export),
        ("GET", "/page/{name}", library.page_file),
    ]
    uploads: list[_End] = [("POST", "/bundles", bundles.take_in), ("POST", "/voices/{voice}/clips", voices.add_clip)]
    return [
        Route(PREFIX + path, guarded(end, may_enter, upload=upload), methods=[verb])
        for upload, group in ((False, endpoints), (True, uploads))
        for verb, path, end in group
    ]


def _speech(speech: SpeechRoutes) -> list[_End]:
    return [
        ("POST", "/speech", speech.ask),
        ("GET", "/speech/{job}", speech.status),
        ("GET", "/speech/{job}/pcm", speech.samples),
        ("POST", "/speech/{job}/stop", speech.stop),
    ]


def _takes(library: LibraryRoutes) -> list[_End]:
    return [
        ("GET", "/takes/{take}/audio", library.take_audio),
        ("GET", "/takes/{take}/download", library.take_download),
        ("POST", "/takes/{take}", library.edit_take),
    ]


def _voices(voices: VoiceRoutes) -> list[_End]:
    return [
        ("GET", "/voices/{voice}", voices.show),
        ("POST", "/voices/{voice}", voices.edit),
        ("POST", "/voices/{voice}/duplicate", voices.duplicate),
        ("POST", "/voices/{voice}/remove", voices.remove),
        ("POST", "/voices/{voice}/verify", voices.verify),
        ("POST", "/voices/{voice}/refill", voices.refill),
        ("GET", "/voices/{voice}/clips/{clip}/audio", voices.clip_audio),
        ("POST", "/voices/{voice}/clips/{clip}/trim", voices.trim_clip),
        ("POST", "/voices/{voice}/clips/{clip}/choose", voices.choose_clip),
        ("POST", "/voices/{voice}/clips/{clip}/remove", voices.remove_clip),
    ]


def _models(models: ModelRoutes) -> list[_End]:
    return [
        ("GET", "/models", models.show),
        ("POST", "/models/{model}/download", models.download),
        ("POST", "/models/{model}/folder", models.folder),
        ("POST", "/models/{model}/check", models.check),
        ("POST", "/models/{model}/stop", models.stop),
        ("POST", "/models/{model}/use", models.use),
        ("POST", "/models/{model}/unload", models.unload),
        ("POST", "/models/{model}/remove", models.remove),
    ]


def _lab(lab: LabRoutes) -> list[_End]:
    return [
        ("GET", "/lab", lab.show),
        ("POST", "/lab/start", lab.start),
        ("POST", "/lab/stop", lab.stop),
        ("GET", "/lab/records", lab.records),
        ("GET", "/lab/report", lab.report),
        ("GET", "/lab/sounds/{sound}", lab.sound),
    ]
