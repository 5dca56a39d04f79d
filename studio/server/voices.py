"""Saved voices over HTTP: everything that the sheet of a voice on the page shows and changes, by id, never by path."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from studio.casting import add_clip, trim_clip
from studio.engine_room import EngineRoom
from studio.errors import SettingError, UnknownClip
from studio.reference_verify import filled_elsewhere, refill_voice, verify_voice
from studio.server.answers import audio_type, bytes_body, bytes_response, json_body
from studio.server.voice_sheet import refilled, sheet, verified
from studio.store.voice_records import Clip, Voice, VoiceChanges
from studio.store.voices import VoiceLibrary

Content = dict[str, Any]
_CHANGES = {field.name for field in fields(VoiceChanges)}


class VoiceRoutes:
    """The endpoints of one voice and its clips; each answers with the sheet as it is then, and what was done."""

    def __init__(self, room: EngineRoom) -> None:
        self._room = room

    @property
    def _voices(self) -> VoiceLibrary:
        return self._room.current.voices

    async def show(self, request: Request) -> Response:
        voice = await to_thread.run_sync(self._voice, request)
        return JSONResponse(await to_thread.run_sync(self._sheet, voice), headers={"Cache-Control": "no-store"})

    async def edit(self, request: Request) -> Response:
        return await self._act(request, self._edit)

    async def duplicate(self, request: Request) -> Response:
        return await self._act(request, self._duplicate)

    async def verify(self, request: Request) -> Response:
        return await self._act(request, self._verify)

    async def refill(self, request: Request) -> Response:
        return await self._act(request, self._refill)

    async def remove(self, request: Request) -> Response:
        voice = await to_thread.run_sync(self._voice, request)
        await to_thread.run_sync(self._voices.remove, voice.id)
        return JSONResponse({"said": f"“{voice.name}” is removed."})

    async def add_clip(self, request: Request) -> Response:
        voice = await to_thread.run_sync(self._voice, request)
        content, name = await bytes_body(request), request.query_params.get("name", "")[:255] or "the clip"
        await to_thread.run_sync(self._add_clip, voice, content, name)
        return await self._done(
            voice, f"“{name}” is kept with this voice. Choose it as the reference to speak after it."
        )

    async def trim_clip(self, request: Request) -> Response:
        return await self._act(request, lambda voice, content: self._trim(self._clip(request, voice), content))

    async def choose_clip(self, request: Request) -> Response:
        return await self._act(request, lambda voice, _: self._choose(self._clip(request, voice)))

    async def remove_clip(self, request: Request) -> Response:
        return await self._act(request, lambda voice, _: self._drop(self._clip(request, voice)))

    async def clip_audio(self, request: Request) -> Response:
        voice = await to_thread.run_sync(self._voice, request)
        clip = await to_thread.run_sync(self._clip, request, voice)
        content = await to_thread.run_sync(self._voices.clips.content, clip)
        return bytes_response(request, content, audio_type(content))

    async def _act(self, request: Request, act: Callable[[Voice, Content], str]) -> Response:
        voice = await to_thread.run_sync(self._voice, request)
        content = await json_body(request)
        return await self._done(voice, await to_thread.run_sync(act, voice, content))

    async def _done(self, voice: Voice, said: str) -> Response:
        shown = await to_thread.run_sync(lambda: self._sheet(self._voices.get(voice.id)))
        return JSONResponse({"voice": shown, "said": said})

    def _voice(self, request: Request) -> Voice:
        return self._voices.get_by_id(request.path_params["voice"])

    def _clip(self, request: Request, voice: Voice) -> Clip:
        clip = self._voices.clips.get(request.path_params["clip"])
        if clip.voice_id != voice.id:
            raise UnknownClip(clip.id)
        return clip

    def _sheet(self, voice: Voice) -> Content:
        elsewhere = filled_elsewhere(self._room.current.desk, voice.provenance) if voice.provenance else ()
        return sheet(voice, self._voices.clips.list(voice.id), elsewhere)

    def _edit(self, voice: Voice, content: Content) -> str:
        known: dict[str, Any] = {name: _text_or_tags(name, value) for name, value in content.items()}
        self._voices.edit(voice.id, VoiceChanges(**known))
        return "Saved."

    def _duplicate(self, voice: Voice, _: Content) -> str:
        copy = self._voices.duplicate(voice.id, self._voices.free_name(voice.name))
        return f"“{copy.name}” is in the list now, with the same clips and codes."

    def _verify(self, voice: Voice, _: Content) -> str:
        with self._room.held() as here:
            return verified(verify_voice(here.desk, here.voices, here.voices.get(voice.id)))

    def _refill(self, voice: Voice, _: Content) -> str:
        with self._room.held() as here:
            return refilled(refill_voice(here.desk, here.voices, here.voices.get(voice.id)))

    def _add_clip(self, voice: Voice, content: bytes, name: str) -> None:
        with self._room.held() as here:
            add_clip(here.desk, here.voices, voice, content, name=name)

    def _trim(self, clip: Clip, content: Content) -> str:
        trim = _trim(content.get("trim"))
        with self._room.held() as here:
            added = trim_clip(here.desk, here.voices, clip, trim)
        return f"{added.reference.duration:.2f} s are used now."

    def _choose(self, clip: Clip) -> str:
        self._voices.clips.choose(clip.id)
        return f"The voice speaks after “{clip.name}” now."

    def _drop(self, clip: Clip) -> str:
        self._voices.clips.remove(clip.id)
        return f"“{clip.name}” is removed."


def _text_or_tags(name: str, value: Any) -> str | tuple[str, ...]:
    if name not in _CHANGES:
        raise SettingError("the request", name, f"only {', '.join(sorted(_CHANGES))} are known.")
    if name == "tags":
        if not isinstance(value, list) or not all(isinstance(tag, str) for tag in value):
            raise SettingError("tags", value, "send a list of words.")
        return tuple(value)
    if not isinstance(value, str):
        raise SettingError(name, value, "send text.")
    return value


def _trim(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2 or not all(isinstance(each, int | float) for each in value):
        raise SettingError("trim", value, "send its start and its end in seconds.")
    return float(value[0]), float(value[1])
