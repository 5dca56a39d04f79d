"""MOSS-TTS-Local v1.5 at toy size: what the published code computes from the same weights."""

import json

import pytest
import torch
from moss_golden import GoldenFolder
from moss_language import (
    DRAWS,
    PairTokenizer,
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
from studio.engine.prompt_rows import PromptFields, PromptRows
from studio.engine.speech_frames import SpeechSlots
from studio.engine.speech_model import load_speech_model
from studio.engine.weight_files import read_tensors
from studio.errors import CheckpointError

GOLDEN = GoldenFolder("local_v1_5")
MODEL = loaded(GOLDEN)
CASES = json.loads((GOLDEN.path / "prompts.json").read_text(encoding="utf-8"))["cases"]
TOLERANCE = 2e-5


@pytest.mark.parametrize("name", ["clone", "clone_all", "plain"])
def test_a_prompt_to_clone_has_the_published_rows(name: str) -> None:
    case = dict(CASES[name])
    text, references = case.pop("text"), [codes_of(GOLDEN, one) for one in case.pop("reference", [])]
    rows = PromptRows(MODEL.config, PairTokenizer()).clone(text, references, PromptFields(**case))
    assert torch.equal(torch.from_numpy(rows), GOLDEN.expected[f"rows_{name}"])


def test_a_prompt_to_continue_has_the_published_rows() -> None:
    transcript, text = "First words spoken. ", "And the rest follows"
    assert transcript + text == CASES["cont"]["text"]
    rows = PromptRows(MODEL.config, PairTokenizer()).continuation(
        text, transcript, codes_of(GOLDEN, "prompt_codes"), PromptFields(language="English")
    )
    assert torch.equal(torch.from_numpy(rows), GOLDEN.expected["rows_cont"])


@pytest.mark.parametrize("name", ["clone", "cont"])
def test_rows_are_embedded_as_published(name: str) -> None:
    with torch.inference_mode():
        GOLDEN.assert_close(f"embeds_{name}", MODEL.embed_rows(GOLDEN.expected[f"rows_{name}"]), TOLERANCE)


@pytest.mark.parametrize("name", ["clone", "clone_all", "plain", "cont"])
def test_hidden_states_are_the_published_ones(name: str) -> None:
    GOLDEN.assert_close(f"hidden_{name}", hidden_states(MODEL, GOLDEN.expected[f"rows_{name}"]), TOLERANCE)


@torch.inference_mode()
def test_the_first_layer_gives_the_published_states() -> None:
    rows = MODEL.embed_rows(GOLDEN.expected["rows_cont"])
    cache = MODEL.transformer.start(1, len(rows))
    layer = MODEL.get_submodule("transformer.layers.0")
    hidden = layer(rows[None], cache.prompt_turn(len(rows)), cache.attend_prompt(0, 0))
    GOLDEN.assert_close("hidden_cont_layer1", hidden[0], TOLERANCE)


@torch.inference_mode()
def test_rows_fed_one_by_one_give_the_states_of_one_pass() -> None:
    prompt, generated = GOLDEN.expected["rows_clone"], GOLDEN.expected["gen_clone_rows"][1:]
    cache = MODEL.transformer.start(1, len(prompt) + len(generated))
    hidden = [MODEL.transformer.prefill(MODEL.embed_rows(prompt), cache, 0)]
    hidden += [MODEL.transformer.step(MODEL.embed_rows(row[None]), cache) for row in generated]
    GOLDEN.assert_close("hidden_clone_after_generation", torch.cat(hidden), TOLERANCE)


@pytest.mark.parametrize("name", ["clone", "cont"])
def test_a_taught_frame_has_the_published_states_and_logits(name: str) -> None:
    hidden = GOLDEN.expected[f"hidden_{name}"][-3:]
    states, stops, logits = taught_frame(MODEL, hidden, GOLDEN.inputs["teacher_codes"])
    GOLDEN.assert_close(f"local_hidden_{name}", states, TOLERANCE)
    GOLDEN.assert_close(f"stop_logits_{name}", stops, TOLERANCE)
    GOLDEN.assert_close(f"audio_logits_{name}", logits, TOLERANCE)


def test_stop_logits_along_a_run_are_the_published_ones() -> None:
    hidden = GOLDEN.expected["hidden_clone_after_generation"][-25:-1]
    stops = taught_frame(MODEL, hidden, GOLDEN.expected["gen_clone_codes"])[1]
    GOLDEN.assert_close("gen_clone_stop_logits", stops, TOLERANCE)


@pytest.mark.parametrize("name", ["clone", "cont", "plain"])
def test_the_best_frames_are_the_published_ones(name: str) -> None:
    assert torch.equal(frames(MODEL, GOLDEN.expected[f"rows_{name}"], GREEDY), GOLDEN.expected[f"gen_{name}_codes"])


@pytest.mark.parametrize(("name", "penalty"), [("clone_pen1_5", 1.5), ("cont_pen1_2", 1.2)])
def test_the_penalty_counts_what_was_generated_in_the_same_codebook(name: str, penalty: float) -> None:
    rows = GOLDEN.expected[f"rows_{name.split('_', maxsplit=1)[0]}"]
    assert torch.equal(frames(MODEL, rows, greedy(penalty)), GOLDEN.expected[f"gen_{name}_codes"])


@pytest.mark.parametrize("run", GOLDEN.info["sampled_runs"]["runs"], ids=run_name)
def test_seeded_frames_drawn_in_the_published_order_are_equal(run: dict) -> None:
    assert torch.equal(sampled_frames(MODEL, GOLDEN, run), GOLDEN.expected[run_name(run)])


def test_two_prompts_of_other_lengths_side_by_side_give_their_own_frames() -> None:
    slots = SpeechSlots(MODEL, GREEDY, slots=2, capacity=150)
    for slot, name in enumerate(["clone", "plain"]):
        slots.open(slot, GOLDEN.expected[f"rows_{name}"].numpy(), DRAWS)
    made = []
    for _ in range(24):
        made.append(slots.draw()[0])
        slots.advance()
    both = torch.stack(made, dim=1)
    assert torch.equal(both[0], GOLDEN.expected["gen_batch_0_rows"][1:, 1:])
    assert torch.equal(both[1], GOLDEN.expected["gen_batch_1_rows"][1:, 1:])


@pytest.mark.parametrize("name", ["clone", "cont"])
def test_bfloat16_stays_as_close_as_two_published_ways_are_to_each_other(name: str) -> None:
    hidden = hidden_states(loaded(GOLDEN, torch.bfloat16), GOLDEN.expected[f"rows_{name}"])
    GOLDEN.assert_close(f"hidden_{name}_bf16", hidden, GOLDEN.info[f"hidden_{name}_bf16_dev_sdpa_vs_eager"])


def test_the_weight_file_holds_the_names_of_the_modules() -> None:
    assert read_tensors(GOLDEN.path).keys() == MODEL.state_dict().keys()


def test_duplicates_of_tied_tensors_change_nothing(tmp_path) -> None:
    folder = changed_checkpoint(GOLDEN, "model_with_tied_duplicates.safetensors", tmp_path)
    rows = GOLDEN.expected["rows_plain"]
    assert read_tensors(folder).keys() - MODEL.state_dict().keys() == MODEL.ties.keys()
    assert torch.equal(hidden_states(load_speech_model(folder), rows), hidden_states(MODEL, rows))


@pytest.mark.parametrize("name", ["text_lm_head.weight", "audio_lm_heads.1.weight"])
def test_a_duplicate_that_differs_is_refused(name: str, tmp_path) -> None:
    tensors = read_tensors(GOLDEN.path)
    other = tensors[{"text_lm_head.weight": "transformer.embed_tokens.weight"}.get(name, "audio_embeddings.1.weight")]
    folder = changed_checkpoint(GOLDEN, "model.safetensors", tmp_path, **{name: other + 1e-3})
    with pytest.raises(CheckpointError, match=name):
        load_speech_model(folder)


def test_a_missing_stop_head_is_refused_and_not_made_up(tmp_path) -> None:
    folder = changed_checkpoint(GOLDEN, "model.safetensors", tmp_path, **{"local_text_lm_head.weight": None})
    with pytest.raises(CheckpointError, match="missing: local_text_lm_head"):
        load_speech_model(folder)
