"""Where a clip can be cut without cutting a word: the part of it that serves best as a reference."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from studio.audio.envelope import STEP, Envelope
from studio.audio.speech import SHORTEST_REFERENCE

GOOD_LENGTH = (3.0, 10.0)
"""Seconds that a good reference has."""
SHORTEST_PAUSE = 0.16
"""Seconds of quiet that are a pause between words; the closure of a stop is shorter (measured: at most 0.14)."""
MARGIN = 0.2
"""Seconds of a pause that are kept at most at a cut."""


@dataclass(frozen=True)
class Pauses:
    """Quiet within a clip, in seconds from its start: before the first word, after the last, and between words."""

    lead: float
    tail: float
    between: tuple[tuple[float, float], ...]


def find_pauses(envelope: Envelope) -> Pauses:
    """Pauses of at least SHORTEST_PAUSE between words, and the ends, which may be shorter.

    Without any sound, the whole clip is both ends.
    """
    sounding = np.flatnonzero(envelope.sounding)
    length = len(envelope.levels) * STEP
    if len(sounding) == 0:
        return Pauses(length, length, ())
    gaps = np.flatnonzero(np.diff(sounding) * STEP > SHORTEST_PAUSE + STEP / 2)
    between = tuple((float(sounding[gap] + 1) * STEP, float(sounding[gap + 1]) * STEP) for gap in gaps)
    return Pauses(float(sounding[0]) * STEP, length - float(sounding[-1] + 1) * STEP, between)


def best_trim(
    envelope: Envelope, pauses: Pauses, *, starts_within: bool, ends_within: bool
) -> tuple[float, float] | None:
    """Start and end in seconds of the part that begins and ends in pauses and has the most speech in 3 to 10 s.

    `starts_within` and `ends_within` tell that the clip's own ends lie within words. None where every part is shorter
    than a reference may be.
    """
    length = len(envelope.levels) * STEP
    starts = [end - min(MARGIN, (end - start) / 2) for start, end in pauses.between]
    ends = [start + min(MARGIN, (end - start) / 2) for start, end in pauses.between]
    if not starts_within:
        starts.insert(0, max(0.0, pauses.lead - MARGIN))
    if not ends_within:
        ends.append(min(length, length - pauses.tail + MARGIN))
    sound = np.concatenate([[0], np.cumsum(envelope.sounding & envelope.spoken)]) * STEP
    return _best(starts, ends, sound)


def _best(starts: Sequence[float], ends: Sequence[float], sound: np.ndarray) -> tuple[float, float] | None:
    """The pair with the most sound among those of good length, else the longest of the rest that are not longer."""
    shortest, longest = GOOD_LENGTH
    parts = [(start, end) for start in starts for end in ends if SHORTEST_REFERENCE <= end - start <= longest]
    if not parts:
        return None

    def merit(part: tuple[float, float]) -> tuple[bool, float, float]:
        start, end = part
        return end - start >= shortest, sound[_step(end, sound)] - sound[_step(start, sound)], start - end

    start, end = max(parts, key=merit)
    return round(start, 2), round(end, 2)


def _step(time: float, sound: np.ndarray) -> int:
    return min(round(time / STEP), len(sound) - 1)
