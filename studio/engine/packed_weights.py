"""Linear layers with weights of 16 or 8 bits and float32 in and out, for a CPU: a single request reads every weight
once a frame or more, so time goes with their bytes.

With 16 bits a weight of a released 16-bit file stays what it is, down to 6e-5; what 8 bits do to words nobody measured.
"""

from collections.abc import Iterator
from enum import IntEnum

import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.backbone_layers import QwenAttention, QwenFeedForward
from studio.engine.speech_model import SpeechModel

_FINEST = 2.0**-25
"""Half a step of the smallest numbers that 16 bits hold."""
_FEW_ROWS = 8
"""Up to here reading the weights takes the time, beyond it computing does."""


class WeightBits(IntEnum):
    """How many bits a weight keeps."""

    SIXTEEN = 16
    EIGHT = 8


class HalfLinear(nn.Module):
    """A linear layer with float16 weights; sums are float32. It holds what no file can, so it cannot be saved."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.packed_bytes = 2 * weight.numel()
        self._packed = torch.ops.quantized.linear_prepack_fp16(weight, bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """`(..., in)` to `(..., out)`."""
        return torch.ops.quantized.linear_dynamic_fp16(hidden, self._packed)


class ByteLinear(nn.Module):
    """A linear layer with int8 weights and a scale for each output; a few rows at a time are rounded to bfloat16."""

    weight: Tensor
    scales: Tensor
    bias: Tensor | None

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        scales = (weight.abs().amax(dim=1).clamp(min=1e-12) / 127).bfloat16()
        rounded = (weight / scales.float()[:, None]).round().clamp(-127, 127).to(torch.int8)
        self.register_buffer("weight", rounded, persistent=False)
        self.register_buffer("scales", scales, persistent=False)
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """`(..., in)` to `(..., out)`."""
        rows = hidden.flatten(0, -2)
        if len(rows) > _FEW_ROWS:
            return functional.linear(hidden, self.weight * self.scales.float()[:, None], self.bias)
        product = torch.ops.aten._weight_int8pack_mm(rows.bfloat16(), self.weight, self.scales).float()
        product = product if self.bias is None else product + self.bias
        return product.unflatten(0, hidden.shape[:-1])


_LAYERS = {WeightBits.SIXTEEN: HalfLinear, WeightBits.EIGHT: ByteLinear}


def loses_nothing(model: SpeechModel) -> bool:
    """Whether 16 bits hold every weight that `pack` would replace, as they do for a file of 16-bit numbers, and this
    processor computes with them."""
    weights = [part.weight for part in _parts(model) if isinstance(part, nn.Linear)]
    weights += [table.get_parameter("weight") for table in model.audio_embeddings]
    if "fbgemm" not in torch.backends.quantized.supported_engines or any(
        each.dtype != torch.float32 for each in weights
    ):
        return False
    return all(bool((each - each.half().float()).abs().max() <= _FINEST) for each in weights)


def pack(model: SpeechModel, bits: WeightBits) -> None:
    """Replaces the linear layers and the heads of a prepared float32 model on the CPU; embeddings stay.

    Raises ValueError for another model: it would be slower so, or the layers would not fit.
    """
    if next(model.parameters()).dtype != torch.float32 or next(model.parameters()).device.type != "cpu":
        raise ValueError("only a float32 model on the CPU can be packed")
    layer = _LAYERS[bits]
    for part in _parts(model):
        if isinstance(part, QwenAttention | QwenFeedForward):
            part.merged = None
        for name, child in part.named_children():
            if isinstance(child, nn.Linear):
                bias = None if child.bias is None else child.bias.detach()
                setattr(part, name, layer(child.weight.detach(), bias))
    heads = (table.get_parameter("weight").detach() for table in model.audio_embeddings)
    model.packed_heads = nn.ModuleList(layer(head, None) for head in heads)


def _parts(model: SpeechModel) -> Iterator[nn.Module]:
    for name in ("transformer", "local_transformer"):
        yield from list(model.get_submodule(name).modules())
