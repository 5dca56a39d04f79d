"""What Praat does for us (GPL: for training only): the pitch that the decoder learns, and a higher voice."""

# The extra need not be installed where types are checked:
# pyright: reportMissingImports=false

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


def raise_voice(samples: np.ndarray) -> np.ndarray:
    """The same utterance from a shorter throat: formants 12 % higher, pitch around 170 Hz, durations kept."""
    sound = parselmouth.Sound(samples.astype(np.float64), SAMPLE_RATE)
    raised = call(sound, "Change gender", 60, 400, 1.12, 170, 1.0, 1.0).values[0]
    return np.pad(raised, (0, max(0, len(samples) - len(raised))))[: len(samples)].astype(np.float32)
