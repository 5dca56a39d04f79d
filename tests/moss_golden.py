"""Golden folders: toy checkpoints in the released format, with the values that the published code gives for them."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class GoldenFolder:
    """One folder of `tests/golden`; its files are read when they are first asked for."""

    name: str

    @property
    def path(self) -> Path:
        return GOLDEN / self.name

    @cached_property
    def config(self) -> dict[str, Any]:
        return json.loads((self.path / "config.json").read_text(encoding="utf-8"))

    @cached_property
    def info(self) -> dict[str, Any]:
        return json.loads((self.path / "info.json").read_text(encoding="utf-8"))

    @cached_property
    def inputs(self) -> dict[str, Tensor]:
        return load_file(self.path / "inputs.safetensors")

    @cached_property
    def expected(self) -> dict[str, Tensor]:
        return load_file(self.path / "expected.safetensors")

    def assert_close(self, name: str, actual: Tensor, tolerance: float) -> None:
        """`actual` is the expected tensor `name` of this folder, to `tolerance` in every element; shapes are equal."""
        torch.testing.assert_close(
            actual, self.expected[name], rtol=0.0, atol=tolerance, msg=lambda text: f"{name}: {text}"
        )
