"""The pitch that the decoder learns: Praat's autocorrelation (GPL: for training only)."""

# pyright: reportMissingImports=false  (an extra that need not be installed where types are checked)

import numpy as np
import parselmouth

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
