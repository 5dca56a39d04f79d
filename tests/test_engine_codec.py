import numpy as np
import pytest
import torch
from toy_voice import toy_codec

from studio.engine.harmonic_codec import FRAME
from studio.engine.harmonic_signal import (
    HOP,
    SAMPLE_RATE,
    Features,
    band_interpolation,
    interpolate_pitch,
    limit,
    mel_filters,
    pulses,
)
from studio.engine.sampling import CounterDraws


def noise(seed: int = 1):
    draws = CounterDraws(seed, 0)
    return lambda start, count: torch.from_numpy(draws.noise(start, count))[None]


def stream(codec, codes, seed: int = 1, text=None) -> torch.Tensor:
    with torch.inference_mode():
        state = codec.start(noise(seed), text)
        parts = [codec.step(codes[:, frame], state) for frame in range(codes.shape[1])]
        return torch.cat([*parts, codec.finish(state)])


@pytest.mark.parametrize("num_frames", [1, 2, 3, 40])
def test_a_stream_has_every_sample_and_equals_the_whole_decode(num_frames):
    codec = toy_codec()
    codes = torch.randint(0, 32, (3, num_frames), generator=torch.Generator().manual_seed(3))
    streamed = stream(codec, codes)
    with torch.inference_mode():
        whole = codec.decode(codes[None], noise())[0]
    assert streamed.shape == (num_frames * FRAME,)
    torch.testing.assert_close(streamed, whole, atol=4e-3, rtol=0)
    assert float((streamed - whole).abs().mean()) < 5e-5


