"""An ordinary batched fill, for contrast: clips padded to one length and encoded together, as servers do it.

What it gives a clip depends on who else was in the batch; the canonical value is that of `engine.encode`. Nothing here
is ever stored.
"""

import hashlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

BatchEncode = Callable[[Sequence[np.ndarray], int], list[np.ndarray]]
"""Prepared clips `(1, samples)` and a number of intra-op threads to codes `(num_codebooks, num_frames)` of each, all of
them in one padded batch."""


@dataclass(frozen=True, kw_only=True)
class ClipDigests:
    """What one clip was given in all the batches it was in."""

    clip: int
    num_frames: int
    solo: str
    """Digest of the codes of a batch of one."""
    digests: tuple[str, ...]
    """Every digest that came up, the solo one included, in the order of their first coming."""
    batches: int
    most_differing: int
    """Codes that differ from the solo ones in the worst batch."""
    num_codes: int

    @property
    def invariant(self) -> bool:
        return self.digests == (self.solo,)


@dataclass(frozen=True, kw_only=True)
class BatchedFill:
    """Clips that arrive in random order and are filled together with whoever is there."""

    num_threads: int
    batch_sizes: tuple[int, ...]
    clips: tuple[ClipDigests, ...]

    @property
    def variant_clips(self) -> int:
        """Clips with more than one digest."""
        return sum(len(clip.digests) > 1 for clip in self.clips)

    @property
    def most_digests(self) -> int:
        return max(len(clip.digests) for clip in self.clips)

    @property
    def worst_rate(self) -> float:
        """The largest share of a clip's codes that a batch changed."""
        return max(clip.most_differing / clip.num_codes for clip in self.clips)


def batched_fill(
    encode: BatchEncode,
    clips: Sequence[np.ndarray],
    *,
    num_threads: int,
    batch_sizes: Sequence[int] = (1, 2, 3, 4, 8),
    rounds: int = 3,
    seed: int = 0,
) -> BatchedFill:
    """Fills prepared clips `(1, samples)` in batches of each size, `rounds` times in random order each.

    Deterministic for a seed, an engine and a machine. The thread count is set for the process while it runs, so call it
    where nothing else encodes.
    """
    solo = [encode([clip], num_threads)[0] for clip in clips]
    found = [[codes] for codes in solo]
    rng = random.Random(seed)  # noqa: S311 - order of arrival
    for size in batch_sizes:
        for _ in range(rounds):
            order = rng.sample(range(len(clips)), len(clips))
            for start in range(0, len(order), size):
                batch = order[start : start + size]
                for clip, codes in zip(batch, encode([clips[clip] for clip in batch], num_threads), strict=True):
                    found[clip].append(codes)
    described = tuple(_digests(clip, codes) for clip, codes in enumerate(found))
    return BatchedFill(num_threads=num_threads, batch_sizes=tuple(batch_sizes), clips=described)


def boundary_clip(encode: BatchEncode, first: np.ndarray, second: np.ndarray, *, num_threads: int) -> np.ndarray:
    """A clip between two of one length, at a point where a last bit decides a code of the solo encode.

    ValueError where both have the same codes. Ordinary clips come near such points by chance only, so few of them show
    what a batch does to the last bits.
    """
    return boundary_pair(lambda clip: encode([clip], num_threads)[0], first, second)[0]


def boundary_pair(
    encode: Callable[[np.ndarray], np.ndarray], first: np.ndarray, second: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The clips on either side of such a point; what moves the encoder's numbers by more than a last bit moves one of
    them across it.

    Bisects the share of `second` in the mixture of `(channels, samples)` until no float32 mixture lies between the two,
    and then how far from the beginning the one takes the place of the other: the sides are a last bit of one sample
    apart. ValueError where both have the same codes.
    """
    low, high = 0.0, 1.0
    codes_of_low = encode(first)
    if np.array_equal(codes_of_low, encode(second)):
        raise ValueError("the two clips have the same codes")
    while True:
        middle = (low + high) / 2
        mixture, below, above = _mix(first, second, middle), _mix(first, second, low), _mix(first, second, high)
        if middle in (low, high) or np.array_equal(mixture, above) or np.array_equal(mixture, below):
            return _one_sample_apart(below, above, lambda clip: np.array_equal(encode(clip), codes_of_low))
        if np.array_equal(encode(mixture), codes_of_low):
            low = middle
        else:
            high = middle


def _one_sample_apart(
    below: np.ndarray, above: np.ndarray, is_below: Callable[[np.ndarray], bool]
) -> tuple[np.ndarray, np.ndarray]:
    def joined(place: int) -> np.ndarray:
        return np.concatenate([above[:, :place], below[:, place:]], axis=1)

    low, high = 0, below.shape[1]
    while high - low > 1:
        middle = (low + high) // 2
        if is_below(joined(middle)):
            low = middle
        else:
            high = middle
    return joined(low), joined(high)


def _mix(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    return ((1.0 - share) * first.astype(np.float64) + share * second.astype(np.float64)).astype(np.float32)


def _digests(clip: int, found: list[np.ndarray]) -> ClipDigests:
    """The first of `found` is the solo one."""
    digests = [digest(codes) for codes in found]
    return ClipDigests(
        clip=clip,
        num_frames=found[0].shape[1],
        solo=digests[0],
        digests=tuple(dict.fromkeys(digests)),
        batches=len(found) - 1,
        most_differing=max(int((codes != found[0]).sum()) for codes in found),
        num_codes=found[0].size,
    )


def digest(codes: np.ndarray) -> str:
    """SHA-256 over shape and int16 codes."""
    return hashlib.sha256(repr(codes.shape).encode() + codes.astype("<i2").tobytes()).hexdigest()
