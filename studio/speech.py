"""One running generation: a stream of chunks that is saved, byte for byte as it is handed out, as a take."""

import hashlib
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace

import numpy as np

from studio.audio.files import TakeWriter
from studio.engine.engine_errors import RanAway
from studio.engine.generation import GenerationLane
from studio.engine.interface import Engine
from studio.engine.sampling import SamplingOptions
from studio.errors import StudioError
from studio.reference import Reference
from studio.store.takes import Take, TakeLibrary
from studio.text.script import Utterance

AUDIBLE = round(32768 * 10 ** (-50 / 20))
"""A sample of this size (-50 dBFS) or more is heard; the first one is the first audio."""
BROKEN = "The studio made a mistake while it spoke; the terminal it runs in says which."


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


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptCodes:
    """The codes `(num_codebooks, num_frames)` a take was made from, in the place of a reference that is looked up."""

    key: str
    codes: np.ndarray
    digest: str
    encode_ms: float
    """What their fill took, whenever it was."""
    outcome: str = "kept"
    lookup_ms: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """One thing to speak, with everything that decides its samples."""

    utterances: tuple[Utterance, ...]
    reference: Reference | KeptCodes
    options: SamplingOptions
    clock: Clock


def produce(engine: Engine, request: Request) -> Generator[np.ndarray, None, None]:
    """All chunks of a request, step by step: int16 `(channels, samples)`, pauses to the sample between utterances.

    Where the speech of one utterance ran away, the rest of the script is spoken all the same; RanAway comes at the end.
    """
    ran_away: RanAway | None = None
    for index, utterance in enumerate(request.utterances):
        yield _silence(engine, utterance.lead)
        try:
            for chunk in engine.speak(utterance, request.reference.codes, request.options, index=index):
                request.clock.made(chunk)
                yield chunk
        except RanAway as error:
            ran_away = ran_away or error
        yield _silence(engine, utterance.pause)
    if ran_away is not None:
        raise ran_away


def _silence(engine: Engine, duration: float) -> np.ndarray:
    return np.zeros((engine.channels, round(duration * engine.sample_rate)), dtype=np.int16)


class Speech:
    """One running generation: an iterator of int16 chunks `(channels, samples)` that saves what it hands out.

    `close` may be called from any thread at any time and stops the model within one frame. However it ends, what was
    handed out is kept as a take, marked partial unless it is whole; where nothing was handed out, nothing is kept.
    """

    def __init__(self, engine: Engine, lane: GenerationLane, takes: TakeLibrary, take: Take, request: Request) -> None:
        self.take_id = take.id
        self.engine = take.engine
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
