"""Takes, the clips of voices and the page's own files over HTTP: by id, never by path."""

from collections.abc import Mapping
from pathlib import Path

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from studio.errors import NotFound
from studio.server.answers import NOTHING_HERE, SAFE_HEADERS, audio_type, bytes_response, file_stem, problem
from studio.store.takes import Take, TakeLibrary
from studio.store.voices import VoiceLibrary

PAGE_FILES = {
    "player.js": "text/javascript",
    "page.js": "text/javascript",
    "notices.js": "text/javascript",
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
        return await self._take_file(request.path_params["take"], attach=True)

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

    async def voice_clip(self, request: Request) -> Response:
        identifier = request.path_params["voice"]
        try:
            voice = await to_thread.run_sync(self._voices.get, identifier)
        except NotFound:
            return problem(NOTHING_HERE, 404)
        if voice.id != identifier:  # the library also knows names; an address is an id
            return problem(NOTHING_HERE, 404)
        content = await to_thread.run_sync(self._voices.clip_bytes, voice)
        return bytes_response(request, content, audio_type(content))

    async def page_file(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._page_files:
            return problem(NOTHING_HERE, 404)
        headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache"}
        return FileResponse(self._page_files[name], media_type=PAGE_FILES[name], headers=headers)
