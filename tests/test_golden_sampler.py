"""The published samplers' filters case by case, and the draw that takes the place of theirs."""

import json

import numpy as np
import pytest
import torch
from moss_golden import GOLDEN
from safetensors.torch import load_file
from torch import Tensor

from studio.engine.frame_sampling import (
    HeadSampling,
    choose,
    choose_in_rows,
    choose_in_tensors,
    invert,
    penalised,
    probabilities,
)

FOLDER = GOLDEN / "sampler"
CASES = json.loads((FOLDER / "cases.json").read_text(encoding="utf-8"))
TENSORS = load_file(FOLDER / "cases.safetensors")
TOLERANCE = 1e-6


def sampling(case: dict) -> HeadSampling:
    return HeadSampling(**{key: case[key] for key in ("temperature", "top_k", "top_p", "repetition_penalty")})


def seen(case: dict) -> Tensor:
    """The history as marks; ids beyond the entries, such as the pad, mark nothing."""
    marks = torch.zeros_like(TENSORS[f"{case['name']}.logits"], dtype=torch.bool)
    history = TENSORS.get(f"{case['name']}.history", torch.empty(0, dtype=torch.int64))
    marks[history[history < len(marks)]] = True
    return marks


def chances(case: dict) -> Tensor:
    scores = penalised(TENSORS[f"{case['name']}.logits"], seen(case), case["repetition_penalty"])
    return probabilities(scores, sampling(case))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_is_drawn_from_has_the_published_probabilities(case: dict) -> None:
    actual, expected = chances(case), TENSORS[f"{case['name']}.probs"]
    assert int((actual > 0).sum()) == case["kept"]
    if case["name"] == "ties_topp":
        actual, expected = actual.sort().values, expected.sort().values
    torch.testing.assert_close(actual, expected, rtol=0.0, atol=TOLERANCE)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_temperature_0_takes_the_best_after_the_penalty(case: dict) -> None:
    best = HeadSampling(temperature=0.0, repetition_penalty=case["repetition_penalty"])
    index = choose(TENSORS[f"{case['name']}.logits"][None], best, torch.zeros(1), seen=seen(case)[None])
    assert index.tolist() == [case["greedy_index"]]


def test_rows_drawn_together_are_those_drawn_alone() -> None:
    case = next(case for case in CASES if case["name"] == "nano_default")
    logits = torch.stack([TENSORS["nano_default.logits"], TENSORS["plain.logits"]])
    marks = torch.stack([seen(case), torch.zeros_like(seen(case))])
    uniforms = torch.tensor([0.3, 0.9], dtype=torch.float64)
    together = choose(logits, sampling(case), uniforms, seen=marks)
    alone = [
        choose(logits[row : row + 1], sampling(case), uniforms[row : row + 1], seen=marks[row : row + 1])
        for row in range(2)
    ]
    assert torch.equal(together, torch.cat(alone))


@pytest.mark.parametrize("name", ["nano_default", "local_default", "neg_inf", "stop_head_topp"])
def test_uniform_numbers_spread_evenly_give_each_entry_its_share(name: str) -> None:
    expected = TENSORS[f"{name}.probs"]
    count = 20_000
    uniforms = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    drawn = invert(expected.expand(count, -1), uniforms)
    shares = torch.bincount(drawn, minlength=len(expected)) / count
    torch.testing.assert_close(shares, expected, rtol=0.0, atol=1.01 / count)


@pytest.mark.parametrize("case", [case for case in CASES if case["name"] != "ties_topp"], ids=lambda case: case["name"])
@pytest.mark.parametrize("draw", [choose_in_rows, choose_in_tensors])
def test_both_ways_to_draw_give_each_entry_its_published_share(case: dict, draw) -> None:
    expected, count = TENSORS[f"{case['name']}.probs"], 1000
    uniforms = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    logits = TENSORS[f"{case['name']}.logits"].expand(count, -1)
    drawn = draw(logits, sampling(case), uniforms, seen=seen(case).expand(count, -1))
    shares = torch.bincount(drawn, minlength=len(expected)) / count
    torch.testing.assert_close(shares, expected, rtol=0.0, atol=1.01 / count)
    assert (expected[drawn] > 0).all()


@pytest.mark.parametrize("draw", [choose_in_rows, choose_in_tensors])
@pytest.mark.parametrize("top_k", [0, 2])
def test_numbers_that_are_none_raise_nothing_and_give_an_index(draw, top_k: int) -> None:
    logits = torch.tensor([[0.0, float("nan"), 1.0], [float("nan")] * 3, [float("-inf")] * 3])
    marks = torch.tensor([[True, True, False]]).expand(3, -1)
    options = HeadSampling(top_k=top_k, top_p=0.9, repetition_penalty=1.2)
    drawn = draw(logits, options, torch.full((3,), 0.5, dtype=torch.float64), seen=marks)
    assert ((drawn >= 0) & (drawn < 3)).all()


@pytest.mark.parametrize("uniform", [0.0, 0.25, 1 - 2**-53])
def test_an_entry_without_a_chance_is_never_drawn(uniform: float) -> None:
    uniforms = torch.tensor([uniform], dtype=torch.float64)
    assert invert(torch.tensor([[0.0, 0.25, 0.0, 0.7500001, 0.0, 0.0]]), uniforms).item() in (1, 3)


def test_an_even_draw_is_taken_at_the_right_place() -> None:
    quarters = torch.full((5, 4), 0.25)
    uniforms = torch.from_numpy(np.array([0.0, 0.25, 0.49, 0.5, 0.99]))
    assert invert(quarters, uniforms).tolist() == [0, 1, 1, 2, 3]


@pytest.mark.parametrize("setting", [{"temperature": -0.1}, {"top_k": -1}, {"top_p": 1.1}, {"repetition_penalty": 0.0}])
def test_settings_that_mean_nothing_are_refused(setting: dict) -> None:
    with pytest.raises(ValueError, match="cannot be sampled"):
        HeadSampling(**setting)
