import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from studio.audio.resample import resample
from studio.audio.waveform import Waveform

GOLDEN = load_file(Path(__file__).parent / "golden" / "resample.safetensors")
CASES = sorted(name.removesuffix(".in") for name in GOLDEN if name.endswith(".in"))


def sine(frequency: float, rate: int, duration: float) -> Waveform:
    times = np.arange(round(rate * duration)) / rate
    return Waveform((0.5 * np.sin(2 * np.pi * frequency * times)).astype(np.float32)[None], rate)


def error_db(waveform: Waveform, frequency: float) -> float:
    """Distance from the ideal sine, edges left out, in dB below it."""
    ideal = sine(frequency, waveform.sample_rate, waveform.duration).samples[0][: waveform.num_samples]
    edge = waveform.sample_rate // 20
    error = (waveform.samples[0][: len(ideal)] - ideal)[edge:-edge]
    return float(10 * np.log10(np.mean(error**2) / 0.125))


@pytest.mark.parametrize("case", CASES)
def test_it_gives_the_samples_of_torchaudios_resampler(case: str) -> None:
    _, old, new, _, _ = case.split("_")
    result = resample(Waveform(GOLDEN[f"{case}.in"], int(old)), int(new))
    assert result.sample_rate == int(new)
    assert result.samples.shape == GOLDEN[f"{case}.out"].shape
    assert np.abs(result.samples - GOLDEN[f"{case}.out"]).max() <= 1e-5


def test_the_same_rate_gives_the_same_waveform() -> None:
    waveform = sine(440, 24_000, 0.1)
    assert resample(waveform, 24_000) is waveform


@pytest.mark.parametrize(
    "old", [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000, 88_200, 96_000, 192_000, 44_101]
)
def test_a_tone_keeps_its_pitch_level_and_duration_at_every_rate(old: int) -> None:
    result = resample(sine(1000, old, 0.5), 24_000)
    assert result.duration == pytest.approx(0.5, abs=1e-4)
    assert error_db(result, 1000) < -55


def test_what_the_new_rate_cannot_hold_is_removed() -> None:
    assert resample(sine(7000, 48_000, 0.5), 8_000).samples[0][400:-400].std() < 1e-3


def test_channels_do_not_touch_each_other() -> None:
    left, right = sine(300, 44_100, 0.2), sine(500, 44_100, 0.2)
    both = resample(Waveform(np.concatenate([left.samples, right.samples]), 44_100), 24_000)
    assert np.array_equal(both.samples[0], resample(left, 24_000).samples[0])
    assert np.array_equal(both.samples[1], resample(right, 24_000).samples[0])


@pytest.mark.parametrize("count", [0, 1, 2])
def test_hardly_any_samples_are_no_problem(count: int) -> None:
    result = resample(Waveform(np.ones((2, count), np.float32), 44_100), 24_000)
    assert result.samples.shape == (2, -(-count * 80 // 147))


def test_a_block_border_leaves_no_mark() -> None:
    noise = np.random.default_rng(0).normal(size=(1, 480_000)).astype(np.float32)
    whole = resample(Waveform(noise, 48_000), 24_000).samples[0]
    part = resample(Waveform(noise[:, 100_000:200_000], 48_000), 24_000).samples[0]
    assert np.abs(whole[50_100:99_900] - part[100:-100]).max() < 1e-5


def test_minutes_of_an_odd_rate_take_seconds() -> None:
    noise = np.random.default_rng(0).normal(size=(1, 44_101 * 60)).astype(np.float32)
    started = time.process_time()
    result = resample(Waveform(noise, 44_101), 24_000)
    assert result.num_samples == 24_000 * 60
    assert time.process_time() - started < 15


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="above 0"):
        resample(sine(440, 8_000, 0.1), 0)
