"""Voices that travel as files: exported to a download, imported from an upload; and the totals of the cache."""

import io
import tempfile
from pathlib import Path

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from studio.bundle_import import Imported, import_voice
from studio.engine_room import EngineRoom
from studio.server.answers import SAFE_HEADERS, bytes_body, file_stem
from studio.voice_bundle import write_bundle


class BundleRoutes:
    """The endpoints around one library."""

    def __init__(self, room: EngineRoom) -> None:
        self._room = room

    async def export(self, request: Request) -> Response:
        content, name = await to_thread.run_sync(self._export, request.path_params["voice"])
        disposition = f'attachment; filename="{file_stem("voice", name)}.zip"'
        headers = {**SAFE_HEADERS, "Content-Disposition": disposition, "Cache-Control": "no-store"}
        return Response(content, media_type="application/zip", headers=headers)

    async def take_in(self, request: Request) -> Response:
        content = await bytes_body(request)
        imported = await to_thread.run_sync(self._import, content)
        return JSONResponse({"voice": imported.voice.id, "said": told(imported)}, status_code=201)

    def _export(self, identifier: str) -> tuple[bytes, str]:
        voices = self._room.current.voices
        voice = voices.get_by_id(identifier)
        file = io.BytesIO()
        write_bundle(voices, voice, file)
        return file.getvalue(), voice.name

    def _import(self, content: bytes) -> Imported:
        with tempfile.TemporaryDirectory() as folder, self._room.held() as synthesizer:
            path = Path(folder) / "The file"
            path.write_bytes(content)
            return import_voice(synthesizer.engine, synthesizer.voices, path)


def told(imported: Imported) -> str:
    """What an import did, in sentences."""
    voice = imported.voice
    if imported.already_there:
        return f"“{voice.name}” is here already, with the same content. Nothing was changed."
    parts = [f"“{voice.name}” is in the list now."]
    if imported.name_in_bundle != voice.name:
        parts.append(f"Its name was taken: in the file it is “{imported.name_in_bundle}”.")
    if imported.differences:
        count = len(imported.differences)
        parts.append(f"{count} of its clips had other codes in the file than here; those that were here stay.")
    if imported.to_fill:
        parts.append("The file has no codes for this voice model, so they are made when the voice first speaks.")
    return " ".join(parts)
