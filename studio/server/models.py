"""Models over HTTP: what there is and how far it is, and everything the page's dialog does with them, by name."""

from collections.abc import Callable
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from studio.errors import SettingError
from studio.server.answers import json_body, problem
from studio.server.guard import host_name
from studio.server.model_shelf import ModelShelf
from studio.settings import is_loopback

NOT_HERE = (
    "Only somebody at the machine the studio runs on can name a folder of it or another hub. Open the page there, "
    "under 127.0.0.1, or use `models get` in its terminal."
)
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")


class ModelRoutes:
    """The endpoints around one shelf; each answers with all models as they are then, and what was done."""

    def __init__(self, shelf: ModelShelf) -> None:
        self._shelf = shelf

    async def show(self, request: Request) -> Response:
        return await self._answer(request, "")

    async def download(self, request: Request) -> Response:
        """From the usual hub, or from the one in `hub`."""
        content = await json_body(request)
        hub = _text(content, "hub")
        if hub and not is_here(request):
            return problem(NOT_HERE, 403)
        return await self._act(request, lambda model: self._shelf.download(model, hub))

    async def folder(self, request: Request) -> Response:
        """Uses the folder in `folder`, a path of this machine."""
        content = await json_body(request)
        if not is_here(request):
            return problem(NOT_HERE, 403)
        folder = _text(content, "folder")
        return await self._act(request, lambda model: self._shelf.adopt(model, folder))

    async def check(self, request: Request) -> Response:
        return await self._act(request, self._shelf.check)

    async def stop(self, request: Request) -> Response:
        return await self._act(request, self._shelf.stop)

    async def use(self, request: Request) -> Response:
        return await self._act(request, self._shelf.use)

    async def unload(self, request: Request) -> Response:
        return await self._act(request, self._shelf.unload)

    async def remove(self, request: Request) -> Response:
        return await self._act(request, self._shelf.remove)

    async def _act(self, request: Request, act: Callable[[str], str | None]) -> Response:
        said = await to_thread.run_sync(act, request.path_params["model"])
        return await self._answer(request, said or "")

    async def _answer(self, request: Request, said: str) -> Response:
        sheet = await to_thread.run_sync(lambda: self._shelf.sheet(here=is_here(request)))
        return JSONResponse(sheet | {"said": said}, headers={"Cache-Control": "no-store"})


def is_here(request: Request) -> bool:
    """Whether a person at this machine asks: over its own loopback, and neither by a share link nor by a proxy."""
    reached = host_name(request.headers.get("host", ""))
    if request.client is None or any(header in request.headers for header in _FORWARDED):
        return False
    return is_loopback(request.client.host) and is_loopback(reached)


def _text(content: dict[str, Any], field: str) -> str:
    unknown = sorted(set(content) - {field})
    if unknown:
        raise SettingError("the request", unknown[0], f"only {field} is known.")
    value = content.get(field, "")
    if not isinstance(value, str) or "\0" in value:
        raise SettingError(field, value, "send text.")
    return value
