"""The bench of the invariance lab: the codec under one setting, and its clips."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from studio.engine.probe import CodecProbe, PaddedBatch, ProbeFactory, ProbeSetting, one_row
from studio.invariance.clips import LabClip, boundary_clips, cuts
from studio.invariance.encoding import encode_alone, encode_rows

if TYPE_CHECKING:
    from studio.audio.waveform import Waveform
    from studio.engine.interface import Engine
    from studio.invariance.promise import FilledCodes
    from studio.reference_verify import Verification

_DEVICES = {"cpu": "CPU", "cuda": "GPU", "mps": "GPU"}


@dataclass(frozen=True, kw_only=True)
class LabSize:
    """How much is run."""

    lengths: tuple[int, ...] = (1, 3, 6, 12, 25)
    """Frames of the ordinary cuts."""
    clips: int = 8
    """Cuts of each length."""
    batches: tuple[int, ...] = (2, 3, 4, 8)
    repeats: int = 4
    gaps: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 25)
    """Frames by which a neighbour is longer."""
    boundary_lengths: tuple[int, ...] = (1, 3, 8, 25)
    """Frames of the clips at a boundary."""
    boundary_clips: int = 2
    """Boundaries of each length; a clip lies on either side of each."""
    search_lengths: tuple[int, ...] = (1, 2, 3, 4, 6, 8, 12, 25)
    search_clips: int = 2
    threads: tuple[int, ...] = (1, 2)
    requests: int = 96


FULL = LabSize()
QUICK = LabSize(
    lengths=(2, 12),
    clips=4,
    batches=(2, 4),
    repeats=3,
    gaps=(0, 1, 4, 12),
    boundary_lengths=(3, 8),
    boundary_clips=1,
    search_lengths=(2, 3),
    search_clips=1,
    requests=32,
)
"""Under a minute on two cores."""


@dataclass(frozen=True, kw_only=True)
class StudioParts:
    """What some experiments need beside the codec; an experiment without its part is not checkable."""

    engine: "Engine | None" = None
    promise: "Callable[[], FilledCodes] | None" = None
    """A reference cache in a folder of its own."""
    library: "Callable[[], Iterator[Verification]] | None" = None
    transcribe: "Callable[[Waveform], str] | None" = None
    sounds: Path | None = None
    """Where what can be listened to is written; None writes nothing."""
    smallest: Path | None = None
    """Where the smallest failing case is written."""


@dataclass(frozen=True, eq=False)
class Compared:
    """One clip alone and as a row of one batch; codes `(num_codebooks, num_frames)`."""

    clip: LabClip
    rows: int
    solo: np.ndarray
    batch: np.ndarray
    beside: PaddedBatch
    row: int
    """Which row of the batch `beside` it was."""
    steady: bool
    """Whether both sides came out the same when they were run again; not asked where they are equal."""

    @property
    def apart(self) -> np.ndarray:
        return self.solo != self.batch


@dataclass(frozen=True, kw_only=True, eq=False)
class Lab:
    """One codec under one setting."""

    probe: CodecProbe
    probes: ProbeFactory
    """The same codec under other settings; for a process of its own."""
    sources: Sequence[LabClip]
    seed: int = 0
    size: LabSize = FULL
    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    parts: StudioParts = field(default_factory=StudioParts)
    compared: "list[Compared]" = field(default_factory=list)
    """What `shapes.compared` has run on this bench, for the experiments that look at it again."""

    @property
    def hop(self) -> int:
        return self.probe.codec.hop_length

    @property
    def here(self) -> str:
        """ "in bfloat16 with 1 thread on this CPU"."""
        return f"in {self.probe.setting} on this {_DEVICES.get(self.probe.device, self.probe.device)}"

    def with_probe(self, setting: ProbeSetting) -> "Lab":
        """The same bench under another setting, with boundaries of its own."""
        if setting == self.probe.setting:
            return self
        return replace(self, probe=self.probes(setting), compared=[])

    def encode(self, batch: PaddedBatch) -> list[np.ndarray]:
        """The codes of each row's clip, as `encode_rows`."""
        return encode_rows(self.probe, batch)

    def solo(self, clip: LabClip) -> np.ndarray:
        """`(num_codebooks, num_frames)` of the clip encoded alone."""
        return encode_alone(self.probe, clip.samples)

    def cuts(self, frames: int, count: int | None = None) -> list[LabClip]:
        return cuts(self.sources, frames, count or self.size.clips, self.hop, self.seed)

    def boundaries(self, frames: int, count: int) -> list[LabClip]:
        """Clips on either side of `count` boundaries of the solo encode under this setting."""
        return boundary_clips(self.cuts(frames, 2 * count), lambda samples: self.probe.encode(one_row(samples))[0])

    @cached_property
    def ordinary(self) -> list[LabClip]:
        return [clip for frames in self.size.lengths for clip in self.cuts(frames)]

    @cached_property
    def boundary(self) -> list[LabClip]:
        return [
            clip for frames in self.size.boundary_lengths for clip in self.boundaries(frames, self.size.boundary_clips)
        ]

    @property
    def clips(self) -> list[LabClip]:
        return [*self.ordinary, *self.boundary]

    @property
    def some(self) -> list[LabClip]:
        """Two cuts of each length and all at a boundary: for questions with many shapes a clip."""
        return [*(clip for frames in self.size.lengths for clip in self.cuts(frames)[:2]), *self.boundary]
