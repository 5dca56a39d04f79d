import numpy as np
import pytest
import torch
from toy_voice import PHONEMES, toy_language

from studio.engine.aligned_generation import FrameGenerator, FrameSampling, align
from studio.engine.sampling import CounterDraws

PLAIN = FrameSampling(temperature=0.8, later_temperature=0.6, top_k=10, pace=1.0, guidance=1.0)
REFERENCE = np.random.default_rng(0).integers(0, 32, (3, 9)).astype(np.int16)


def teacher_forced(model, phonemes, alignment, reference, codes):
    """The logits of every frame, all at once and without any buffer."""
    prefix, target = torch.from_numpy(reference.T.astype(np.int64))[None], codes.T[None]
    text = model.text.frames(model.text(torch.tensor([phonemes])), alignment[None])
    past = torch.cat([model.begin[None, None], model.embed(target)[:, :-1]], dim=1)
    rows = torch.cat([model.reference_rows(prefix), past + text], dim=1)
    positions = torch.cat([model.reference_positions(prefix.shape[1], rows.device), torch.arange(target.shape[1])])
    return model.local(model.backbone(rows, positions, None)[0, prefix.shape[1] :], target[0])


def test_codes_made_with_buffers_are_those_of_the_whole_sequence_without():
    model, phonemes = toy_language(), list(range(2, 14))
    greedy = FrameSampling(temperature=0.0, later_temperature=0.0, top_k=1, pace=1.0, guidance=1.0)
    generator = FrameGenerator(model, phonemes, REFERENCE, greedy, CounterDraws(1, 0))
    codes = torch.stack([generator.next_frame() for _ in range(generator.num_frames)], dim=1)
    with torch.inference_mode():
        prefix = torch.from_numpy(REFERENCE.T.astype(np.int64))[None]
        durations = model.log_durations(model.text(torch.tensor([phonemes])), prefix)[0]
        logits = teacher_forced(model, phonemes, align(durations, 1.0), REFERENCE, codes)
    assert torch.equal(logits.argmax(-1).T, codes)


def test_guidance_leads_away_from_what_would_be_said_without_the_text():
    model, phonemes = toy_language(), list(range(2, 14))
    guided = FrameSampling(temperature=0.0, later_temperature=0.0, top_k=1, pace=1.0, guidance=3.0)
    generator = FrameGenerator(model, phonemes, REFERENCE, guided, CounterDraws(1, 0))
    codes = torch.stack([generator.next_frame() for _ in range(generator.num_frames)], dim=1)
    with torch.inference_mode():
        prefix = torch.from_numpy(REFERENCE.T.astype(np.int64))[None]
        alignment = align(model.log_durations(model.text(torch.tensor([phonemes])), prefix)[0], 1.0)
        spoken = teacher_forced(model, phonemes, alignment, REFERENCE, codes)
        model.text.to_frame.weight.zero_()
        model.text.to_frame.bias.zero_()
        unspoken = teacher_forced(model, phonemes, alignment, REFERENCE, codes)
    assert torch.equal((unspoken + 3 * (spoken - unspoken)).argmax(-1).T, codes)
    assert not torch.equal(spoken.argmax(-1).T, codes)


def test_a_generator_ends_with_its_last_frame():
    generator = FrameGenerator(toy_language(), [2, 3, 4], REFERENCE, PLAIN, CounterDraws(1, 0))
    for _ in range(generator.num_frames):
        assert not generator.finished
        generator.next_frame()
    assert generator.finished


def test_the_same_seed_gives_the_same_codes_and_another_seed_gives_others():
    def codes(seed: int) -> list[list[int]]:
        generator = FrameGenerator(toy_language(), list(range(2, 12)), REFERENCE, PLAIN, CounterDraws(seed, 0))
        return [generator.next_frame().tolist() for _ in range(generator.num_frames)]

    assert codes(5) == codes(5)
    assert codes(5) != codes(6)


def test_the_reference_changes_what_is_spoken():
    def codes(reference: np.ndarray) -> list[list[int]]:
        generator = FrameGenerator(toy_language(), list(range(2, 12)), reference, PLAIN, CounterDraws(1, 0))
        return [generator.next_frame().tolist() for _ in range(generator.num_frames)]

    assert codes(REFERENCE) != codes((REFERENCE + 7) % 32)


def test_a_missing_frame_is_embedded_as_no_code():
    model = toy_language()
    embedded = model.embed(torch.full((1, 1, 3), -1))
    torch.testing.assert_close(embedded[0, 0], model.codes.weight[-1] * 3)
    assert len(PHONEMES) == model.config.vocabulary_size


@pytest.mark.parametrize("ticks", [[3.0], [0.4] * 40, [8.0, 8.0], [5.3, 9.9, 1.2, 60.0]])
def test_alignment_keeps_the_order_and_the_length_and_fills_whole_frames(ticks):
    alignment = align(torch.log1p(torch.tensor(ticks)), pace=1.0)
    assert len(alignment) % 8 == 0
    assert -0.5 <= len(alignment) - sum(ticks) < 8.5
    assert bool((alignment.diff() >= 0).all())
    assert set(alignment.tolist()) <= set(range(len(ticks)))


def test_a_faster_pace_gives_fewer_frames():
    durations = torch.log1p(torch.full((30,), 8.0))
    assert len(align(durations, 2.0)) == len(align(durations, 1.0)) / 2


def test_even_no_duration_at_all_gives_one_frame():
    assert align(torch.zeros(4), 1.0).tolist() == [3] * 8


def test_no_phoneme_lasts_longer_than_a_second_whatever_is_predicted():
    assert len(align(torch.tensor([50.0, 60.0, 1.0]), 1.0)) <= 208
