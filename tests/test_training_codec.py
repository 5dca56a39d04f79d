"""Training of the codec's decoder, at toy size."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from studio.engine.harmonic_codec import FRAME, HOPS_PER_FRAME, HarmonicCodec, HarmonicCodecConfig
from studio.training.codebooks import RunningCodebooks, fit
from studio.training.codec import SpectralLoss, decode_pieces, decoded_sound, sound_losses, train_decoder
from studio.training.dataset import Example
from studio.training.pieces import DecoderTraining, Pieces, Recording, cut
from studio.training.whole_codec import CodecTraining, train_codec


@pytest.fixture
def codec() -> HarmonicCodec:
    torch.manual_seed(0)
    built = HarmonicCodec(
        HarmonicCodecConfig(
            width=32,
            num_heads=2,
            num_codebooks=3,
            codebook_size=8,
            encoder_layers=(1, 1),
            decoder_layers=(1, 1, 1),
            vocabulary_size=9,
            text_layers=1,
        )
    )
    torch.nn.init.normal_(built.quantizer.codebooks)
    return built


@pytest.fixture
def recordings() -> list[Recording]:
    """Hums at two pitches."""
    made = []
    for number, pitch in enumerate((110.0, 220.0)):
        frames = 8
        time = np.arange(frames * FRAME) / 24_000
        harmonics = [np.sin(2 * np.pi * pitch * harmonic * time) / harmonic for harmonic in (1, 2, 3)]
        samples = np.sum(harmonics, axis=0) * 6_000
        codes = torch.randint(8, (frames, 3), generator=torch.Generator().manual_seed(number)).to(torch.int16)
        track = np.full(frames * HOPS_PER_FRAME, pitch, dtype=np.float32)
        alignment = torch.arange(frames * HOPS_PER_FRAME) // 16
        example = Example(f"hum{number}", "hum", torch.tensor([4, 5, 6, 7 + number]), codes, alignment)
        made.append(Recording(samples.astype(np.int16), track, example))
    return made


@pytest.fixture
def options() -> DecoderTraining:
    return DecoderTraining(minutes=0.002, batch_size=2, frames=4, context=2, fewest_codebooks=2)


def test_pieces_pair_codes_with_the_sound_of_the_same_frames(
    recordings: list[Recording], options: DecoderTraining
) -> None:
    pieces = cut(recordings, options, np.random.default_rng(0))
    assert pieces.codes.shape == (2, 3, 7)
    assert pieces.samples.shape == (2, 4 * FRAME)
    assert pieces.pitch.shape == (2, 4 * HOPS_PER_FRAME)
    whole = recordings[0] if bool(pieces.pitch[0, 0] == 110) else recordings[1]
    start = next(at for at in range(3) if (pieces.codes[0, :, :6] == whole.example.codes[at : at + 6].long().T).all())
    ahead = whole.example.codes[start + 6].long() if start + 6 < 8 else torch.full((3,), -1)
    assert torch.equal(pieces.codes[0, :, 6], ahead)
    wanted = whole.samples[(start + 2) * FRAME : (start + 6) * FRAME].astype(np.float32) / 32768
    np.testing.assert_allclose(pieces.samples[0].numpy(), wanted)
    assert torch.equal(pieces.alignment[0, :48], whole.example.alignment[start * 8 : start * 8 + 48])
    assert pieces.alignment.shape == (2, 56)
    assert torch.equal(pieces.phonemes[0], whole.example.phonemes)
    assert pieces.true.tolist() == [1, 1]


def test_pieces_of_drawn_codes_keep_the_true_sound_and_their_pitch_is_not_judged(
    codec: HarmonicCodec, recordings: list[Recording], options: DecoderTraining
) -> None:
    drawn = [replace(each, drawn=torch.full((8, 3), 5, dtype=torch.int16)) for each in recordings]
    pieces = cut(drawn, replace(options, drawn=1.0), np.random.default_rng(0))
    assert pieces.true.tolist() == [0, 0]
    assert set(pieces.codes.unique().tolist()) <= {5, -1}
    generator = torch.Generator().manual_seed(0)
    envelopes = decode_pieces(codec, pieces, options, generator)
    sound = decoded_sound(codec, envelopes, pieces, generator)
    losses = sound_losses(SpectralLoss(), sound, envelopes, pieces)
    assert losses[2] == 0
    assert losses[0] > 0


def test_hidden_text_leaves_the_codes_alone_to_decode(
    codec: HarmonicCodec, recordings: list[Recording], options: DecoderTraining
) -> None:
    pieces = cut(recordings, options, np.random.default_rng(0))
    other = replace(pieces, phonemes=pieces.phonemes.flip(1))

    def pitch(shown: Pieces, share: float) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        return decode_pieces(codec, shown, replace(options, hidden_text=share), generator).log_pitch

    assert torch.equal(pitch(pieces, 1.0), pitch(other, 1.0))
    assert not torch.equal(pitch(pieces, 0.0), pitch(other, 0.0))


def test_the_spectral_loss_is_nothing_for_equal_sounds_and_more_for_others() -> None:
    loss = SpectralLoss()
    sound = torch.randn(1, 4800, generator=torch.Generator().manual_seed(0))
    assert loss(sound, sound).eq(0).all()
    assert loss(sound * 0.5, sound).gt(0.1).all()


def test_a_few_steps_lower_the_loss(
    codec: HarmonicCodec, recordings: list[Recording], options: DecoderTraining
) -> None:
    pieces = cut(recordings, options, np.random.default_rng(0))
    optimiser = torch.optim.AdamW(codec.decoder.parameters(), lr=3e-3)
    generator, spectral = torch.Generator().manual_seed(0), SpectralLoss()
    totals = []
    for _ in range(5):
        envelopes = decode_pieces(codec, pieces, options, generator)
        sound = decoded_sound(codec, envelopes, pieces, generator)
        total = sound_losses(spectral, sound, envelopes, pieces).sum()
        optimiser.zero_grad()
        total.backward()
        optimiser.step()
        totals.append(total.item())
    assert totals[-1] < totals[0]


def test_training_touches_the_decoder_alone(
    codec: HarmonicCodec, recordings: list[Recording], options: DecoderTraining
) -> None:
    before = {name: value.clone() for name, value in codec.state_dict().items()}
    kept: list[HarmonicCodec] = []
    train_decoder(codec, recordings, options, kept.append)
    changed = {name for name, value in codec.state_dict().items() if not value.equal(before[name])}
    assert kept == [codec]
    assert changed
    assert all(name.startswith("decoder.") for name in changed)


def test_the_whole_codec_is_trained_in_two_stages(codec: HarmonicCodec, recordings: list[Recording]) -> None:
    before = {name: value.clone() for name, value in codec.state_dict().items()}
    pieces = DecoderTraining(minutes=1, batch_size=2, frames=4, context=0)
    train_codec(codec, recordings, CodecTraining(continuous_minutes=1e-4, quantised_minutes=1e-4, pieces=pieces), _keep)
    parts = {name.split(".")[0] for name, value in codec.state_dict().items() if not value.equal(before[name])}
    assert parts == {"encoder", "quantizer", "decoder"}


def _keep(codec: HarmonicCodec) -> None:
    assert torch.isfinite(codec.quantizer.codebooks).all()


def test_each_codebook_leaves_less_than_the_one_before(codec: HarmonicCodec) -> None:
    generator = torch.Generator().manual_seed(0)
    latents = torch.randn(400, codec.config.latent_width, generator=generator)
    fit(codec.quantizer, latents, generator)
    left = [
        (latents - codec.quantizer.decode(codec.quantizer.encode(latents[None])[:, :count])[0]).var().item()
        for count in (1, 2, 3)
    ]
    assert latents.var().item() > left[0] > left[1] > left[2]


def test_running_codebooks_move_to_what_chooses_them_and_pass_gradients_on(codec: HarmonicCodec) -> None:
    generator = torch.Generator().manual_seed(0)
    latents = torch.randn(1, 64, codec.config.latent_width, generator=generator)
    fit(codec.quantizer, latents[0], generator)
    running = RunningCodebooks(codec.quantizer, generator)
    shifted = (latents + 0.5).requires_grad_()
    quantised, distance = running.quantise(shifted)
    first = distance.item()
    for _ in range(60):
        quantised, distance = running.quantise(shifted)
    quantised.sum().backward()
    assert distance.item() < first
    torch.testing.assert_close(shifted.grad, torch.ones_like(shifted))
