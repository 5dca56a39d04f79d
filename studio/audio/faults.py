"""What can be wrong with the samples of a recording, measured: flat tops, channels that disagree, offset, mains hum."""

from dataclasses import dataclass

import numpy as np

from studio.audio.silero import SAMPLE_RATE
from studio.audio.waveform import SILENCE_DBFS, Waveform, dbfs, level_dbfs

_FLAT = 0.999
"""Of the highest sample of its sign: what lies above it in a row is a flat top."""
_SHORTEST_TOP = 3
_FEWEST_TOPS = 3
"""A clean recording has one highest place, and by chance a second; a clipped one comes to the same height again and
again."""
_IDENTICAL = -70.0
_SILENT_CHANNEL = -40.0
_CANCELLED = -8.0
_SIMILAR = -12.0

_HUM_BASES = (50.0, 60.0)
_HUM_HARMONICS = 6
_HUM_PROMINENCE = 18.0
"""dB of a line over what lies around it."""


@dataclass(frozen=True)
class Clipping:
    """Flat tops: how many, and which share of all samples lies in them (0 to 1)."""

    tops: int
    share: float


@dataclass(frozen=True)
class Channels:
    """How channels relate: "one", "identical", "similar", "different", "one silent" or "antiphase".

    `mean_loss` is the level of their mean under that of the loudest channel, in dB: 0 for identical ones, 6 where one
    of two is silent, much where they cancel each other.
    """

    relation: str
    mean_loss: float


def find_clipping(waveform: Waveform) -> Clipping:
    """Rows of samples at the top or the bottom of a channel that no voice makes; none where there are too few rows."""
    tops = samples = 0
    for channel in waveform.samples:
        for sign in (1, -1):
            found, length = _flat_tops(channel * np.float32(sign))
            if found >= _FEWEST_TOPS:
                tops, samples = tops + found, samples + length
    return Clipping(tops, samples / max(1, waveform.samples.size))


def _flat_tops(channel: np.ndarray) -> tuple[int, int]:
    """How many rows of samples lie at the highest level, and how many samples they have."""
    peak = float(channel.max(initial=0.0))
    if dbfs(peak) < -40:
        return 0, 0
    high = np.concatenate([[False], channel >= peak * _FLAT, [False]])
    edges = np.flatnonzero(high[1:] != high[:-1]).reshape(-1, 2)
    lengths = edges[:, 1] - edges[:, 0]
    tops = lengths[lengths >= _SHORTEST_TOP]
    return len(tops), int(tops.sum())


def compare_channels(waveform: Waveform) -> Channels:
    if waveform.channels == 1:
        return Channels("one", 0.0)
    levels = sorted(level_dbfs(Waveform(channel[None], waveform.sample_rate)) for channel in waveform.samples)
    mean_loss = levels[-1] - level_dbfs(waveform.mono())
    first = waveform.samples[0]
    difference = max(level_dbfs(Waveform((other - first)[None], waveform.sample_rate)) for other in waveform.samples)
    if levels[-1] <= SILENCE_DBFS or difference - levels[-1] < _IDENTICAL:
        return Channels("identical", mean_loss)
    if levels[0] - levels[-1] < _SILENT_CHANNEL:
        return Channels("one silent", mean_loss)
    if -mean_loss < _CANCELLED:
        return Channels("antiphase", mean_loss)
    return Channels("similar" if difference - levels[-1] < _SIMILAR else "different", mean_loss)


def offset_of(waveform: Waveform) -> float:
    """The largest constant in any channel, linear."""
    if waveform.num_samples == 0:
        return 0.0
    return float(np.abs(waveform.samples.mean(axis=1, dtype=np.float64)).max())


def hum_level(channel: np.ndarray) -> float:
    """Level of mains hum in dBFS: steady lines at multiples of 50 or 60 Hz that stand out; SILENCE_DBFS without any.

    `channel` is float32 `(samples,)` at 16 kHz as `speech.heard` gives it. A voice's own lines move and are no hum.
    """
    if len(channel) < SAMPLE_RATE:
        return SILENCE_DBFS
    window = np.hanning(len(channel))
    power = np.square(np.abs(np.fft.rfft(channel * window))) / np.square(window.sum()) * 2
    resolution = SAMPLE_RATE / len(channel)
    return max(_lines(power, base, resolution) for base in _HUM_BASES)


def _lines(power: np.ndarray, base: float, resolution: float) -> float:
    total = 0.0
    for harmonic in range(1, _HUM_HARMONICS + 1):
        at = base * harmonic / resolution
        reach = 2.5 + 0.002 * at  # a window's line is four bins wide, and the mains may be 0.2 % off
        line = power[max(0, round(at - reach)) : round(at + reach) + 1]
        around = power[max(0, round(at - 12 / resolution)) : round(at + 12 / resolution)]
        if line.max() > np.quantile(around, 0.75) * 10 ** (_HUM_PROMINENCE / 10):
            total += float(line.max())
    return dbfs(np.sqrt(total))
