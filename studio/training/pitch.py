"""What Praat does for us (GPL: for training only): the pitch that the decoder learns, and other throats."""

# The extra need not be installed where types are checked:
# pyright: reportMissingImports=false

from dataclasses import dataclass

import numpy as np
import parselmouth
from parselmouth.praat import call

from studio.engine.harmonic_signal import HOP, SAMPLE_RATE


def pitch_of(samples: np.ndarray) -> np.ndarray:
    """Hertz in the middle of every 10 ms hop, 0 where there is no voice: float32 `(samples / 240,)`."""
    step = HOP / SAMPLE_RATE
    track = parselmouth.Sound(samples.astype(np.float64), SAMPLE_RATE).to_pitch_ac(
        time_step=step, pitch_floor=60, pitch_ceiling=500
    )
    middles = (np.arange(len(samples) // HOP) + 0.5) * step
    values = track.selected_array["frequency"]
    nearest = np.clip(np.round((middles - track.xs()[0]) / step).astype(int), 0, len(values) - 1)
    return values[nearest].astype(np.float32)


@dataclass(frozen=True)
class Throat:
    """Another speaker out of an utterance: formants moved by a factor, the median pitch in hertz, and how lively it
    is (1 is as it was)."""

    formants: float
    pitch: float
    liveliness: float = 1.0


def change_throat(samples: np.ndarray, throat: Throat) -> np.ndarray:
    """The same utterance from another throat, durations kept."""
    sound = parselmouth.Sound(samples.astype(np.float64), SAMPLE_RATE)
    changed = call(sound, "Change gender", 60, 400, throat.formants, throat.pitch, throat.liveliness, 1.0).values[0]
    return np.pad(changed, (0, max(0, len(samples) - len(changed))))[: len(samples)].astype(np.float32)
