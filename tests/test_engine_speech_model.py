"""Sizes of the released language models, and the fast ways against the naive ones, at toy size."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from moss_golden import GoldenFolder
from moss_language import DRAWS, frames, hidden_states, loaded, naive_greedy

from studio.engine.backbone_config import ControlTokens, GptShape, QwenShape, SpeechModelConfig
from studio.engine.frame_sampling import GREEDY, LOCAL_SAMPLING, NANO_SAMPLING, SpeechSampling
from studio.engine.sampling import CounterDraws
from studio.engine.speech_frames import SpeechSlots, speech_frames
from studio.engine.speech_model import SpeechModel, build_speech_model
from studio.engine.weight_files import parameter_total

LOCAL, NANO = GoldenFolder("local_v1_5"), GoldenFolder("nano_lm")
MODELS = {"local": loaded(LOCAL), "nano": loaded(NANO)}
PROMPTS = {
    "local": {name: LOCAL.expected[f"rows_{name}"].numpy() for name in ("clone", "plain", "cont")},
    "nano": {name: NANO.expected[f"rows_{name}"].numpy() for name in ("clone", "plain", "cont")},
}
SAMPLINGS = {"local": LOCAL_SAMPLING, "nano": NANO_SAMPLING}
IDS = {"pad": 3, "im_start": 4, "im_end": 5, "audio_start": 6, "audio_end": 7, "user_slot": 8, "assistant_slot": 9}
BOTH = ("weight", "bias")
NANO_STACK = {"width": 768, "num_heads": 12, "inner_width": 3072, "norm_epsilon": 1e-5, "rotary_base": 10_000.0}

RELEASED_LOCAL = SpeechModelConfig(
    backbone=QwenShape(
        width=2560,
        num_layers=36,
        num_heads=32,
        num_key_heads=8,
        head_width=128,
        inner_width=9728,
        norm_epsilon=1e-6,
        rotary_base=1e6,
    ),
    depth=GptShape(
        width=2560,
        num_layers=1,
        num_heads=32,
        inner_width=9728,
        activation="silu",
        norm_epsilon=1e-6,
        rotary_base=1e6,
    ),
    vocabulary=151_936,
    num_codebooks=12,
    codebook_size=1024,
    code_pad=1024,
    longest=40_960,
    sample_rate=48_000,
    tokens=ControlTokens(**IDS),
)
RELEASED_NANO = SpeechModelConfig(
    backbone=GptShape(num_layers=12, activation="gelu_tanh", **NANO_STACK),
    depth=GptShape(num_layers=1, activation="gelu_tanh", **NANO_STACK),
    vocabulary=16_384,
    num_codebooks=16,
    codebook_size=1024,
    code_pad=1024,
    longest=32_768,
    sample_rate=48_000,
    tokens=ControlTokens(**IDS),
)


def on_meta(config: SpeechModelConfig) -> SpeechModel:
    with torch.device("meta"):
        return build_speech_model(config)


def shapes(model: SpeechModel) -> dict[str, list[int]]:
    return {name: list(tensor.shape) for name, tensor in model.state_dict().items()}


def linear(name: str, output: int, inner: int) -> dict[str, list[int]]:
    return {f"{name}.weight": [output, inner], f"{name}.bias": [output]}


def gpt_layer(prefix: str, width: int, inner: int) -> dict[str, list[int]]:
    norms = {f"{prefix}.{norm}.{part}": [width] for norm in ("ln_1", "ln_2") for part in BOTH}
    attention = linear(f"{prefix}.attn.c_attn", 3 * width, width) | linear(f"{prefix}.attn.c_proj", width, width)
    return (
        norms | attention | linear(f"{prefix}.mlp.fc_in", inner, width) | linear(f"{prefix}.mlp.fc_out", width, inner)
    )


def qwen_layer(prefix: str) -> dict[str, list[int]]:
    attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
    return {
        f"{prefix}.input_layernorm.weight": [2560],
        f"{attention}.q_proj.weight": [4096, 2560],
        f"{attention}.k_proj.weight": [1024, 2560],
        f"{attention}.v_proj.weight": [1024, 2560],
        f"{attention}.o_proj.weight": [2560, 4096],
        f"{attention}.q_norm.weight": [128],
        f"{attention}.k_norm.weight": [128],
        f"{prefix}.post_attention_layernorm.weight": [2560],
        f"{mlp}.gate_proj.weight": [9728, 2560],
        f"{mlp}.up_proj.weight": [9728, 2560],
        f"{mlp}.down_proj.weight": [2560, 9728],
    }


def test_local_has_the_released_size_and_names() -> None:
    model = on_meta(RELEASED_LOCAL)
    expected = {
        "transformer.embed_tokens.weight": [151_936, 2560],
        "transformer.norm.weight": [2560],
        "local_transformer.ln_f.weight": [2560],
        "local_transformer.ln_f.bias": [2560],
        "local_text_lm_head.weight": [2, 2560],
    }
    expected |= gpt_layer("local_transformer.h.0", 2560, 9728)
    expected |= {f"audio_embeddings.{codebook}.weight": [1024, 2560] for codebook in range(12)}
    for layer in range(36):
        expected |= qwen_layer(f"transformer.layers.{layer}")
    assert shapes(model) == expected
    assert parameter_total(model) == 4_129_990_144
    assert len(model.ties) == 13


def test_nano_has_the_released_size_and_names() -> None:
    model = on_meta(RELEASED_NANO)
    expected = {"transformer.wte.weight": [16_384, 768]}
    expected |= {f"{stack}.ln_f.{part}": [768] for stack in ("transformer", "local_transformer") for part in BOTH}
    expected |= gpt_layer("local_transformer.h.0", 768, 3072)
    expected |= {f"audio_embeddings.{codebook}.weight": [1024, 768] for codebook in range(16)}
    for layer in range(12):
        expected |= gpt_layer(f"transformer.h.{layer}", 768, 3072)
    assert shapes(model) == expected
    assert parameter_total(model) == 117_311_232
    assert len(expected) + len(model.ties) == 194, "tensors of the released file, duplicates included"


@pytest.mark.parametrize("family", MODELS)
def test_kept_state_gives_the_frames_of_whole_passes(family: str) -> None:
    prompt = PROMPTS[family]["plain"]
    fast = frames(MODELS[family], torch.from_numpy(prompt), GREEDY, budget=8)
    assert torch.equal(fast, naive_greedy(MODELS[family], torch.from_numpy(prompt), 8))


def in_slot(family: str, slot: int, sampling: SpeechSampling, others: dict[int, str], wait: int = 0) -> torch.Tensor:
    """Eight frames of the prompt to clone from one slot of three, begun `wait` frames after `others` in theirs."""
    slots = SpeechSlots(MODELS[family], sampling, slots=3, capacity=300)
    for number, (other, name) in enumerate(others.items()):
        slots.open(other, PROMPTS[family][name], CounterDraws(99, number))
    for _ in range(wait):
        slots.draw()
        slots.advance()
    slots.open(slot, PROMPTS[family]["clone"], CounterDraws(7, 0))
    made = []
    for _ in range(8):
        made.append(slots.draw()[0][slot])
        slots.advance()
    return torch.stack(made)


@pytest.mark.parametrize("family", MODELS)
def test_neighbours_slot_and_time_of_entry_change_no_code(family: str) -> None:
    sampling = SAMPLINGS[family]
    alone = in_slot(family, 0, sampling, {})
    assert len(alone.unique()) > 4, "the frames are no constant"
    assert torch.equal(alone, in_slot(family, 2, sampling, {}))
    assert torch.equal(alone, in_slot(family, 0, sampling, {1: "cont", 2: "plain"}))
    assert torch.equal(alone, in_slot(family, 1, sampling, {0: "plain", 2: "cont"}, wait=5))


@pytest.mark.parametrize("family", MODELS)
def test_a_slot_that_was_used_before_gives_the_frames_of_a_fresh_one(family: str) -> None:
    slots = SpeechSlots(MODELS[family], SAMPLINGS[family], slots=1, capacity=300)
    runs = []
    for name in ("clone", "cont", "clone"):
        slots.open(0, PROMPTS[family][name], CounterDraws(7, 0))
        made = []
        for _ in range(6):
            made.append(slots.draw()[0])
            slots.advance()
        slots.close(0)
        runs.append(torch.cat(made))
    assert torch.equal(runs[0], runs[2])
    assert not torch.equal(runs[0], runs[1])


@torch.inference_mode()
def test_a_slot_that_was_freed_does_not_fill_up_while_others_go_on() -> None:
    model, rows = MODELS["local"], torch.from_numpy(PROMPTS["local"]["plain"])
    cache = model.transformer.start(2, 128)
    for slot in (0, 1):
        model.transformer.prefill(model.embed_rows(rows), cache, slot)
    cache.clear(0)
    for _ in range(3):
        model.transformer.step(model.embed_rows(rows[-2:]), cache)
    assert cache.lengths.tolist() == [0, len(rows) + 3]


def test_a_free_slot_has_nothing_to_end() -> None:
    slots = SpeechSlots(MODELS["local"], LOCAL_SAMPLING, slots=2, capacity=128)
    slots.open(1, PROMPTS["local"]["plain"], DRAWS)
    for _ in range(9):
        assert slots.draw()[1][0] is False
        slots.advance()


def test_a_slot_that_is_full_or_taken_is_not_used_on() -> None:
    slots = SpeechSlots(MODELS["local"], GREEDY, slots=1, capacity=128)
    slots.open(0, PROMPTS["local"]["clone"], DRAWS)
    with pytest.raises(AssertionError, match="taken"):
        slots.open(0, PROMPTS["local"]["clone"], DRAWS)
    for _ in range(15):
        slots.draw()
        slots.advance()
    slots.draw()
    with pytest.raises(AssertionError, match="full"):
        slots.advance()


@pytest.mark.parametrize("family", MODELS)
def test_seed_and_attempt_decide_the_frames(family: str) -> None:
    def run(*place: int) -> list[list[int]]:
        draws = CounterDraws(*place)
        sampling = replace(SAMPLINGS[family], stop=GREEDY.stop)
        made = speech_frames(MODELS[family], PROMPTS[family]["clone"], budget=6, sampling=sampling, draws=draws)
        return [frame.tolist() for frame in made]

    assert run(3, 0) == run(3, 0)
    assert run(3, 0) != run(4, 0)
    assert run(3, 0) != run(3, 0, 1)


def test_a_longer_capacity_changes_no_frame() -> None:
    model, prompt = MODELS["nano"], PROMPTS["nano"]["clone"]
    runs = []
    for capacity in (250, 900):
        slots = SpeechSlots(model, NANO_SAMPLING, slots=1, capacity=capacity)
        slots.open(0, prompt, DRAWS)
        made = []
        for _ in range(10):
            made.append(slots.draw()[0])
            slots.advance()
        runs.append(torch.cat(made))
    assert torch.equal(*runs)


def test_closing_the_generator_ends_it_after_the_frame_that_was_taken() -> None:
    asked: list[int] = []

    class Counting(CounterDraws):
        def frame(self, frame: int, count: int) -> np.ndarray:
            asked.append(frame)
            return super().frame(frame, count)

    draws = Counting(0, 0)
    made = speech_frames(MODELS["nano"], PROMPTS["nano"]["clone"], budget=24, sampling=GREEDY, draws=draws)
    assert next(made).shape == next(made).shape == (4,)
    made.close()
    assert asked == [0, 1]
    assert list(made) == []


@pytest.mark.parametrize("family", MODELS)
def test_a_step_asks_nothing_of_its_data(family: str) -> None:
    """On the meta device there are shapes and no numbers, so whatever looked at one would fail, as in a graph."""
    model = on_meta(MODELS[family].config)
    slots = SpeechSlots(model, SAMPLINGS[family], slots=2, capacity=64)
    with torch.inference_mode():
        slots._draw_frame()
        slots.advance()
        assert slots._step.verdicts.is_meta


@pytest.mark.parametrize("family", MODELS)
def test_numbers_that_are_not_finite_are_reported_and_make_no_speech(family: str) -> None:
    model = loaded(LOCAL if family == "local" else NANO)
    model.get_parameter("local_transformer.ln_f.weight").fill_(torch.inf)
    made = speech_frames(model, PROMPTS[family]["plain"], budget=3, sampling=SAMPLINGS[family], draws=DRAWS)
    with pytest.raises(FloatingPointError):
        next(made)


def test_what_the_model_was_not_made_for_is_refused() -> None:
    model = MODELS["nano"]
    with pytest.raises(ValueError, match="5 codebooks of 4"):
        SpeechSlots(model, GREEDY, slots=1, capacity=64, num_codebooks=5)
    with pytest.raises(ValueError, match="more than the 1024"):
        SpeechSlots(model, GREEDY, slots=1, capacity=1025)


def test_rotary_angles_of_far_positions_are_those_of_float64() -> None:
    cache = MODELS["nano"].transformer.start(1, 1024)
    cosines, sines = cache.prompt_turn(1024)
    frequencies = 3000.0 ** (-torch.arange(0, 16, 2, dtype=torch.float64) / 16)
    angles = torch.arange(1024, dtype=torch.float64)[:, None] * frequencies
    assert (cosines[0, :, 0] - angles.cos()).abs().max() < 2e-4
    assert (sines[0, :, 0] - angles.sin()).abs().max() < 2e-4


def test_a_prompt_is_read_whole_however_long_the_slot_is() -> None:
    rows = torch.from_numpy(PROMPTS["local"]["cont"])
    model = MODELS["local"]
    cache = model.transformer.start(2, 200)
    with torch.inference_mode():
        hidden = model.transformer.prefill(model.embed_rows(rows), cache, 1)
    assert torch.equal(hidden, hidden_states(model, rows))
    assert cache.lengths.tolist() == [0, len(rows)]
