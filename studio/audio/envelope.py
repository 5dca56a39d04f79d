"""How loud a clip is from one hundredth of a second to the next: where it speaks, pauses, and what lies beneath.

Everything is measured on the one channel that is listened to, from 70 Hz to 8 kHz: below is rumble, above is little
that a voice needs.
"""

from dataclasses import dataclass

import numpy as np

from studio.audio.silero import SAMPLE_RATE
from studio.audio.waveform import SILENCE_DBFS

STEP = 0.01
"""Seconds of one level."""
LOWEST_FREQUENCY = 70.0
DIGITAL_SILENCE = -110.0
"""dB relative to the peak under which a step was never recorded: it was muted or put in, and says nothing about the
room. Its level is minus infinity."""

_STEP_SAMPLES = round(STEP * SAMPLE_RATE)
_GATE = 10.0
"""dB under their mean at which steps no longer count as spoken (as in EBU R 128)."""
_FLOOR_QUANTILE = 0.05
_LEAST_POWER = 1e-30
_FLOOR_SMOOTHING = 5
_ABOVE_FLOOR = 8.0
_BELOW_SPEECH = 30.0
_LEAST_BELOW_SPEECH = 12.0


@dataclass(frozen=True, eq=False)
class Envelope:
    """Levels of a channel in dBFS, float64 `(steps,)`, not bounded by SILENCE_DBFS, and its speech in seconds."""

    levels: np.ndarray
    speech: list[tuple[float, float]]

    @property
    def speech_level(self) -> float:
        """Root mean square of what is spoken, in dBFS: the steps within speech, without those much below the rest."""
        return gated_level(self.levels[self.spoken])

    @property
    def spoken(self) -> np.ndarray:
        """Which steps lie in speech, bool `(steps,)`."""
        spoken = np.zeros(len(self.levels), dtype=bool)
        for start, end in self.speech:
            spoken[round(start / STEP) : round(end / STEP)] = True
        return spoken

    @property
    def noise_floor(self) -> float:
        """What is left in the quietest twentieth of the clip, in dBFS: its pauses, or else between its sounds."""
        recorded = self.levels[np.isfinite(self.levels)]
        if len(recorded) < _FLOOR_SMOOTHING:
            return SILENCE_DBFS
        smooth = np.convolve(_power(recorded), np.full(_FLOOR_SMOOTHING, 1 / _FLOOR_SMOOTHING), "valid")
        return max(SILENCE_DBFS, float(_decibels(np.quantile(smooth, _FLOOR_QUANTILE))))

    @property
    def sounding(self) -> np.ndarray:
        """Which steps are part of a word rather than of a pause, bool `(steps,)`."""
        speech_level = self.speech_level
        threshold = max(self.noise_floor + _ABOVE_FLOOR, speech_level - _BELOW_SPEECH)
        return self.levels > min(threshold, speech_level - _LEAST_BELOW_SPEECH)


def measure_envelope(channel: np.ndarray, speech: list[tuple[float, float]]) -> Envelope:
    """The envelope of a channel as `speech.heard` gives it, float32 `(samples,)` at 16 kHz; a last part of a step is
    left out."""
    steps = len(channel) // _STEP_SAMPLES
    if steps == 0:
        return Envelope(np.empty(0), [])
    spectrum = np.fft.rfft(channel.astype(np.float64))
    spectrum[: round(LOWEST_FREQUENCY * len(channel) / SAMPLE_RATE)] = 0
    voice = np.fft.irfft(spectrum, len(channel))
    pieces, plain = (each[: steps * _STEP_SAMPLES].reshape(steps, _STEP_SAMPLES) for each in (voice, channel))
    levels = _decibels(np.mean(np.square(pieces), axis=1))
    muted = plain.var(axis=1) <= np.square(np.abs(channel).max()) * 10 ** (DIGITAL_SILENCE / 10)
    levels[muted] = -np.inf  # the filter rings into them
    return Envelope(levels, speech)


def gated_level(levels: np.ndarray) -> float:
    """Their mean power in dBFS, without those more than _GATE below it; SILENCE_DBFS where there are none."""
    if len(levels) == 0:
        return SILENCE_DBFS
    power = _power(levels)
    return max(SILENCE_DBFS, float(_decibels(power[power >= power.mean() * 10 ** (-_GATE / 10)].mean())))


def _power(levels: np.ndarray) -> np.ndarray:
    return 10 ** (levels / 10)


def _decibels(power: np.ndarray) -> np.ndarray:
    return 10 * np.log10(np.maximum(power, _LEAST_POWER))
