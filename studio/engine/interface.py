"""What every engine offers to the layers above it, and the plain values that cross that border."""

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from studio.audio.waveform import Waveform
from studio.engine.sampling import SamplingOptions
from studio.text.script import Utterance


@dataclass(frozen=True, kw_only=True)
class CodecIdentity:
    """All that decides, together with the clip, which codes a solo encode gives; it goes into the cache key."""

    codec_id: str
    digest: str
    """SHA-256 over the codec's configuration and weights."""
    sample_rate: int
    hop_length: int
    """Samples a frame of codes stands for."""
    num_codebooks: int
    codebook_size: int
    compute_dtype: str
    attention_backend: str
    recipe: str
    """Id and version of the reference preparation: channel rule, resampler, level, tail."""

    @property
    def frame_rate(self) -> float:
        """Frames a second."""
        return self.sample_rate / self.hop_length


@dataclass(frozen=True, kw_only=True)
class Environment:
    """Where an encode ran. It is provenance, never part of a key."""

    device: str
    torch_version: str
    cuda_version: str | None
    num_threads: int
    """Intra-op threads, read back in the thread that encoded."""


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """One solo encode: int16 codes `(num_codebooks, num_frames)`, where it ran and how many seconds it took."""

    codes: np.ndarray
    environment: Environment
    duration: float


class Engine(Protocol):
    """A speech engine: a reference encoder and a generator of speech conditioned on its codes."""

    @property
    def name(self) -> str: ...

    @property
    def revision(self) -> str:
        """Names the weights; stored with every take."""
        ...

    @property
    def device(self) -> str: ...

    @property
    def sample_rate(self) -> int: ...

    @property
    def channels(self) -> int: ...

    @property
    def speech_threads(self) -> int:
        """Intra-op threads of the lane that speaks. Always the same on one machine: another count may give other last
        bits, and so another take for a seed."""
        ...

    @property
    def uses_transcript(self) -> bool: ...

    @property
    def codec(self) -> CodecIdentity: ...

    @property
    def environment(self) -> Environment:
        """Where an encode would run now, known without one."""
        ...

    def check_script(self, text: str) -> None:
        """Raises ScriptError where this engine cannot speak the text."""
        ...

    def prepare(self, clip: Waveform) -> Waveform:
        """The canonical preparation of an already trimmed clip: a pure function, named by `codec.recipe`."""
        ...

    def encode(self, prepared: Waveform) -> Encoded:
        """Encodes the clip alone, in the engine's encoder lane; blocks, and may be called from any thread."""
        ...

    def speak(
        self, utterance: Utterance, codes: np.ndarray, options: SamplingOptions, *, index: int
    ) -> Generator[np.ndarray, None, None]:
        """Yields int16 PCM `(channels, samples)` while it is made; `index` numbers the utterance within its script.
        Closing the iterator stops the model within one frame."""
        ...

    def close(self) -> int:
        """Lets the model go and returns how many bytes its weights took, 0 where it was closed before. Whoever uses the
        engine afterwards, or is speaking with it now, gets EngineClosed."""
        ...
