import numpy as np
import pytest
import torch

from studio.engine.sampling import MAX_SEED, CounterDraws, SamplingOptions, draw
from studio.errors import SettingError


def test_a_draw_depends_on_its_place_and_not_on_what_was_drawn_before():
    fresh, used = CounterDraws(7, 2), CounterDraws(7, 2)
    for frame in range(20):
        used.frame(frame, 8)
        used.noise(0, 480)
    assert np.array_equal(fresh.frame(5, 8), used.frame(5, 8))
    assert np.array_equal(fresh.noise(2400, 240), used.noise(2400, 240))


@pytest.mark.parametrize("other", [CounterDraws(8, 2), CounterDraws(7, 3), CounterDraws(7, 2, attempt=1)])
def test_seed_utterance_and_attempt_each_give_other_numbers(other):
    assert not np.array_equal(CounterDraws(7, 2).frame(5, 8), other.frame(5, 8))
    assert not np.array_equal(CounterDraws(7, 2).noise(0, 240), other.noise(0, 240))


def test_frames_and_noise_do_not_share_numbers():
    draws = CounterDraws(7, 2)
    assert not np.array_equal(draws.frame(0, 8), draws.frame(1, 8))
    raw = np.random.Generator(np.random.Philox(key=draws._key, counter=[0, 0, 2, 0])).random(8)
    assert not np.array_equal(draws.frame(0, 8), raw)


def test_noise_is_equal_however_the_stream_is_cut():
    draws = CounterDraws(1, 0)
    whole = draws.noise(0, 2400)
    assert np.array_equal(whole, np.concatenate([draws.noise(0, 480), draws.noise(480, 240), draws.noise(720, 1680)]))
    assert abs(float(CounterDraws(1, 0).noise(0, 240_000).std()) - 1) < 0.01


def test_a_draw_follows_the_distribution_of_the_best_entries():
    logits = torch.log(torch.tensor([0.5, 0.05, 0.3, 0.15]))
    counts = np.bincount(
        [draw(logits, uniform, temperature=1.0, top_k=3) for uniform in (np.arange(4000) + 0.5) / 4000], minlength=4
    )
    np.testing.assert_allclose(counts / 4000, np.array([0.5, 0, 0.3, 0.15]) / 0.95, atol=0.001)


def test_a_low_temperature_sharpens_and_zero_takes_the_best():
    logits = torch.tensor([1.0, 2.0, 0.0])
    assert [draw(logits, uniform, temperature=0.0, top_k=3) for uniform in (0.0, 0.5, 0.999999)] == [1, 1, 1]
    assert [draw(logits, uniform, temperature=0.05, top_k=3) for uniform in (0.0, 0.5, 0.999)] == [1, 1, 1]


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1.0, 0.0)])
def test_the_ends_of_the_unit_interval_draw_an_entry(uniform):
    assert draw(torch.zeros(5), float(uniform), temperature=1.0, top_k=50) in range(5)


@pytest.mark.parametrize(
    "options",
    [
        {"seed": -1},
        {"seed": MAX_SEED + 1},
        {"seed": 1, "speed": 0.49},
        {"seed": 1, "speed": float("nan")},
        {"seed": 1, "temperature": -0.1},
        {"seed": 1, "top_k": 0},
    ],
)
def test_an_option_out_of_range_is_refused_with_its_name_and_range(options):
    with pytest.raises(SettingError, match="choose"):
        SamplingOptions(**options)
