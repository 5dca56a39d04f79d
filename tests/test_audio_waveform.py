import numpy as np
import pytest

from studio.audio.waveform import SILENCE_DBFS, Waveform, dbfs, from_pcm, level_dbfs, to_pcm


def test_every_int16_value_survives_the_way_to_float_and_back() -> None:
    pcm = np.arange(-32768, 32768).astype(np.int16)[None]
    assert from_pcm(pcm).dtype == np.float32
    assert np.array_equal(to_pcm(from_pcm(pcm)), pcm)


def test_samples_past_full_scale_are_clipped_not_wrapped() -> None:
    pcm = to_pcm(np.array([[1.0, 1.5, -1.0, -3.0]], np.float32))
    assert pcm.tolist() == [[32767, 32767, -32768, -32768]]


def test_samples_are_rounded_to_the_nearest_step() -> None:
    assert to_pcm(np.array([[0.6, -0.6, 0.4]], np.float32) / 32768).tolist() == [[1, -1, 0]]


def test_mono_is_the_mean_of_the_channels() -> None:
    stereo = Waveform(np.array([[0.5, 1.0], [0.1, 0.0]], np.float32), 8000)
    assert stereo.mono().samples.tolist() == [[pytest.approx(0.3), pytest.approx(0.5)]]
    assert stereo.mono().mono().channels == 1


def test_slice_takes_samples_and_refuses_what_lies_outside() -> None:
    ramp = Waveform(np.arange(10, dtype=np.float32)[None] / 10, 10)
    assert ramp.slice(2, 4).samples.tolist() == [[pytest.approx(0.2), pytest.approx(0.3)]]
    assert ramp.slice(3, 3).num_samples == 0
    assert ramp.duration == 1.0
    for start, end in ((-1, 2), (4, 3), (0, 11)):
        with pytest.raises(ValueError, match="is not inside"):
            ramp.slice(start, end)


def test_a_full_scale_sine_has_minus_three_dbfs() -> None:
    sine = np.sin(2 * np.pi * 100 * np.arange(8000) / 8000).astype(np.float32)[None]
    assert level_dbfs(Waveform(sine, 8000)) == pytest.approx(-3.01, abs=0.01)
    assert Waveform(sine, 8000).peak == pytest.approx(1, abs=1e-3)


def test_silence_and_emptiness_have_a_finite_level() -> None:
    silence, nothing = (Waveform(np.zeros((1, count), np.float32), 8000) for count in (100, 0))
    assert level_dbfs(silence) == level_dbfs(nothing) == dbfs(0) == SILENCE_DBFS
    assert nothing.peak == 0


@pytest.mark.parametrize(
    ("samples", "rate"),
    [
        (np.zeros(5, np.float32), 8000),
        (np.zeros((0, 5), np.float32), 8000),
        (np.zeros((1, 5)), 8000),
        (np.zeros((1, 5), np.float32), 0),
    ],
)
def test_a_wrong_shape_type_or_rate_is_no_waveform(samples: np.ndarray, rate: int) -> None:
    with pytest.raises(ValueError, match="must be"):
        Waveform(samples, rate)
