"""What the language model draws where the past is true, at toy size."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from toy_voice import PHONEMES, toy_language

from studio.engine.checkpoints import Recommended
from studio.training.dataset import Example
from studio.training.own_draws import with_draws
from studio.training.pieces import Recording

SAMPLING = Recommended(temperature=0.5, top_k=8)


def recording(frames: int, seed: int) -> Recording:
    generator = torch.Generator().manual_seed(seed)
    phonemes = torch.randint(2, len(PHONEMES), (4,), generator=generator)
    codes = torch.randint(0, 32, (frames, 3), generator=generator).to(torch.int16)
    example = Example("one", f"text {seed}", phonemes, codes, torch.arange(8 * frames) * 4 // (8 * frames))
    return Recording(np.zeros(1920 * frames, np.int16), np.zeros(8 * frames, np.float32), example)


@pytest.fixture
def recordings() -> list[Recording]:
    return [recording(frames, seed) for seed, frames in enumerate((9, 5, 7))]


def test_each_recording_keeps_its_place_and_gets_as_many_frames_as_it_has(recordings):
    drawn = with_draws(toy_language(), recordings, SAMPLING)
    assert [each.example.text for each in drawn] == ["text 0", "text 1", "text 2"]
    for before, after in zip(recordings, drawn, strict=True):
        assert after.drawn is not None
        assert after.drawn.shape == before.example.codes.shape
        assert after.drawn.dtype == torch.int16
        assert ((after.drawn >= 0) & (after.drawn < 32)).all()
        assert not torch.equal(after.drawn, before.example.codes)
        assert torch.equal(after.example.codes, before.example.codes)


def test_a_frame_is_drawn_given_the_true_frames_before_it_and_nothing_of_the_later_ones(recordings):
    language, cold = toy_language(), replace(SAMPLING, temperature=1e-4)
    one = with_draws(language, recordings, cold)[0].drawn
    example = recordings[0].example
    changed = example.codes.clone()
    changed[4] = (changed[4] + 7) % 32
    later = replace(recordings[0], example=replace(example, codes=changed))
    other = with_draws(language, [later, *recordings[1:]], cold)[0].drawn
    assert one is not None
    assert other is not None
    assert torch.equal(one[:5], other[:5])
    assert not torch.equal(one[5:], other[5:])


def test_draws_are_of_the_best_entries_only(recordings):
    language = toy_language()
    best = with_draws(language, recordings, replace(SAMPLING, top_k=1))
    cold = with_draws(language, recordings, replace(SAMPLING, temperature=1e-5))
    for one, other in zip(best, cold, strict=True):
        assert one.drawn is not None
        assert other.drawn is not None
        assert torch.equal(one.drawn, other.drawn)
