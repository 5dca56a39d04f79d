"""What the lab encodes: cuts of real clips, clips made to lie at a codeword boundary, and batches of them."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from studio.engine.probe import PaddedBatch
from studio.invariance.batched_fill import boundary_pair

Group = Literal["ordinary", "boundary"]
Padding = Literal["zeros", "noise", "repeated tail"]
_TRIES = 4
"""Places that are looked at for a cut; the loudest is taken, so that few cuts are pauses."""


@dataclass(frozen=True, eq=False)
class LabClip:
    """A prepared clip: float32 `(channels, samples)`, whole frames."""

    name: str
    samples: np.ndarray
    group: Group = "ordinary"

    @property
    def digest(self) -> str:
        """SHA-256 over shape and samples."""
        content = np.ascontiguousarray(self.samples, dtype="<f4").tobytes()
        return hashlib.sha256(repr(self.samples.shape).encode() + content).hexdigest()

    def frames(self, hop_length: int) -> int:
        return self.samples.shape[1] // hop_length


def cuts(sources: Sequence[LabClip], frames: int, count: int, hop_length: int, seed: int) -> list[LabClip]:
    """`count` pieces of `frames` frames, the sources in turn; none where no source is that long.

    The same for a seed, and other ones for another length.
    """
    long_enough = [source for source in sources if source.frames(hop_length) >= frames]
    if not long_enough:
        return []
    rng = np.random.default_rng([seed, frames])
    return [_cut(long_enough[number % len(long_enough)], frames, hop_length, rng) for number in range(count)]


def _cut(source: LabClip, frames: int, hop_length: int, rng: np.random.Generator) -> LabClip:
    starts = rng.integers(0, source.frames(hop_length) - frames + 1, _TRIES)
    pieces = [source.samples[:, start * hop_length : (start + frames) * hop_length] for start in starts]
    loudest = int(np.argmax([np.square(piece, dtype=np.float64).sum() for piece in pieces]))
    return LabClip(f"{source.name} {starts[loudest]}+{frames}", np.ascontiguousarray(pieces[loudest]))


def boundary_clips(ordinary: Sequence[LabClip], encode: Callable[[np.ndarray], np.ndarray]) -> list[LabClip]:
    """Between each two neighbours of `ordinary`, all of one length, the clips on either side of a point at which a last
    bit decides a code.

    `encode` gives the solo codes of `(channels, samples)`. Neighbours with the same codes have nothing between them.
    """
    made = []
    for one, other in zip(ordinary[::2], ordinary[1::2], strict=False):
        try:
            sides = boundary_pair(encode, one.samples, other.samples)
        except ValueError:
            continue
        made += [
            LabClip(f"{side} the boundary from {one.name} to {other.name}", samples, "boundary")
            for side, samples in zip(("below", "above"), sides, strict=True)
        ]
    return made


def together(
    clips: Sequence[np.ndarray], *, padding: Padding = "zeros", longest: int = 0, seed: int = 0
) -> PaddedBatch:
    """Clips `(channels, samples)` as one batch, padded to the longest of them or to `longest` samples."""
    lengths = tuple(clip.shape[1] for clip in clips)
    width = max((longest, *lengths))
    rng = np.random.default_rng(seed)
    return PaddedBatch(np.stack([_padded(clip, width, padding, rng) for clip in clips]), lengths)


def _padded(clip: np.ndarray, width: int, padding: Padding, rng: np.random.Generator) -> np.ndarray:
    missing = width - clip.shape[1]
    if padding == "noise":
        tail = (0.3 * rng.standard_normal((len(clip), missing))).astype(np.float32)
    elif padding == "repeated tail":
        tail = np.pad(clip, ((0, 0), (0, missing)), mode="wrap")[:, clip.shape[1] :]
    else:
        tail = np.zeros((len(clip), missing), dtype=np.float32)
    return np.concatenate([clip, tail], axis=1)
