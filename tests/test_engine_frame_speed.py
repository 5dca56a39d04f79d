"""The fast frame loop against the plain one, at toy size: codes are equal, whatever is kept, merged or recorded."""

import numpy as np
import pytest
import torch

from studio.engine.frame_graph import plain, recorded
from studio.engine.naive_frames import naive_frames
from studio.engine.packed_weights import WeightBits, pack
from studio.engine.random_models import random_decoder, random_speech_model
from studio.engine.recorded_decoder import RecordedDecoder
from studio.engine.released_sizes import SIZES
from studio.engine.sampling import CounterDraws
from studio.engine.speech_frames import SpeechSlots
from studio.engine.speech_model import build_speech_model

FAMILIES = ("toy-nano", "toy-local")
COUNT = 10


@pytest.fixture(params=FAMILIES)
def size(request):
    return SIZES[request.param]


@pytest.fixture
def model(size):
    return random_speech_model(size, device="cpu", dtype=torch.float32)


def prompt_of(size, rows=40, seed=0):
    rng = np.random.default_rng(seed)
    prompt = np.full((rows, 1 + size.speech.num_codebooks), size.speech.code_pad, dtype=np.int64)
    prompt[:, 0] = rng.integers(10, size.speech.vocabulary, rows)
    prompt[5:20, 0] = size.speech.tokens.user_slot
    prompt[5:20, 1:] = rng.integers(0, size.speech.codebook_size, (15, size.speech.num_codebooks))
    return prompt


def frames_of(slots: SpeechSlots, prompt, slot=0):
    slots.open(slot, prompt, CounterDraws(5, 0))
    made = []
    for _ in range(COUNT):
        made.append(slots.draw()[0][slot])
        slots.advance()
    slots.close(slot)
    return torch.stack(made)


def fast_frames(model, size, **options):
    return frames_of(SpeechSlots(model, size.sampling, slots=1, capacity=128, **options), prompt_of(size))


def test_the_plain_loop_gives_the_codes_of_the_fast_one(model, size):
    made = naive_frames(model, prompt_of(size), count=COUNT, sampling=size.sampling, draws=CounterDraws(5, 0))
    naive = torch.stack(list(made))
    assert len(naive.unique()) > COUNT
    assert torch.equal(naive, fast_frames(model, size))


def test_what_is_prepared_changes_no_code_and_no_name(model, size):
    weights = model.state_dict()
    unprepared = build_speech_model(size.speech).eval().requires_grad_(False)
    unprepared.load_state_dict(weights)
    assert unprepared.code_projections is None
    assert model.code_projections is not None
    assert weights.keys() == unprepared.state_dict().keys()
    assert torch.equal(fast_frames(model, size), fast_frames(unprepared, size))


def test_merged_weights_are_held_once():
    model = random_speech_model(SIZES["toy-local"], device="cpu", dtype=torch.float32)
    attention, mlp = (model.get_submodule(f"transformer.layers.0.{part}") for part in ("self_attn", "mlp"))
    for part, names in ((attention, ("q_proj", "k_proj", "v_proj")), (mlp, ("gate_proj", "up_proj"))):
        parts, merged = [part.get_parameter(f"{name}.weight").data for name in names], part.get_buffer("merged")
        assert torch.equal(torch.cat(parts), merged)
        storages = {weight.untyped_storage().data_ptr() for weight in parts}
        assert storages == {merged.untyped_storage().data_ptr()}


def test_a_slot_cut_by_its_length_gives_the_codes_of_one_behind_a_mask(model, size):
    """A GPU takes the mask; here both ways run on one device."""
    cut = fast_frames(model, size)
    slots = SpeechSlots(model, size.sampling, slots=3, capacity=128)
    cache = slots._step.cache
    mask_of, attend = cache._next_mask, cache._attend_masked

    def masked():
        mask = mask_of()
        return lambda layer: attend(layer, mask)

    cache.next_rows = masked
    slots.open(0, prompt_of(size, 90, seed=3), CounterDraws(8, 0))
    assert torch.equal(frames_of(slots, prompt_of(size), slot=2), cut)


