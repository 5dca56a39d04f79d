"""MOSS-TTS-Nano at toy size: what the published code computes from the same weights."""

import json
import shutil

import pytest
import torch
from moss_golden import GoldenFolder
from moss_language import (
    DRAWS,
    PrefixTokenizer,
    changed_checkpoint,
    codes_of,
    frames,
    greedy,
    hidden_states,
    loaded,
    run_name,
    sampled_frames,
    taught_frame,
)

from studio.engine.frame_sampling import GREEDY
from studio.engine.prompt_rows import PromptRows
from studio.engine.speech_frames import SpeechSlots
from studio.engine.speech_model import load_speech_model
from studio.engine.weight_files import read_tensors
from studio.errors import CheckpointError
from studio.text.moss_chunks import chunks, pause_after

GOLDEN = GoldenFolder("nano_lm")
MODEL = loaded(GOLDEN)
CASES = json.loads((GOLDEN.path / "prompts.json").read_text(encoding="utf-8"))["cases"]
CHUNKS = json.loads((GOLDEN.path / "text_chunks.json").read_text(encoding="utf-8"))["cases"]
TOLERANCE = 2e-5


def prompt(name: str) -> torch.Tensor:
    maker, case = PromptRows(MODEL.config, PrefixTokenizer()), CASES[name]
    if name.startswith("clone"):
        reference = codes_of(GOLDEN, "ref")[: case.get("nq")]
        return torch.from_numpy(maker.clone(case["text"], [reference]))
    if "codes" in case:
        continued = codes_of(GOLDEN, case["codes"])
        return torch.from_numpy(maker.continuation(case["text"], case["prompt_text"], continued))
    return torch.from_numpy(maker.clone(case["text"]))


@pytest.mark.parametrize("name", ["clone", "plain", "cont", "clone_nq2"])
def test_a_prompt_has_the_published_rows(name: str) -> None:
    assert torch.equal(prompt(name), GOLDEN.expected[f"rows_{name}"])


@pytest.mark.parametrize("name", ["clone", "cont"])
def test_rows_are_embedded_as_published(name: str) -> None:
    with torch.inference_mode():
        GOLDEN.assert_close(f"embeds_{name}", MODEL.embed_rows(GOLDEN.expected[f"rows_{name}"]), TOLERANCE)


@pytest.mark.parametrize("name", ["clone", "plain", "cont", "clone_nq2"])
def test_hidden_states_are_the_published_ones(name: str) -> None:
    GOLDEN.assert_close(f"hidden_{name}", hidden_states(MODEL, GOLDEN.expected[f"rows_{name}"]), TOLERANCE)


@torch.inference_mode()
def test_the_first_layer_gives_the_published_states() -> None:
    rows = MODEL.embed_rows(GOLDEN.expected["rows_cont"])
    cache = MODEL.transformer.start(1, len(rows))
    layer = MODEL.get_submodule("transformer.h.0")
    hidden = layer(rows[None], cache.prompt_turn(len(rows)), cache.attend_prompt(0, 0))
    GOLDEN.assert_close("hidden_cont_layer1", hidden[0], TOLERANCE)


@torch.inference_mode()
def test_rows_fed_one_by_one_give_the_states_of_one_pass() -> None:
    rows = GOLDEN.expected["rows_cont"]
    cache = MODEL.transformer.start(1, len(rows))
    hidden = [MODEL.transformer.prefill(MODEL.embed_rows(rows[:-20]), cache, 0)]
    hidden += [MODEL.transformer.step(MODEL.embed_rows(row[None]), cache) for row in rows[-20:]]
    GOLDEN.assert_close("hidden_cont", torch.cat(hidden), TOLERANCE)


@pytest.mark.parametrize("name", ["clone", "cont"])
def test_a_taught_frame_has_the_published_states_and_logits(name: str) -> None:
    hidden = GOLDEN.expected[f"hidden_{name}"][-3:]
    states, stops, logits = taught_frame(MODEL, hidden, GOLDEN.inputs["teacher_codes"])
    GOLDEN.assert_close(f"local_hidden_{name}", states, TOLERANCE)
    GOLDEN.assert_close(f"stop_logits_{name}", stops, TOLERANCE)
    GOLDEN.assert_close(f"audio_logits_{name}", logits, TOLERANCE)


@torch.inference_mode()
def test_the_stop_head_is_two_rows_of_the_text_head() -> None:
    tokens = MODEL.config.tokens
    stops = GOLDEN.expected["text_logits_clone"][:, [tokens.assistant_slot, tokens.audio_end]]
    GOLDEN.assert_close("stop_logits_clone", stops, TOLERANCE)


