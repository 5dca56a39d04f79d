"""Clips prepared as the published code prepares them."""

import json

import numpy as np
import pytest
from moss_golden import GOLDEN
from safetensors.numpy import load_file

from studio.audio.resample import resample
from studio.audio.waveform import Waveform, level_dbfs
from studio.engine.reference_preparation import prepare_for_local, prepare_for_nano
from studio.errors import TooManyChannels

FOLDER = GOLDEN / "reference_prep"
CASES = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
CLIPS = load_file(FOLDER / "prep.safetensors")
RATES = load_file(FOLDER / "resample.safetensors")
TOLERANCE = 1e-5
NAMES = [case["name"] for case in CASES["prep"]]
RATE = {case["name"]: case["sample_rate"] for case in CASES["prep"]}


def clip(name: str) -> Waveform:
    return Waveform(np.atleast_2d(CLIPS[f"{name}.in"]), RATE[name])


def noise(level: float, channels: int = 2) -> Waveform:
    samples = np.random.default_rng(0).standard_normal((channels, 4800))
    samples *= 10 ** (level / 20) / np.sqrt(np.mean(np.square(samples)))
    return Waveform(samples.astype(np.float32), 48_000)


@pytest.mark.parametrize("name", [name for name in NAMES if f"{name}.local" in CLIPS])
def test_a_clip_for_local_has_the_published_samples(name: str) -> None:
    prepared, expected = prepare_for_local(clip(name)), CLIPS[f"{name}.local"]
    assert prepared.sample_rate == 48_000
    assert prepared.samples.shape == expected.shape
    np.testing.assert_allclose(prepared.samples, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", [name for name in NAMES if f"{name}.nano" in CLIPS])
def test_a_clip_for_nano_has_the_published_samples(name: str) -> None:
    prepared, expected = prepare_for_nano(clip(name)), CLIPS[f"{name}.nano"]
    assert prepared.sample_rate == 48_000
    assert prepared.samples.shape == expected.shape
    np.testing.assert_allclose(prepared.samples, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("case", CASES["resample"], ids=lambda case: case["name"])
def test_the_resampler_gives_the_published_samples(case: dict) -> None:
    result = resample(Waveform(RATES[f"{case['name']}.in"], case["orig"]), case["new"])
    np.testing.assert_allclose(result.samples, RATES[f"{case['name']}.out"], rtol=0, atol=TOLERANCE)


def test_three_channels_are_cut_for_local_and_refused_for_nano() -> None:
    three = clip("three48k")
    assert np.array_equal(
        prepare_for_local(three).samples, prepare_for_local(Waveform(three.samples[:2], 48_000)).samples
    )
    with pytest.raises(TooManyChannels, match="3 channels"):
        prepare_for_nano(three)


@pytest.mark.parametrize(("level", "expected"), [(-40, -37), (-22, -20), (-19, -20), (-6, -9)])
def test_the_level_of_local_moves_to_minus_20_db_by_3_db_at_most(level: float, expected: float) -> None:
    assert level_dbfs(prepare_for_local(noise(level))) == pytest.approx(expected, abs=1e-3)


def test_the_level_of_nano_stays() -> None:
    assert np.array_equal(prepare_for_nano(noise(-40)).samples, noise(-40).samples)


def test_silence_stays_silent_and_an_empty_clip_empty() -> None:
    assert not prepare_for_local(clip("silence_stereo48k")).samples.any()
    assert prepare_for_local(clip("exactly_zero_samples")).num_samples == 0
