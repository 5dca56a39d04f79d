"""Takes, the clips of voices and the page's own files over HTTP: by id, never by path."""

import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from anyio import to_thread
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from studio.audio.take_formats import MEDIA_TYPES, check_format, convert
from studio.errors import NotFound, SettingError, UnknownTake
from studio.server.answers import NOTHING_HERE, SAFE_HEADERS, audio_type, bytes_response, file_stem, json_body, problem
from studio.store.takes import Take, TakeLibrary
from studio.store.voices import VoiceLibrary

PAGE_FILES = {
    "player.js": "text/javascript",
    "page.js": "text/javascript",
    "notices.js": "text/javascript",
    "voice.js": "text/javascript",
    "models.js": "text/javascript",
    "models-dialog.js": "text/javascript",
    "lab-words.js": "text/javascript",
    "lab-charts.js": "text/javascript",
    "lab-figures.js": "text/javascript",
    "lab.js": "text/javascript",
    "stream-worker.js": "text/javascript",
    "ring-worklet.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}


def download_name(take: Take) -> str:
    """Voice, first words and the beginning of the id, in letters that every system takes."""
    return f"{file_stem('studio', take.voice_name or 'clip', take.script[:40])}-{file_stem(take.id)[:8]}.wav"


class LibraryRoutes:
    """The endpoints around takes and voices. An id that is wrong, foreign or removed gets one and the same 404."""

    def __init__(self, takes: TakeLibrary, voices: VoiceLibrary, page_files: Mapping[str, Path]) -> None:
        self._takes, self._voices, self._page_files = takes, voices, page_files

    async def take_audio(self, request: Request) -> Response:
        return await self._take_file(request.path_params["take"], attach=False)

    async def take_download(self, request: Request) -> Response:
        """As the file it is, or `?as=` flac, mp3 or ogg, made now."""
        suffix = "." + request.query_params.get("as", "wav")
        if suffix == ".wav":
            return await self._take_file(request.path_params["take"], attach=True)
        check_format(suffix)
        return await to_thread.run_sync(self._converted, request.path_params["take"], suffix)

    def _converted(self, identifier: str, suffix: str) -> Response:
        take = self._takes.get(identifier)
        if take.missing:
            raise UnknownTake(identifier)
        folder = tempfile.TemporaryDirectory()
        target = Path(folder.name) / f"take{suffix}"
        with ExitStack() as unless_sent:
            unless_sent.callback(folder.cleanup)
            convert(self._takes.path(take.id), target)
            unless_sent.pop_all()
        name = Path(download_name(take)).with_suffix(suffix).name
        headers = {**SAFE_HEADERS, "Cache-Control": "no-store"}
        return FileResponse(
            target,
            media_type=MEDIA_TYPES[suffix],
            filename=name,
            headers=headers,
            background=BackgroundTask(folder.cleanup),
        )

    async def _take_file(self, identifier: str, *, attach: bool) -> Response:
        try:
            take = await to_thread.run_sync(self._takes.get, identifier)
        except NotFound:
            return problem(NOTHING_HERE, 404)
        path = self._takes.path(take.id)
        if not path.is_file():
            return problem(NOTHING_HERE, 404)
        kind = "attachment" if attach else "inline"
        headers = {**SAFE_HEADERS, "Cache-Control": "private, no-cache"}
        return FileResponse(
            path,
            media_type="audio/wav",
            filename=download_name(take),
            content_disposition_type=kind,
            headers=headers,
        )

    async def edit_take(self, request: Request) -> Response:
        """Marks a take as a favourite or not, and keeps a note with it."""
        content = await json_body(request)
        take = await to_thread.run_sync(self._edit_take, request.path_params["take"], content)
        return JSONResponse({"favourite": take.favourite, "note": take.note})

    def _edit_take(self, identifier: str, content: dict[str, Any]) -> Take:
        take = self._takes.get(identifier)
        if not content or not set(content) <= {"favourite", "note"}:
            raise SettingError("the request", ", ".join(sorted(content)), "send favourite, note, or both.")
        if "favourite" in content:
            take = self._takes.mark(take.id, favourite=content["favourite"] is True)
        if "note" in content:
            take = self._takes.annotate(take.id, str(content["note"]))
        return take

    async def voice_clip(self, request: Request) -> Response:
        identifier = request.path_params["voice"]
        try:
            voice = await to_thread.run_sync(self._voices.get_by_id, identifier)
        except NotFound:
            return problem(NOTHING_HERE, 404)
        content = await to_thread.run_sync(self._voices.clip_bytes, voice)
        return bytes_response(request, content, audio_type(content))

    async def page_file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._page_files:
            return problem(NOTHING_HERE, 404)
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache"}
        return FileResponse(self._page_files[name], media_type=PAGE_FILES[name], headers=headers)
