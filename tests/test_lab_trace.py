"""The trace finds a module that somebody made depend on the number of rows, and the replay shows it alone."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from lab_bench import SIZE, sources
from torch import Tensor, nn
from toy_voice import toy_voice

from studio.engine.embedded import EmbeddedEngine
from studio.engine.probe import CANONICAL, one_row
from studio.engine.probe_harmonic import HarmonicProbe
from studio.invariance.clips import together
from studio.invariance.experiment import perform
from studio.invariance.experiments import BY_NAME
from studio.invariance.lab import Lab

PLANTED = "fine.blocks.0.qkv"


class RowByRow(nn.Module):
    """Gives each row what it would have alone, so that only what is planted depends on a shape."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, hidden: Tensor) -> Tensor:
        return torch.cat([self.inner(row[None]) for row in hidden])


class Crowded(RowByRow):
    """The last bits depend on how many rows there are."""

    def forward(self, hidden: Tensor) -> Tensor:
        return super().forward(hidden) * (1 + 1e-5 * len(hidden))


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    model = toy_voice()
    engine = EmbeddedEngine(model)
    encoder = model.codec.encoder
    encoder.features = RowByRow(encoder.features)  # pyright: ignore[reportAttributeAccessIssue]
    encoder.input = RowByRow(encoder.input)  # pyright: ignore[reportAttributeAccessIssue]
    block = next(iter(encoder.fine.blocks))
    block.qkv = Crowded(block.qkv)  # pyright: ignore[reportAttributeAccessIssue]

    def probes(setting):
        return HarmonicProbe(model.codec, engine.codec, setting)

    return Lab(probe=probes(CANONICAL), probes=probes, sources=sources(engine), size=replace(SIZE, boundary_clips=1))


def test_the_trace_names_the_planted_module(lab: Lab) -> None:
    record = perform(BY_NAME["trace"], lab)
    assert record.verdict == "differs"
    assert record.figures["origin"] == PLANTED
    modules = {module["module"]: module for module in record.figures["modules"]}
    assert modules["features"]["differing"] == modules["input"]["differing"] == 0
    assert modules[PLANTED]["differing"] > 0
    assert not modules[PLANTED]["input_differs"]
    assert modules["latent"]["input_differs"]


def test_the_replay_shows_the_same_difference_alone(lab: Lab) -> None:
    record = perform(BY_NAME["replay"], lab)
    assert (record.verdict, record.figures["module"], record.figures["as_in_trace"]) == ("differs", PLANTED, True)
    assert record.figures["differing"] > 0


def test_equal_rows_of_a_batch_have_equal_digests(lab: Lab) -> None:
    clip = lab.ordinary[0].samples
    modules = lab.probe.trace(one_row(clip), together([clip] * 3), 1).modules
    assert all(len(set(module.digests_rows)) == 1 for module in modules)
    assert all(module.digests_rows[1] == module.digest_batch for module in modules)


def test_a_trace_leaves_no_hook_behind(lab: Lab) -> None:
    clip = lab.ordinary[0].samples
    before = lab.probe.encode(one_row(clip))
    lab.probe.trace(one_row(clip), together([clip] * 2), 0)
    assert isinstance(lab.probe, HarmonicProbe)
    assert not any(module._forward_hooks for module in lab.probe._encoder.modules())
    assert np.array_equal(lab.probe.encode(one_row(clip)), before)
