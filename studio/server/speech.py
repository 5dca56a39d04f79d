"""Speech over HTTP: ask for it, take its samples while they are made, ask how it went, stop it."""

import math
import secrets
from contextlib import ExitStack
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from studio.engine.sampling import MAX_SEED, SamplingOptions
from studio.engine_room import EngineRoom
from studio.errors import SettingError
from studio.server.answers import NOTHING_HERE, json_body, problem
from studio.server.jobs import SpeechJob, SpeechJobs
from studio.synthesis import Speech, Synthesizer

_FIELDS = frozenset({"script", "voice", "speed", "seed", "take", "engine"})


class SpeechStream(StreamingResponse):
    """Samples as they are made; however it ends, the job has ended too when this returns."""

    def __init__(self, job: SpeechJob) -> None:
        self._job = job
        headers = {
            "Cache-Control": "no-store, no-transform",
            "X-Accel-Buffering": "no",
            "X-Content-Type-Options": "nosniff",
            "X-Sample-Rate": str(job.speech.sample_rate),
            "X-Channels": str(job.speech.channels),
        }
        super().__init__(job.stream(), media_type="audio/pcm", headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            # A page that leaves while a chunk is sent leaves the generator suspended, and nothing else closes it soon.
            await self.body_iterator.aclose()  # pyright: ignore[reportAttributeAccessIssue]


class SpeechRoutes:
    """The endpoints around what speaks now and its jobs."""

    def __init__(self, room: EngineRoom, jobs: SpeechJobs) -> None:
        self._room = room
        self._jobs = jobs

    async def ask(self, request: Request) -> Response:
        """Checks script, voice and options at once and answers with the job that will speak; a `take` is spoken once
        more as it was. Where an `engine` is named, no other speaks."""
        content = await json_body(request)
        job = await to_thread.run_sync(self._begin, content)
        return JSONResponse(job.status(), status_code=201, headers={"Cache-Control": "no-store"})

    def _begin(self, content: dict[str, Any]) -> SpeechJob:
        self._jobs.check_room()
        unknown = sorted(set(content) - _FIELDS)
        if unknown:
            raise SettingError("the request", unknown[0], f"only {', '.join(sorted(_FIELDS))} are known.")
        expected = _text(content, "engine") if "engine" in content else None
        with ExitStack() as unless_begun:
            synthesizer = unless_begun.enter_context(self._room.held(expected))
            speech = _speech(synthesizer, content)
            return self._jobs.add(speech, unless_begun.pop_all())

    async def samples(self, request: Request) -> Response:
        job = self._jobs.get(request.path_params["job"])
        if job is None or job.state != "waiting":
            return problem(NOTHING_HERE, 404)
        return SpeechStream(job)

    async def status(self, request: Request) -> Response:
        job = self._jobs.get(request.path_params["job"])
        return problem(NOTHING_HERE, 404) if job is None else _status(job)

    async def stop(self, request: Request) -> Response:
        job = self._jobs.get(request.path_params["job"])
        if job is None:
            return problem(NOTHING_HERE, 404)
        await to_thread.run_sync(job.stop)
        return _status(job)


def _speech(synthesizer: Synthesizer, content: dict[str, Any]) -> Speech:
    if "take" in content:
        return synthesizer.again(synthesizer.takes.get(_text(content, "take")))
    script, voice = _text(content, "script"), _text(content, "voice")
    options = SamplingOptions(seed=_seed(content.get("seed")), speed=_number(content.get("speed", 1.0), "speed"))
    return synthesizer.speak(script, voice=synthesizer.voices.get(voice), clip=None, options=options)


def _status(job: SpeechJob) -> Response:
    return JSONResponse(job.status(), headers={"Cache-Control": "no-store"})


def _text(content: dict[str, Any], field: str) -> str:
    value = content.get(field, "")
    if not isinstance(value, str):
        raise SettingError(field, value, "send text.")
    return value


def _number(value: object, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(field, value, "send a number.")
    return float(value)


def _seed(value: object) -> int:
    """The given whole number; a blank one is drawn here, so that the page can show it."""
    if value is None or value == "":
        return secrets.randbelow(MAX_SEED + 1)
    text = str(value).strip()
    if isinstance(value, bool) or not text.isascii() or not text.isdigit() or len(text) > 20:
        raise SettingError("seed", value, f"choose a whole number from 0 to {MAX_SEED}, or leave it blank.")
    return int(text)
