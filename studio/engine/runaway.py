"""Notices speech that has run away: a model that repeats itself, falls silent for good or does not come to an end."""

from dataclasses import dataclass
from enum import Enum

import numpy as np

_REPEATED = 25
"""Frames, 2 s: speech never holds every codebook that long."""
_SILENT = 50
"""Frames, 4 s: longer than any pause that a sentence asks for."""


class Runaway(Enum):
    """Why speech was judged to have run away."""

    OVER_BUDGET = "it was longer than its text could take"
    REPEATS = "it repeated one sound"
    SILENT = "it fell silent and did not end"


@dataclass(frozen=True, kw_only=True)
class RunawayLimits:
    """Where speech counts as run away, in frames."""

    budget: int
    """Frames that its text may take at most."""
    repeated: int = _REPEATED
    silent: int = _SILENT

    def __post_init__(self) -> None:
        if min(self.budget, self.repeated, self.silent) < 1:
            raise ValueError(f"{self} would stop before the first frame")


class RunawayWatchdog:
    """Looks at the frames of one attempt as they come. It stops nothing: who generates closes the generator, says so,
    and may try once more with another attempt number."""

    def __init__(self, limits: RunawayLimits, silent_codes: frozenset[int] = frozenset()) -> None:
        """`silent_codes`: those of the first codebook that the codec gives for silence; where they are not known, none,
        silence is left to the other two tests."""
        self._limits = limits
        self._silent_codes = silent_codes
        self._last: np.ndarray | None = None
        self._frames = self._alike = self._silence = 0

    def observe(self, frame: np.ndarray, *, silent: bool = False) -> Runaway | None:
        """Takes the next frame, codes `(num_codebooks,)`; a reason where speech has run away with it. `silent`: nothing
        is heard of it, as whoever decodes it knows.

        It has where as many frames in a row as the limit says are equal in every codebook, or silent, or where this is
        the first frame beyond the budget.
        """
        is_alike = self._last is not None and np.array_equal(frame, self._last)
        self._alike = self._alike + 1 if is_alike else 1
        is_silent = silent or int(frame[0]) in self._silent_codes
        self._silence = self._silence + 1 if is_silent else 0
        self._frames += 1
        self._last = np.array(frame)
        if self._silence >= self._limits.silent:
            return Runaway.SILENT
        if self._alike >= self._limits.repeated:
            return Runaway.REPEATS
        return Runaway.OVER_BUDGET if self._frames > self._limits.budget else None