def test_the_longest_neighbour_changes_no_bit_of_a_slot(model, size):
    alone, beside = (SpeechSlots(model, size.sampling, slots=2, capacity=192) for _ in range(2))
    beside.open(1, prompt_of(size, 150, seed=4), CounterDraws(8, 0))
    states = []
    for slots in (alone, beside):
        slots.open(0, prompt_of(size), CounterDraws(5, 0))
        for _ in range(COUNT):
            slots.draw()
            slots.advance()
        states.append(slots._step.hidden[0].clone())
    assert torch.equal(*states)


def test_a_step_recorded_on_a_cpu_is_the_step_itself():
    def step() -> None:
        raise AssertionError

    assert recorded(step, torch.device("cpu")) is step
    assert plain(step, torch.device("cpu")) is step


def test_slots_whose_steps_ran_before_a_request_came_give_the_same_codes(model, size):
    """What a recording needs: calls while all slots are free leave no trace."""

    def warmed(step, device):
        for _ in range(4):
            with torch.inference_mode():
                step()
        return step

    assert torch.equal(fast_frames(model, size, record=warmed), fast_frames(model, size, record=plain))


def test_slots_are_used_again_for_one_request_after_another(model, size):
    slots = SpeechSlots(model, size.sampling, slots=1, capacity=128)
    first = [list(slots.frames(prompt_of(size), budget=6, draws=CounterDraws(5, 0))) for _ in range(2)]
    assert [frame.tolist() for frame in first[0]] == [frame.tolist() for frame in first[1]]
    cut_short = slots.frames(prompt_of(size), budget=6, draws=CounterDraws(5, 0))
    next(cut_short)
    cut_short.close()
    slots.open(0, prompt_of(size), CounterDraws(5, 0))


@pytest.mark.parametrize("chunks", [[5, 1, 9, 3], [18], [1] * 18])
def test_a_decoder_with_recorded_chunks_gives_the_waveform_of_one_pass(size, chunks):
    decoder = random_decoder(size, device="cpu")
    codes = torch.randint(1024, (4, 18), generator=torch.Generator().manual_seed(1))
    stream, made = RecordedDecoder(decoder), []
    for _ in range(2):
        stream.restart()
        made = [stream.step(part) for part in codes.split(chunks, dim=1)]
    torch.testing.assert_close(torch.cat(made, dim=1), decoder.decode(codes), rtol=0.0, atol=2e-5)


def test_chunks_that_do_not_make_every_number_of_frames_are_refused(size):
    with pytest.raises(ValueError, match="every number"):
        RecordedDecoder(random_decoder(size, device="cpu"), sizes=(2, 4))


@pytest.mark.parametrize(("bits", "tolerance"), [(WeightBits.SIXTEEN, 0.02), (WeightBits.EIGHT, 0.3)])
def test_packed_weights_give_about_the_same_states(size, bits, tolerance):
    whole, packed = (random_speech_model(size, device="cpu", dtype=torch.float32) for _ in range(2))
    pack(packed, bits)
    with torch.inference_mode():
        states = []
        for model in (whole, packed):
            rows = model.embed_rows(torch.from_numpy(prompt_of(size)))
            states.append(model.transformer.prefill(rows, model.transformer.start(1, 64), 0))
    difference = (states[0] - states[1]).abs().max()
    assert 0 < difference < tolerance
    fast_frames(packed, size)


def test_only_a_float32_model_can_be_packed(size):
    model = random_speech_model(size, device="cpu", dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="float32"):
        pack(model, WeightBits.EIGHT)


def test_sixteen_bits_give_the_codes_of_float32_where_the_file_had_sixteen(size):
    whole, packed = (random_speech_model(size, device="cpu", dtype=torch.float32) for _ in range(2))
    for model in (whole, packed):
        for weight in model.parameters():
            weight.copy_(weight.half().float())
        model.prepare()
    pack(packed, WeightBits.SIXTEEN)
    assert torch.equal(fast_frames(packed, size), fast_frames(whole, size))
