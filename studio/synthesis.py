"""A script in a voice, as a stream of chunks that is kept as a take; and a take once more, as it was."""

import json
from dataclasses import fields
from pathlib import Path

from studio.casting import AddedVoice, add_voice
from studio.engine.generation import GenerationLane
from studio.engine.interface import Engine
from studio.engine.sampling import SamplingOptions
from studio.errors import OtherEngine
from studio.reference import Reference, ReferenceDesk
from studio.settings import assets_dir
from studio.speech import Clock, KeptCodes, Request, Speech
from studio.store.takes import Take, TakeLibrary
from studio.store.voices import Voice, VoiceDetails, VoiceLibrary
from studio.text.script import Utterance, utterances

CLIP = "The clip"
"""What a reference that is no saved voice is called."""


class Synthesizer:
    """Speaks scripts in saved voices or after clips, with one engine; many at once take turns, frame by frame."""

    def __init__(self, engine: Engine, desk: ReferenceDesk, voices: VoiceLibrary, takes: TakeLibrary) -> None:
        self.engine = engine
        self.desk = desk
        self.voices = voices
        self.takes = takes
        self._lane = GenerationLane(threads=engine.speech_threads)

    def speak(
        self,
        script: str,
        *,
        voice: Voice | None,
        clip: bytes | Path | None,
        options: SamplingOptions,
        clip_name: str = CLIP,
    ) -> Speech:
        """Starts speaking in a saved voice, or else after a clip's bytes or file.

        The reference's codes come from the cache or from one solo encode, before this returns. Raises ScriptError and
        ClipError at once, with nothing saved.
        """
        clock = Clock()
        spoken = self._spoken(script)
        reference = self._reference(voice, clip, clip_name)
        request = Request(utterances=spoken, reference=reference, options=options, clock=clock)
        take = self._take(script, voice.id if voice else None, voice.name if voice else clip_name, request)
        return Speech(self.engine, self._lane, self.takes, take, request)

    def again(self, take: Take) -> Speech:
        """Speaks a take's text once more with its own codes, options and seed, into a new take of the same samples.

        The voice may be gone by now. OtherEngine where the take is another engine's, or another revision's.
        """
        made_by, here = (take.engine, take.revision), (self.engine.name, self.engine.revision)
        if made_by != here:
            raise OtherEngine(f"{made_by[0]!r}, revision {made_by[1]}", f"{here[0]!r}, revision {here[1]}")
        clock = Clock()
        known = {field.name for field in fields(SamplingOptions)}
        request = Request(
            utterances=self._spoken(take.script),
            reference=KeptCodes(key=take.key, codes=take.codes, digest=take.codes_digest, encode_ms=take.encode_ms),
            options=SamplingOptions(
                seed=take.seed, **{name: value for name, value in take.options.items() if name in known}
            ),
            clock=clock,
        )
        repeated = self._take(take.script, take.voice_id, take.voice_name, request)
        return Speech(self.engine, self._lane, self.takes, repeated, request)

    def close(self) -> int:
        """Ends all speaking and lets the engine go; returns the bytes its weights took. Nothing speaks after it."""
        self._lane.shut()
        self.desk.cache.close()
        return self.engine.close()

    def _spoken(self, script: str) -> tuple[Utterance, ...]:
        spoken = utterances(script)
        for utterance in spoken:
            self.engine.check_script(utterance.text)
        return spoken

    def add_voice(self, source: Path | bytes, details: VoiceDetails) -> AddedVoice:
        """Makes a saved voice of a clip's bytes or file, codes filled. Raises ClipError, NameTaken or SettingError,
        with nothing saved."""
        return add_voice(self.desk, self.voices, source, details)

    def fill_builtins(self, folder: Path | None = None) -> None:
        """Installs the voices that voices.json in `folder` (the studio's own) lists and fills their codes; quick once
        that was done."""
        folder = folder or assets_dir() / "voices"
        for entry in json.loads((folder / "voices.json").read_text(encoding="utf-8")):
            details = VoiceDetails(
                name=entry["name"],
                transcript=entry["transcript"],
                description=entry["description"],
                sex=entry["sex"],
                clip_name=entry["file"],
            )
            voice = self.voices.install_builtin(entry["id"], details, (folder / entry["file"]).read_bytes())
            if not voice.filled:
                self.desk.from_voice(voice, self.voices)

    def _reference(self, voice: Voice | None, clip: bytes | Path | None, clip_name: str) -> Reference:
        if voice is not None:
            self.voices.touch(voice.id)
            return self.desk.from_voice(voice, self.voices)
        assert clip is not None, "a voice or a clip"
        return self.desk.from_file(clip, clip_name)

    def _take(self, script: str, voice_id: str | None, voice_name: str, request: Request) -> Take:
        reference, options = request.reference, request.options
        return Take(
            script=script,
            voice_id=voice_id,
            voice_name=voice_name,
            engine=self.engine.name,
            revision=self.engine.revision,
            device=self.engine.device,
            seed=options.seed,
            options={"speed": options.speed, "temperature": options.temperature, "top_k": options.top_k},
            key=reference.key,
            codes=reference.codes,
            codes_digest=reference.digest,
            cache=reference.outcome,
            lookup_ms=reference.lookup_ms,
            encode_ms=reference.encode_ms,
        )
