"""What the invariance lab asks of a codec: batches of any shape, margins, a look inside, and both ways of decoding.

The values that cross this border are plain; torch stays behind it. Nothing that a probe gives is canonical or is kept.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from studio.engine.interface import CodecIdentity


@dataclass(frozen=True, kw_only=True)
class ProbeSetting:
    """How a probe computes."""

    dtype: str = "float32"
    """Of the networks before the quantiser: "float32", "tf32", "bfloat16" or "float16"; the quantiser is float32."""
    num_threads: int = 1
    """Intra-op threads."""

    def __str__(self) -> str:
        return f"{self.dtype} with {self.num_threads} thread{'s' if self.num_threads > 1 else ''}"


CANONICAL = ProbeSetting()


@dataclass(frozen=True, eq=False)
class PaddedBatch:
    """Clips side by side: float32 `(rows, channels, samples)`, whole frames, and how many samples of each row are its
    clip's; what follows them is padding of any content."""

    samples: np.ndarray
    lengths: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.samples.ndim != 3 or len(self.samples) != len(self.lengths):
            raise ValueError(f"{len(self.lengths)} lengths for samples {self.samples.shape}")
        if max(self.lengths) > self.samples.shape[2]:
            raise ValueError("a clip is longer than its batch")


@dataclass(frozen=True, kw_only=True)
class ModuleDifference:
    """One module's output for a clip alone against the same clip in a batch."""

    module: str
    kind: str
    elements: int
    differing: int
    max_abs: float
    mean_abs: float
    input_differs: bool
    digest_solo: str
    digest_batch: str
    digests_rows: tuple[str, ...]
    """Of every row of the batch, cut to the clip's length."""


class Trace(Protocol):
    """The modules in the order in which they were done, and the saved inputs of one of them."""

    @property
    def modules(self) -> tuple[ModuleDifference, ...]: ...

    @property
    def origin(self) -> ModuleDifference | None:
        """The first whose input is equal and whose output is not; None where none is."""
        ...

    def replay(self) -> ModuleDifference:
        """The saved inputs of `origin` through that module alone, once more."""
        ...


class CodecProbe(Protocol):
    """One codec under one setting, computing in a thread of its own."""

    @property
    def setting(self) -> ProbeSetting: ...

    @property
    def codec(self) -> CodecIdentity: ...

    @property
    def device(self) -> str: ...

    @property
    def whole_tolerance(self) -> float:
        """By how much a sample of a whole decode may differ from the streamed one."""
        ...

    def encode(self, batch: PaddedBatch) -> np.ndarray:
        """Codes int16 `(rows, num_codebooks, num_frames)`, those of the padding included."""
        ...

    def latents(self, batch: PaddedBatch) -> np.ndarray:
        """What the quantiser is given, float32 `(rows, num_frames, latent_width)`."""
        ...

    def distances(self, batch: PaddedBatch) -> np.ndarray:
        """Squared distances `(rows, num_codebooks, num_frames, 2)` to the best and the second-best entry."""
        ...

    def trace(self, solo: PaddedBatch, batch: PaddedBatch, row: int) -> Trace:
        """Compares the modules' outputs for the one row of `solo` with those for `row` of `batch`."""
        ...

    def decode(self, codes: np.ndarray) -> np.ndarray:
        """The waveform `(channels, samples)` of `(num_codebooks, num_frames)` in one pass, always in float32."""
        ...

    def decode_streamed(self, codes: np.ndarray, chunk: int) -> np.ndarray:
        """The same as a stream of `chunk` frames a call."""
        ...


ProbeFactory = Callable[[ProbeSetting], CodecProbe]


def one_row(samples: np.ndarray) -> PaddedBatch:
    """A clip `(channels, samples)` as a batch of its own."""
    return PaddedBatch(samples[None], (samples.shape[1],))


def cut_rows(values: np.ndarray, lengths: Sequence[int], hop_length: int) -> list[np.ndarray]:
    """The part `(num_codebooks, its frames)` of each row of codes that belongs to its clip."""
    return [np.ascontiguousarray(row[:, : length // hop_length]) for row, length in zip(values, lengths, strict=True)]
