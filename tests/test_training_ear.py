"""The ear that the decoder is trained to please, at toy size."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from studio.engine.harmonic_codec import HOPS_PER_FRAME
from studio.training.dataset import Example
from studio.training.ear import EarTraining, PhonemeEar, ear_losses, train_ear, wanted_phonemes
from studio.training.pieces import DecoderTraining, Pieces, Recording, cut

OPTIONS = DecoderTraining(minutes=1, batch_size=4, frames=4, context=2)


def tone_of(phoneme: int) -> float:
    return 300.0 * (phoneme - 1)


@pytest.fixture
def recordings() -> list[Recording]:
    """Ten frames in which each phoneme is a tone of its own for 100 ms."""
    made = []
    for number in range(6):
        phonemes = torch.tensor([2, 3, 4, 5, 6, 7, 8]).roll(number)
        alignment = (torch.arange(10 * HOPS_PER_FRAME) // 10).clamp(max=6)
        pitch = np.repeat([tone_of(int(phoneme)) for phoneme in phonemes[alignment]], 240)
        samples = np.sin(2 * np.pi * np.cumsum(pitch / 24_000)) * 8_000
        codes = torch.zeros(10, 3, dtype=torch.int16)
        example = Example(f"tone{number}", f"tones {number}", phonemes, codes, alignment)
        made.append(Recording(samples.astype(np.int16), np.zeros(80, np.float32), example))
    return made


@pytest.fixture
def pieces(recordings: list[Recording]) -> Pieces:
    return cut(recordings, OPTIONS, np.random.default_rng(0))


def test_the_ear_says_something_of_every_10_ms(pieces: Pieces) -> None:
    outputs, logits = PhonemeEar(9)(pieces.samples)
    assert logits.shape == (4, 9, 4 * HOPS_PER_FRAME)
    assert {output.shape[2] for output in outputs} == {4 * HOPS_PER_FRAME}


def test_what_should_be_heard_is_what_is_said_in_the_judged_ticks(pieces: Pieces) -> None:
    wanted = wanted_phonemes(pieces)
    assert wanted.shape == (4, 4 * HOPS_PER_FRAME)
    above = pieces.samples.view(4, -1, 240) >= 0
    crossings = (above[..., 1:] != above[..., :-1]).sum(-1)
    heard = (crossings / 2 * 100 / 300 + 1).round()
    assert (heard == wanted).float().mean() > 0.85


def test_a_sound_is_no_distance_from_itself_and_its_ear_follows_what_changes(pieces: Pieces) -> None:
    ear = PhonemeEar(9).eval()
    with torch.no_grad():
        same, other = ear_losses(ear, pieces.samples, pieces), ear_losses(ear, pieces.samples.flip(1), pieces)
    assert same[1] == 0
    assert other[1] > 0.05


def test_the_sound_is_moved_by_what_the_ear_wants(pieces: Pieces) -> None:
    ear = PhonemeEar(9).eval().requires_grad_(False)
    sound = (pieces.samples * 0.5).requires_grad_()
    ear_losses(ear, sound, replace(pieces, samples=pieces.samples)).sum().backward()
    assert sound.grad is not None
    assert sound.grad.abs().sum() > 0


def test_training_makes_an_ear_that_hears_the_tones(recordings: list[Recording], pieces: Pieces) -> None:
    ear = train_ear(recordings, 9, EarTraining(steps=60, warm_up_steps=5, pieces=OPTIONS))
    with torch.no_grad():
        _, logits = ear(pieces.samples)
        untrained = PhonemeEar(9)(pieces.samples)[1]
    wanted = wanted_phonemes(pieces)
    right = (logits.argmax(1) == wanted).float().mean()
    assert right > (untrained.argmax(1) == wanted).float().mean() + 0.3
    assert not any(weight.requires_grad for weight in ear.parameters())
