"""A clip as a small drawing: the peaks of its channels and where it speaks."""

from dataclasses import dataclass

import numpy as np

from studio.audio.waveform import Waveform

POINTS = 200


@dataclass(frozen=True)
class Overview:
    """`peaks` are linear, 0 to 1 and above where a float file is, one for each equal part of `duration` seconds;
    `speech` has the stretches of speech in seconds."""

    duration: float
    peaks: tuple[float, ...]
    speech: tuple[tuple[float, float], ...]


def draw(waveform: Waveform, speech: list[tuple[float, float]], points: int = POINTS) -> Overview:
    """An overview of at most `points` peaks; fewer where there are fewer samples."""
    loudest = np.abs(waveform.samples).max(axis=0)
    starts = np.linspace(0, len(loudest), min(points, len(loudest)), endpoint=False).astype(int)
    peaks = np.maximum.reduceat(loudest, starts) if len(loudest) else loudest
    return Overview(waveform.duration, tuple(round(float(peak), 4) for peak in peaks), tuple(speech))
