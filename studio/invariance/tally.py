"""Counting codes that differ, by clip, codebook and frame, and telling a difference from noise."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Encode = Callable[[], np.ndarray]
"""Codes `(num_codebooks, num_frames)`, encoded anew at every call."""


@dataclass
class Tally:
    """What was compared so far."""

    codes: int = 0
    differ: int = 0
    frames: int = 0
    differing_frames: int = 0
    unsteady: int = 0
    """Differences of which one side was another one when it was run again: they say nothing but that there is noise."""
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    by_codebook: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """`(num_codebooks, 2)`: codes, and how many of them differ."""

    def compare(self, clip: str, against: str, one: Encode, other: Encode) -> np.ndarray:
        """Runs both sides, and where they differ both once more; returns where, `(num_codebooks, num_frames)`."""
        first, second = one(), other()
        if not np.array_equal(first, second):
            self.unsteady += not (np.array_equal(one(), first) and np.array_equal(other(), second))
        return self.add(clip, against, first, second)

    def add(self, clip: str, against: str, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Counts two sides that were run already."""
        apart = one != other
        self.codes += apart.size
        self.differ += int(apart.sum())
        self.frames += apart.shape[1]
        self.differing_frames += int(apart.any(axis=0).sum())
        if not len(self.by_codebook):
            self.by_codebook = np.zeros((len(apart), 2), dtype=np.int64)
        self.by_codebook += np.stack([np.full(len(apart), apart.shape[1]), apart.sum(axis=1)], axis=1)
        self.comparisons.append({"clip": clip, "against": against, "codes": apart.size, "differ": int(apart.sum())})
        return apart

    @property
    def rate(self) -> float:
        return self.differ / self.codes if self.codes else 0.0

    @property
    def counted(self) -> str:
        """ "38 of 4,800 codes"."""
        return f"{self.differ:,} of {self.codes:,} codes"

    def figures(self) -> dict[str, Any]:
        return {"codes": self.codes, "differ": self.differ, "rate": self.rate}

    def detailed(self) -> dict[str, Any]:
        """The figures, and every comparison."""
        return self.figures() | {"comparisons": self.comparisons, "unsteady": self.unsteady}

    def per_frame(self) -> dict[str, Any]:
        return self.figures() | {"frames": self.frames, "differing_frames": self.differing_frames}

    def per_codebook(self) -> list[dict[str, Any]]:
        return [
            {"codebook": number, "codes": int(codes), "differ": int(differ), "rate": float(differ / codes)}
            for number, (codes, differ) in enumerate(self.by_codebook)
        ]


def share(rate: float) -> str:
    """ "0.8 %"; one digit more where that would be 0.0."""
    percent = 100 * rate
    return f"{percent:.1f} %" if percent == 0 or percent >= 0.05 else f"{percent:.2g} %"