def read(codec, phonemes, num_frames: int):
    """A text of which every phoneme takes 50 ms, and the last one what is left."""
    alignment = (torch.arange(8 * num_frames) // 5).clamp(max=len(phonemes) - 1)
    with torch.inference_mode():
        return codec.decoder.read(torch.tensor([phonemes]), alignment[None])


@pytest.mark.parametrize("num_frames", [1, 2, 3, 40])
def test_a_stream_that_reads_along_equals_the_whole_decode_that_does(num_frames):
    codec = toy_codec()
    codes = torch.randint(0, 32, (3, num_frames), generator=torch.Generator().manual_seed(3))
    text = read(codec, [5, 9, 2, 7, 7, 3, 11, 4], num_frames)
    streamed = stream(codec, codes, text=text)
    with torch.inference_mode():
        whole = codec.decode(codes[None], noise(), text)[0]
    assert streamed.shape == (num_frames * FRAME,)
    torch.testing.assert_close(streamed, whole, atol=4e-3, rtol=0)
    assert float((streamed - whole).abs().mean()) < 5e-5


def test_the_text_is_heard_and_codes_without_one_are_decoded_as_such():
    codec = toy_codec()
    codes = torch.randint(0, 32, (3, 12), generator=torch.Generator().manual_seed(3))
    one, other = (stream(codec, codes, text=read(codec, each, 12)) for each in ([5, 9, 2, 7], [5, 9, 2, 8]))
    unread = stream(codec, codes)
    assert not torch.equal(one, other)
    assert not torch.equal(one, unread)


def test_what_is_read_ahead_of_a_frame_is_its_own_and_40_ms_more_but_for_what_the_text_encoder_saw():
    codec = toy_codec()
    features = torch.randn(1, 2, 32, generator=torch.Generator().manual_seed(5))
    codec.decoder.text.forward = lambda phonemes: features  # type: ignore[method-assign]
    late = torch.zeros(1, 80, dtype=torch.long)
    late[0, 44:] = 1
    with torch.inference_mode():
        one = codec.decoder.read(torch.tensor([[3, 4]]), torch.zeros_like(late))
        other = codec.decoder.read(torch.tensor([[3, 4]]), late)
    assert one.coarse.shape == (1, 10, 32)
    assert one.fine.shape == (1, 40, 32)
    changed = [frame for frame in range(10) if not torch.equal(one.coarse[:, frame], other.coarse[:, frame])]
    assert changed == [5, 6, 7, 8, 9]
    fine = [row for row in range(40) if not torch.equal(one.fine[:, row], other.fine[:, row])]
    assert fine == list(range(20, 40))


def test_the_same_codes_stream_to_the_same_samples_and_other_seeds_change_only_the_noise():
    codec = toy_codec()
    codes = torch.randint(0, 32, (3, 12), generator=torch.Generator().manual_seed(3))
    assert torch.equal(stream(codec, codes), stream(codec, codes))
    assert not torch.equal(stream(codec, codes), stream(codec, codes, seed=2))


def test_two_streams_at_once_do_not_touch_each_other():
    codec = toy_codec()
    codes = torch.randint(0, 32, (3, 6), generator=torch.Generator().manual_seed(3))
    alone = stream(codec, codes)
    with torch.inference_mode():
        state, other = codec.start(noise()), codec.start(noise(9))
        parts = []
        for frame in range(6):
            codec.step(codes[:, 5 - frame], other)
            parts.append(codec.step(codes[:, frame], state))
        parts.append(codec.finish(state))
    assert torch.equal(torch.cat(parts), alone)


def test_a_frame_is_heard_when_the_next_one_is_known_and_the_end_flushes_what_is_held():
    codec = toy_codec()
    codes = torch.randint(0, 32, (3, 3), generator=torch.Generator().manual_seed(3))
    with torch.inference_mode():
        state = codec.start(noise())
        lengths = [len(codec.step(codes[:, frame], state)) for frame in range(3)]
        lengths.append(len(codec.finish(state)))
    assert lengths == [0, 960, 1920, 2880]


def test_encoding_is_causal_and_gives_a_frame_each_80_ms():
    codec = toy_codec()
    samples = torch.randn(1, 20 * FRAME, generator=torch.Generator().manual_seed(4)) * 0.1
    later = samples.clone()
    later[:, 10 * FRAME :] = 0
    with torch.inference_mode():
        codes, shorter = codec.encode(samples), codec.encode(later)
    assert codes.shape == (1, 3, 20)
    assert torch.equal(codes[..., :10], shorter[..., :10])
    assert not torch.equal(codes, shorter)


def test_pulses_sum_the_harmonics_of_a_steady_pitch_below_the_nyquist_frequency_and_nothing_else():
    pitch = torch.full((1, SAMPLE_RATE), 200.0)
    phase = torch.cumsum(pitch.double() / SAMPLE_RATE, dim=-1)
    spectrum = torch.fft.rfft(pulses(pitch, (phase - phase.floor()).float())[0]).abs() / SAMPLE_RATE * 2
    harmonics = spectrum[200 : 56 * 200 + 1 : 200].clone()
    torch.testing.assert_close(harmonics, harmonics[:1].expand(56), rtol=0.01, atol=0)
    spectrum[200 : 57 * 200 + 1 : 200] = 0
    assert float(spectrum.max()) < float(harmonics[0]) * 0.01


def test_a_last_bit_of_pitch_cannot_switch_a_harmonic():
    phase = torch.linspace(0, 0.999, 777)[None]
    edge = 24_000 / 2 * 0.95 / 60  # exactly 60 harmonics fit
    below, above = (pulses(torch.full((1, 777), edge + offset), phase) for offset in (-1e-3, 1e-3))
    assert float((below - above).abs().max()) < 0.02


def test_pulses_have_unit_power_at_any_pitch():
    for hertz in (60.0, 123.0, 300.0, 520.0):
        pitch = torch.full((1, SAMPLE_RATE), hertz)
        phase = torch.cumsum(pitch.double() / SAMPLE_RATE, dim=-1)
        power = pulses(pitch, (phase - phase.floor()).float()).square().mean()
        assert float(power) == pytest.approx(1.0, rel=0.03)


def test_pitch_is_interpolated_linearly_between_the_middles_of_hops():
    pitch = torch.tensor([[100.0, 100.0, 160.0, 120.0, 120.0]])
    expected = torch.nn.functional.interpolate(
        pitch[:, None, 1:-1], scale_factor=HOP, mode="linear", align_corners=False
    )
    torch.testing.assert_close(interpolate_pitch(pitch), expected[:, 0], atol=1e-3, rtol=0)


def test_the_limiter_leaves_ordinary_samples_alone_and_keeps_all_below_one():
    samples = torch.tensor([0.0, 0.5, -0.8, 0.81, 2.0, -50.0])
    limited = limit(samples)
    assert torch.equal(limited[:3], samples[:3])
    assert 0.8 < limited[3] < 0.81
    assert float(limited.abs().max()) <= 1.0


def test_every_bin_of_a_spectrum_takes_its_envelope_from_two_neighbouring_bands():
    weights = band_interpolation(960, 80)
    torch.testing.assert_close(weights.sum(1), torch.ones(481))
    assert int((weights > 0).sum(1).max()) <= 2


def test_mel_filters_rise_and_fall_once_and_cover_the_spectrum():
    filters = mel_filters(2048, 40)
    assert filters.shape == (40, 1025)
    assert bool((filters.max(1).values > 0.8).all())
    assert bool((np.diff(filters.argmax(1).numpy()) > 0).all())


def test_features_of_a_tone_show_its_band_and_its_period():
    time = torch.arange(SAMPLE_RATE) / SAMPLE_RATE
    features = Features()(torch.sin(2 * torch.pi * 200 * time)[None] * 0.3)
    assert features.shape == (1, 100, 128)
    periodicity = features[0, 50, 80:]
    lags = Features().lags
    assert int(lags[periodicity.argmax()]) in range(114, 127)  # 120 samples are one period
