"""What every route answers with: errors of one sentence, bytes with ranges, headers that forbid guessing."""

import json
import re
import unicodedata
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from studio.engine_room import RoomError
from studio.errors import NameTaken, NotFound, SettingError, StorageError, StudioBusy, StudioError

Endpoint = Callable[[Request], Awaitable[Response]]
NOTHING_HERE = "There is nothing here. It may have been removed; reload the page."
TOO_LARGE = "That is more than any text the studio speaks at once. Send less."
SAFE_HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}
MAX_BODY_BYTES = 1 << 19
"""Of a request that says what to do."""
MAX_UPLOAD_BYTES = 64 << 20
"""Of a clip or a bundle that comes in through the page."""
TOO_BIG = f"That is larger than the {MAX_UPLOAD_BYTES >> 20} MB that the page takes. Use the command line for it."
_STATUS = ((NotFound, 404), (NameTaken, 409), (RoomError, 409), (StudioBusy, 429), (StorageError, 507))


def problem(sentence: str, status: int) -> JSONResponse:
    return JSONResponse({"error": sentence}, status_code=status, headers={"Cache-Control": "no-store"})


def guarded(endpoint: Endpoint, may_enter: Callable[[Request], bool], *, upload: bool = False) -> Endpoint:
    """The endpoint behind the login, with a user's mistakes answered as one sentence."""
    largest, sentence = (MAX_UPLOAD_BYTES, TOO_BIG) if upload else (MAX_BODY_BYTES, TOO_LARGE)

    async def answer(request: Request) -> Response:
        if not may_enter(request):
            return problem("Log in first: open the studio's page and give its password.", 401)
        if int(request.headers.get("content-length", "0")) > largest:
            return problem(sentence, 413)
        try:
            return await endpoint(request)
        except StudioError as error:
            status = next((code for kind, code in _STATUS if isinstance(error, kind)), 400)
            return problem(str(error), status)

    return answer


async def json_body(request: Request) -> dict[str, Any]:
    """The JSON object in the body; raises SettingError where it is no JSON object or never ends."""
    if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
        raise SettingError("the request", request.headers.get("content-type"), "send application/json.")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            raise SettingError("the request", "sent in pieces without end", TOO_LARGE)
    try:
        content = json.loads(body)
    except ValueError as error:
        raise SettingError("the request", "text that is not JSON", "send one JSON object.") from error
    if not isinstance(content, dict):
        raise SettingError("the request", type(content).__name__, "send one JSON object.")
    return content


async def bytes_body(request: Request) -> bytes:
    """A file in the body; raises SettingError where there is none or it is larger than the page takes."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > MAX_UPLOAD_BYTES:
            raise SettingError("the file", "sent in pieces without end", TOO_BIG)
    if not body:
        raise SettingError("the file", "empty", "choose one with something in it.")
    return bytes(body)


def bytes_response(request: Request, content: bytes, media_type: str) -> Response:
    """The bytes, or the one range of them the browser asked for (Safari plays nothing without ranges)."""
    headers = {**SAFE_HEADERS, "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache"}
    match = re.fullmatch(r"bytes=(\d{1,12})-(\d{0,12})", request.headers.get("range", ""))
    start, end = (int(match[1]), int(match[2] or len(content) - 1)) if match else (0, -1)
    if match is None or (match[2] and start > end):
        return Response(content, media_type=media_type, headers=headers)
    if start >= len(content):
        return Response(status_code=416, headers=headers | {"Content-Range": f"bytes */{len(content)}"})
    end = min(end, len(content) - 1)
    headers["Content-Range"] = f"bytes {start}-{end}/{len(content)}"
    return Response(content[start : end + 1], 206, media_type=media_type, headers=headers)


def audio_type(content: bytes) -> str:
    """The media type that the first bytes of an audio file tell."""
    if content[:4] in (b"RIFF", b"RF64"):
        return "audio/wav"
    if content[4:8] == b"ftyp":
        return "audio/mp4"
    known = {b"fLaC": "audio/flac", b"OggS": "audio/ogg", b"\x1aE\xdf\xa3": "audio/webm", b"FORM": "audio/aiff"}
    fallback = "audio/mpeg" if content[:3] == b"ID3" or content[:1] == b"\xff" else "application/octet-stream"
    return known.get(content[:4], fallback)


def file_stem(*parts: str) -> str:
    """A file name that every system takes: plain letters, digits and hyphens, at most 80 characters."""
    plain = unicodedata.normalize("NFKD", " ".join(parts)).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", plain)[:80].strip("-").lower() or "take"
