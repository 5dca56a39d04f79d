"""The one value that sound travels in, and its crossing to and from int16. It knows no file and no model."""

from dataclasses import dataclass

import numpy as np

SILENCE_DBFS = -120.0
LARGEST_CLIP = 64_000_000
"""Samples of all channels together that are read of one file, 256 MB of float32: 11 minutes of stereo at 48 kHz."""


@dataclass(frozen=True, eq=False)
class Waveform:
    """Sound as float32 `(channels, samples)`; full scale is [-1, 1], which a float file may exceed."""

    samples: np.ndarray
    sample_rate: int

    def __post_init__(self) -> None:
        if self.samples.ndim != 2 or self.samples.shape[0] == 0:
            raise ValueError(f"samples must be (channels, samples), not {self.samples.shape}")
        if self.samples.dtype != np.float32:
            raise ValueError(f"samples must be float32, not {self.samples.dtype}")
        if self.sample_rate <= 0:
            raise ValueError(f"the sample rate must be above 0, not {self.sample_rate}")

    @property
    def channels(self) -> int:
        return self.samples.shape[0]

    @property
    def num_samples(self) -> int:
        """Samples of one channel."""
        return self.samples.shape[1]

    @property
    def duration(self) -> float:
        return self.num_samples / self.sample_rate

    @property
    def peak(self) -> float:
        """Largest absolute sample, linear; 0 for an empty waveform."""
        return float(np.abs(self.samples).max(initial=0.0))

    def mono(self) -> "Waveform":
        """One channel: the mean of all."""
        if self.channels == 1:
            return self
        return Waveform(self.samples.mean(axis=0, keepdims=True, dtype=np.float32), self.sample_rate)

    def slice(self, start: int, end: int) -> "Waveform":
        """The samples from `start` up to, not including, `end`."""
        if not 0 <= start <= end <= self.num_samples:
            raise ValueError(f"{start} to {end} is not inside 0 to {self.num_samples}")
        return Waveform(self.samples[:, start:end], self.sample_rate)


def dbfs(amplitude: float) -> float:
    """A linear amplitude in decibels below full scale, never under SILENCE_DBFS."""
    floor = 10 ** (SILENCE_DBFS / 20)
    return float(20 * np.log10(max(amplitude, floor)))


def level_dbfs(waveform: Waveform) -> float:
    """Root mean square over all samples of all channels, in dBFS."""
    if waveform.num_samples == 0:
        return SILENCE_DBFS
    return dbfs(float(np.sqrt(np.mean(np.square(waveform.samples, dtype=np.float64)))))


def to_pcm(samples: np.ndarray) -> np.ndarray:
    """Float samples as int16 of the same shape: rounded to the nearest, clipped at full scale, never wrapped."""
    return np.clip(np.rint(samples * 32768.0), -32768, 32767).astype(np.int16)


def from_pcm(pcm: np.ndarray) -> np.ndarray:
    """Int16 samples as float32 of the same shape; `to_pcm` gives the same integers back."""
    return pcm.astype(np.float32) / np.float32(32768.0)
