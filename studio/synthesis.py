"""A script in a voice, as a stream of chunks: what is streamed is what is saved, byte for byte, as a take."""

import hashlib
import json
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from studio.audio.files import TakeWriter
from studio.engine.generation import GenerationLane
from studio.engine.interface import Engine
from studio.engine.sampling import SamplingOptions
from studio.errors import StudioError
from studio.reference import Reference, ReferenceDesk
from studio.settings import assets_dir
from studio.store.takes import Take, TakeLibrary
from studio.store.voices import Voice, VoiceCodes, VoiceDetails, VoiceLibrary
from studio.text.script import Utterance, utterances

AUDIBLE = round(32768 * 10 ** (-50 / 20))
"""A sample of this size (-50 dBFS) or more is heard; the first one is the first audio."""
BROKEN = "The studio made a mistake while it spoke; the terminal it runs in says which."
CLIP = "The clip"
"""What a reference that is no saved voice is called."""


class Clock:
    """When things happened, in seconds after asking."""

    def __init__(self) -> None:
        self._asked = time.perf_counter()
        self.first_audio: float | None = None
        self.last_made: float | None = None

    def made(self, chunk: np.ndarray) -> None:
        """Notes that the model has finished a chunk."""
        now = time.perf_counter() - self._asked
        if chunk.size:
            self.last_made = now
        if self.first_audio is None and chunk.size and int(np.abs(chunk.astype(np.int32)).max()) >= AUDIBLE:
            self.first_audio = now


@dataclass(frozen=True, kw_only=True)
class Request:
    """One thing to speak, with everything that decides its samples."""

    utterances: tuple[Utterance, ...]
    reference: Reference
    options: SamplingOptions
    clock: Clock


def produce(engine: Engine, request: Request) -> Generator[np.ndarray, None, None]:
    """All chunks of a request, step by step: int16 `(channels, samples)`, pauses to the sample between utterances."""
    for index, utterance in enumerate(request.utterances):
        yield _silence(engine, utterance.lead)
        for chunk in engine.speak(utterance, request.reference.codes, request.options, index=index):
            request.clock.made(chunk)
            yield chunk
        yield _silence(engine, utterance.pause)


def _silence(engine: Engine, duration: float) -> np.ndarray:
    return np.zeros((engine.channels, round(duration * engine.sample_rate)), dtype=np.int16)


class Speech:
    """One running generation: an iterator of int16 chunks `(channels, samples)` that saves what it hands out.

    `close` may be called from any thread at any time and stops the model within one frame. However it ends, what was
    handed out is kept as a take, marked partial unless it is whole; where nothing was handed out, nothing is kept.
    """

    def __init__(self, engine: Engine, lane: GenerationLane, takes: TakeLibrary, take: Take, request: Request) -> None:
        self.take_id = take.id
        self.seed = take.seed
        self.reference = request.reference
        self.sample_rate = engine.sample_rate
        self.channels = engine.channels
        self.take: Take | None = None
        """The saved take, once this has ended with some sound."""
        self._clock = request.clock
        self._takes = takes
        self._writer = TakeWriter(takes.path(take.id), sample_rate=engine.sample_rate, channels=engine.channels)
        with ExitStack() as unless_saved:
            unless_saved.callback(self._writer.path.unlink)
            unless_saved.callback(self._writer.close)
            self._reserved = takes.save(take)
            unless_saved.pop_all()
        self._digest = hashlib.sha256()
        self._num_samples = 0
        self._ending = threading.Lock()
        self._ended = False
        self._stream = lane.open(produce(engine, request))

    def __iter__(self) -> Iterator[np.ndarray]:
        return self

    def __next__(self) -> np.ndarray:
        try:
            return self._keep(next(self._stream))
        except StopIteration:
            self._end(error=None)
            raise
        except Exception as error:  # the take is kept whatever broke, and the error goes on its way
            self._stream.close()
            self._end(error=str(error) if isinstance(error, StudioError) else BROKEN)
            raise

    def __enter__(self) -> "Speech":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stops the model and keeps what was handed out so far. A second call does nothing."""
        self._stream.close()
        self._end(error=None)

    @property
    def stopped(self) -> threading.Event:
        """Set once the model does no more work for this."""
        return self._stream.stopped

    def _keep(self, chunk: np.ndarray) -> np.ndarray:
        with self._ending:
            if self._ended:
                raise StopIteration
            self._writer.write(chunk)
            self._digest.update(chunk.T.astype("<i2").tobytes())
            self._num_samples += chunk.shape[1]
        return chunk

    def _end(self, *, error: str | None) -> None:
        with self._ending:
            if self._ended:
                return
            self._ended = True
            self._writer.close()
            if self._num_samples == 0:
                self._takes.remove(self.take_id)
                return
            self.take = self._takes.save(self._finished(error))

    def _finished(self, error: str | None) -> Take:
        duration = self._num_samples / self.sample_rate
        first, last = self._clock.first_audio, self._clock.last_made
        return replace(
            self._reserved,
            first_audio_ms=None if first is None else first * 1000,
            duration=duration,
            realtime_speed=duration / last if last else None,
            pcm_digest=self._digest.hexdigest(),
            partial=error is not None or not self._stream.exhausted,
            error=error,
        )


class Synthesizer:
    """Speaks scripts in saved voices or after clips, with one engine; many at once take turns, frame by frame."""

    def __init__(self, engine: Engine, desk: ReferenceDesk, voices: VoiceLibrary, takes: TakeLibrary) -> None:
        self.engine = engine
        self.desk = desk
        self.voices = voices
        self.takes = takes
        self._lane = GenerationLane()

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
        spoken = utterances(script)
        for utterance in spoken:
            self.engine.check_script(utterance.text)
        reference = self._reference(voice, clip, clip_name)
        request = Request(utterances=spoken, reference=reference, options=options, clock=clock)
        take = self._take(script, voice, clip_name, request)
        return Speech(self.engine, self._lane, self.takes, take, request)

    def add_voice(self, source: bytes, name: str, *, transcript: str = "", clip_name: str = "") -> Voice:
        """Makes a saved voice of a clip, codes filled. Raises ClipError, NameTaken or SettingError, nothing saved."""
        name = self.voices.check_name(name)
        reference = self.desk.from_file(source, clip_name or name)
        codes = VoiceCodes(codec=self.desk.codec, key=reference.key, digest=reference.digest)
        details = VoiceDetails(name=name, transcript=transcript, clip_name=clip_name)
        return self.voices.add(details, source, codes=codes, duration=reference.duration)

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

    def _take(self, script: str, voice: Voice | None, clip_name: str, request: Request) -> Take:
        reference, options = request.reference, request.options
        return Take(
            script=script,
            voice_id=voice.id if voice else None,
            voice_name=voice.name if voice else clip_name,
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
