"""The invariance lab over HTTP: start, progress, stop, the records, a report to take along, and sounds by name."""

import json
from dataclasses import asdict

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from studio.engine_room import title_of
from studio.errors import SettingError
from studio.invariance.headline import headlines
from studio.invariance.report import report_page
from studio.server.answers import SAFE_HEADERS, bytes_response, file_stem, json_body
from studio.server.lab_jobs import LabJobs, Wanted

_FRESH = {"Cache-Control": "no-store"}


class LabRoutes:
    """The endpoints around the lab."""

    def __init__(self, lab: LabJobs) -> None:
        self._lab = lab

    async def show(self, _request: Request) -> Response:
        return await self._answer()

    async def start(self, request: Request) -> Response:
        """Begins a run; what is wanted is in the body."""
        wanted = Wanted.from_json(await json_body(request))
        await to_thread.run_sync(self._lab.start, wanted)
        return await self._answer()

    async def stop(self, _request: Request) -> Response:
        self._lab.stop()
        return await self._answer()

    async def records(self, _request: Request) -> Response:
        """What was found so far, and the headline of each setting."""
        found = self._lab.found
        told = {
            "title": title_of(found.environment.engine),
            "headlines": [asdict(headline) for headline in headlines(found.records)],
        }
        return JSONResponse(found.to_json() | told, headers=_FRESH)

    async def report(self, request: Request) -> Response:
        """A file to attach to a report upstream: `?as=` html or json, or case for the smallest failing one."""
        found, kind = self._lab.found, request.query_params.get("as", "html")
        name = file_stem("invariance-lab", found.environment.codec_id, found.environment.device)
        if kind == "html":
            return _file(report_page(found), "text/html; charset=utf-8", f"{name}.html")
        if kind == "json":
            return _file(json.dumps(found.to_json(), indent=1) + "\n", "application/json", f"{name}.json")
        if kind != "case":
            raise SettingError("as", kind, "choose html, json or case.")
        content = await to_thread.run_sync(self._lab.case().read_text)
        return _file(content, "application/json", f"{name}-smallest-case.json")

    async def sound(self, request: Request) -> Response:
        path = self._lab.sound(request.path_params["sound"])
        content = await to_thread.run_sync(path.read_bytes)
        return bytes_response(request, content, "audio/wav")

    async def _answer(self) -> Response:
        return JSONResponse(await to_thread.run_sync(self._lab.sheet), headers=_FRESH)


def _file(content: str, media_type: str, name: str) -> Response:
    headers = {**SAFE_HEADERS, **_FRESH, "Content-Disposition": f'attachment; filename="{name}"'}
    return Response(content, media_type=media_type, headers=headers)
