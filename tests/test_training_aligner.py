"""The aligner finds where each phoneme is in made-up speech, in which every phoneme has a spectrum of its own."""

import numpy as np
import pytest

from studio.training.aligner import Aligner, Spoken
from studio.training.dataset import stretch

_SILENCES = frozenset({" ", "|"})
_BANDS = 40


def _speak(phonemes: list[str], random: np.random.Generator) -> tuple[Spoken, np.ndarray]:
    """Random durations; word breaks last 0 to 8 ticks. Returns the utterance and the true phoneme of every tick."""
    spectra = {name: np.random.default_rng(ord(name[-1])).normal(size=_BANDS) for name in "abcdefg"}
    ticks, owners = [], []
    for index, phoneme in enumerate(phonemes):
        silent = phoneme in _SILENCES
        count = int(random.integers(0, 9) if silent else random.integers(6, 16))
        level = np.full(_BANDS, -3.0) if silent else spectra[phoneme.replace("ˈ", "")]
        ticks.append(level + 0.3 * random.normal(size=(count, _BANDS)))
        owners += [index] * count
    return Spoken(np.concatenate(ticks), phonemes), np.array(owners)


@pytest.fixture(scope="module")
def corpus() -> list[tuple[Spoken, np.ndarray]]:
    random = np.random.default_rng(1)
    return [
        _speak([" " if place % 4 == 3 else str(random.choice(list("abcdefg"))) for place in range(12)], random)
        for _ in range(24)
    ]


def test_a_flat_start_finds_the_true_borders(corpus: list[tuple[Spoken, np.ndarray]]) -> None:
    aligner = Aligner([spoken for spoken, _ in corpus], _SILENCES, passes=5)
    right = [np.mean(aligner.align(spoken).phonemes == owners) for spoken, owners in corpus]
    assert np.mean(right) > 0.8


def test_an_alignment_goes_through_the_phonemes_in_order(corpus: list[tuple[Spoken, np.ndarray]]) -> None:
    aligner = Aligner([spoken for spoken, _ in corpus], _SILENCES, passes=2)
    for spoken, owners in corpus[:5]:
        found = aligner.align(spoken).phonemes
        assert found.shape == owners.shape
        assert (np.diff(found) >= 0).all()
        sounding = {index for index, phoneme in enumerate(spoken.phonemes) if phoneme not in _SILENCES}
        assert sounding <= set(found.tolist())


def test_stress_does_not_make_another_phoneme(corpus: list[tuple[Spoken, np.ndarray]]) -> None:
    aligner = Aligner([spoken for spoken, _ in corpus], _SILENCES, passes=1)
    plain, _ = corpus[0]
    stressed = Spoken(plain.mel, ["ˈ" + each if each == "a" else each for each in plain.phonemes])
    assert (aligner.align(stressed).phonemes == aligner.align(plain).phonemes).all()


def test_an_utterance_played_faster_has_its_alignment_scaled() -> None:
    alignment = np.repeat([0, 1, 2], 8)
    assert stretch(alignment, 2.0, 2).tolist() == [0] * 4 + [1] * 4 + [2] * 8
    assert stretch(alignment, 1.0, 3).tolist() == alignment.tolist()
