"""Batches and steps of the language model's training, at toy size."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from studio.engine.aligned_model import AlignedModel, AlignedModelConfig
from studio.training.dataset import Example, Speakers, hold_out
from studio.training.language import (
    Batches,
    LanguageTraining,
    collate,
    expose,
    mistaken,
    optimise,
    teacher_forced,
    train,
)

_CODEBOOKS, _SIZE = 3, 16


def _example(number: int, frames: int = 6, speaker: str = "one") -> Example:
    generator = torch.Generator().manual_seed(number)
    codes = torch.randint(_SIZE, (frames, _CODEBOOKS), generator=generator).to(torch.int16)
    length = 4 + number % 3
    alignment = torch.arange(8 * frames) * length // (8 * frames)
    return Example(speaker, f"text {number}", torch.randint(2, 9, (length,), generator=generator), codes, alignment)


@pytest.fixture
def examples() -> list[Example]:
    return [_example(number, 5 + number % 4, "one" if number % 2 else "two") for number in range(12)]


@pytest.fixture
def model() -> AlignedModel:
    torch.manual_seed(0)
    sizes = {"width": 32, "num_heads": 2, "text_layers": 1, "backbone_layers": 1}
    built = AlignedModel(AlignedModelConfig(vocabulary_size=9, num_codebooks=_CODEBOOKS, codebook_size=_SIZE, **sizes))
    torch.nn.init.normal_(built.local.heads, std=0.02)
    return built


def test_padding_is_on_the_left_of_references_and_on_the_right_of_all_else() -> None:
    short, long = _example(0, 3), _example(1, 5)
    batch = collate([short, long], [long.codes[:2], short.codes], _CODEBOOKS)
    assert batch.reference[0, :, 0].tolist() == [-1, *long.codes[:2, 0].tolist()]
    assert batch.codes[0, 3:].eq(-1).all()
    assert batch.phonemes[0].tolist() == [*short.phonemes.tolist(), -1]
    assert batch.alignment[0, 24:].eq(short.alignment[-1]).all()
    assert batch.ticks.sum(1).tolist() == [24, 40]


def test_what_is_padded_changes_no_loss(model: AlignedModel) -> None:
    short, long = _example(0, 3), _example(1, 9)
    alone = collate([short], [long.codes[:4]], _CODEBOOKS)
    padded = collate([short, long], [long.codes[:4], short.codes], _CODEBOOKS)
    only_short = padded.codes.clone()
    only_short[1] = -1
    masked = type(padded)(padded.reference, padded.phonemes, padded.alignment, only_short, padded.ticks)
    wanted = teacher_forced(model, alone, alone.codes).codebooks
    torch.testing.assert_close(teacher_forced(model, masked, only_short).codebooks, wanted, atol=1e-5, rtol=1e-4)


def test_a_few_steps_lower_the_loss(model: AlignedModel, examples: list[Example]) -> None:
    options = LanguageTraining(minutes=1, batch_size=6, exposures=(0.0,), reference_frames=(2, 6))
    batch = Batches(examples, options, _CODEBOOKS).next()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(0)
    losses = [optimise(model, batch, optimiser, options, generator).total().item() for _ in range(12)]
    assert losses[-1] < losses[0] - 0.2


def test_exposure_replaces_that_share_and_leaves_padding_alone() -> None:
    codes = torch.zeros(20, 50, _CODEBOOKS, dtype=torch.long)
    codes[:, 40:] = -1
    seen = expose(codes, 0.25, 1024, torch.Generator().manual_seed(0))
    assert seen[:, 40:].eq(-1).all()
    assert 0.2 < seen[:, :40].ne(0).float().mean() < 0.3


def test_a_reference_is_of_the_same_speaker_and_another_text(examples: list[Example]) -> None:
    speakers, random = Speakers(examples), np.random.default_rng(0)
    for _ in range(20):
        piece = speakers.reference(examples[0], 5, random)
        assert len(piece) == 5
        first = piece[:1]
        owners = {each.speaker for each in examples if (each.codes == first).all(1).any()}
        assert examples[0].speaker in owners
        assert not (examples[0].codes == first).all(1).any()


def test_a_long_reference_is_joined_from_several_utterances(examples: list[Example]) -> None:
    assert len(Speakers(examples).reference(examples[0], 20, np.random.default_rng(0))) == 20


def test_all_examples_of_a_held_out_text_are_held_out(examples: list[Example]) -> None:
    trained, held = hold_out([*examples, _example(0, 7, "three")], texts=4)
    assert len({each.text for each in held}) == 4
    assert not {each.text for each in held} & {each.text for each in trained}


def test_training_ends_after_its_minutes_and_keeps_the_average(model: AlignedModel, examples: list[Example]) -> None:
    kept: list[AlignedModel] = []
    options = LanguageTraining(minutes=0.01, batch_size=4, reference_frames=(2, 6))
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    train(model, examples, examples[:4], options, kept.append)
    (averaged,) = kept
    assert averaged is not model
    moved = {name: (weights - before[name]).norm() for name, weights in model.state_dict().items()}
    kept_moved = {name: (weights - before[name]).norm() for name, weights in averaged.state_dict().items()}
    assert 0 < kept_moved["codes.weight"] < moved["codes.weight"]


def test_the_models_own_mistakes_replace_whole_frames_that_are_there(model, examples: list[Example]) -> None:
    batch = collate(examples[:3], [each.codes[:4] for each in examples[:3]], model.config.num_codebooks)
    seen = mistaken(model, batch, 0.5, torch.Generator().manual_seed(1))
    there = batch.codes[:, :, 0] >= 0
    changed = (seen != batch.codes).any(-1)
    assert torch.equal(seen[~there], batch.codes[~there])
    assert 0 < int(changed.sum()) < int(there.sum())
    assert torch.equal(mistaken(model, batch, 0.0, torch.Generator()), batch.codes)


def test_a_hidden_text_no_longer_decides_the_codebooks(model, examples: list[Example]) -> None:
    batch = collate(examples[:2], [each.codes[:4] for each in examples[:2]], model.config.num_codebooks)
    other = replace(batch, phonemes=torch.where(batch.phonemes < 0, batch.phonemes, 2))
    hidden = torch.zeros(2)
    with torch.no_grad():
        told = [teacher_forced(model, each, each.codes).codebooks for each in (batch, other)]
        not_told = [teacher_forced(model, each, each.codes, hidden).codebooks for each in (batch, other)]
    assert not torch.equal(*told)
    assert torch.equal(*not_told)