@pytest.mark.parametrize("name", ["clone", "plain", "cont"])
def test_the_best_frames_are_the_published_ones(name: str) -> None:
    assert torch.equal(frames(MODEL, GOLDEN.expected[f"rows_{name}"], GREEDY), GOLDEN.expected[f"gen_{name}_codes"])


@pytest.mark.parametrize(("name", "penalty"), [("clone_pen1_5", 1.5), ("cont_pen1_2", 1.2)])
def test_the_penalty_counts_what_was_generated_in_the_same_codebook(name: str, penalty: float) -> None:
    rows = GOLDEN.expected[f"rows_{name.split('_', maxsplit=1)[0]}"]
    assert torch.equal(frames(MODEL, rows, greedy(penalty)), GOLDEN.expected[f"gen_{name}_codes"])


def test_fewer_codebooks_leave_the_others_as_pads() -> None:
    made = frames(MODEL, GOLDEN.expected["rows_clone_nq2"], GREEDY, num_codebooks=2)
    expected = GOLDEN.expected["gen_clone_nq2_codes"]
    assert torch.equal(made, expected[:, :2])
    assert (expected[:, 2:] == MODEL.config.code_pad).all()


@pytest.mark.parametrize("run", GOLDEN.info["sampled_runs"]["runs"], ids=run_name)
def test_seeded_frames_drawn_in_the_published_order_are_equal(run: dict) -> None:
    assert torch.equal(sampled_frames(MODEL, GOLDEN, run), GOLDEN.expected[run_name(run)])


def test_two_prompts_of_other_lengths_side_by_side_give_their_own_frames() -> None:
    slots = SpeechSlots(MODEL, GREEDY, slots=2, capacity=250)
    for slot, name in enumerate(["clone", "plain"]):
        slots.open(slot, GOLDEN.expected[f"rows_{name}"].numpy(), DRAWS)
    made = []
    for _ in range(24):
        made.append(slots.draw()[0])
        slots.advance()
    assert torch.equal(torch.stack(made, dim=1), GOLDEN.expected["gen_batch_codes"])


@pytest.mark.parametrize("name", ["clone", "cont"])
def test_bfloat16_keeps_rotary_frequencies_in_float32(name: str) -> None:
    hidden = hidden_states(loaded(GOLDEN, torch.bfloat16), GOLDEN.expected[f"rows_{name}"])
    GOLDEN.assert_close(f"hidden_{name}_bf16_rope_fp32", hidden, GOLDEN.info[f"hidden_{name}_bf16_dev_sdpa_vs_eager"])
    assert (hidden - GOLDEN.expected[f"hidden_{name}_bf16"]).abs().max() > 0.2


def test_the_weight_file_holds_the_names_of_the_modules() -> None:
    assert read_tensors(GOLDEN.path).keys() == MODEL.state_dict().keys()


def test_the_pickled_file_of_the_release_gives_the_same_model(tmp_path) -> None:
    shutil.copy(GOLDEN.path / "config.json", tmp_path)
    shutil.copy(GOLDEN.path / "pytorch_model.bin", tmp_path)
    assert len(read_tensors(tmp_path)) == GOLDEN.info["bin_keys"]
    pickled = load_speech_model(tmp_path).state_dict()
    assert all(torch.equal(pickled[name], tensor) for name, tensor in MODEL.state_dict().items())


def test_an_embedding_that_the_depth_transformer_never_reads_may_be_there(tmp_path) -> None:
    unread = {"local_transformer.wte.weight": torch.ones(3)}
    folder = changed_checkpoint(GOLDEN, "model_with_tied_duplicates.safetensors", tmp_path, **unread)
    rows = GOLDEN.expected["rows_plain"]
    assert torch.equal(hidden_states(load_speech_model(folder), rows), hidden_states(MODEL, rows))


def test_a_tensor_that_has_no_place_is_refused(tmp_path) -> None:
    folder = changed_checkpoint(GOLDEN, "model.safetensors", tmp_path, **{"audio_embeddings.4.weight": torch.ones(3)})
    with pytest.raises(CheckpointError, match=r"unknown: audio_embeddings\.4\.weight"):
        load_speech_model(folder)


@pytest.mark.parametrize("case", CHUNKS, ids=lambda case: f"{case['text'][:12]}-{case['max_tokens']}")
def test_long_text_is_cut_into_the_published_pieces_and_pauses(case: dict) -> None:
    pieces = chunks(case["text"], lambda text: len(PrefixTokenizer().encode(text)), case["max_tokens"])
    assert pieces == case["chunks"]
    assert [pause_after(piece) for piece in pieces] == case["pauses"]
