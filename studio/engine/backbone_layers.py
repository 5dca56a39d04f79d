"""The layers of both backbones: Qwen3-shaped and GPT-2-shaped. What they attend to is handed in, so they know of no
cache. Attributes are named as in the released weight files."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.backbone_config import GptShape, QwenShape
from studio.engine.slot_cache import Attend
from studio.engine.transformer import Rotation, multiply_pairs, rotate, rotate_pairs


class RmsNorm(nn.Module):
    """Divides by the root mean square of the last axis in float32; the weight comes after the rounding to the input's
    dtype, as in the released code."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._epsilon = epsilon

    def forward(self, states: Tensor) -> Tensor:
        return self.weight * functional.rms_norm(states, self.weight.shape, eps=self._epsilon)


class QwenAttention(nn.Module):
    """Queries and keys are normed head by head before they are turned."""

    merged: Tensor | None

    def __init__(self, shape: QwenShape) -> None:
        super().__init__()
        self.register_buffer("merged", None, persistent=False)
        self._heads = (shape.num_heads, shape.num_key_heads, shape.num_key_heads)
        self._head_width = shape.head_width
        self.q_proj = nn.Linear(shape.width, shape.num_heads * shape.head_width, bias=False)
        self.k_proj = nn.Linear(shape.width, shape.num_key_heads * shape.head_width, bias=False)
        self.v_proj = nn.Linear(shape.width, shape.num_key_heads * shape.head_width, bias=False)
        self.o_proj = nn.Linear(shape.num_heads * shape.head_width, shape.width, bias=False)
        self.q_norm = RmsNorm(shape.head_width, shape.norm_epsilon)
        self.k_norm = RmsNorm(shape.head_width, shape.norm_epsilon)

    def merge(self) -> None:
        """From now on one product makes queries, keys and values."""
        self.merged = merged_weight([self.q_proj, self.k_proj, self.v_proj])

    def forward(self, hidden: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        queries, keys, values = self._project(hidden)
        turned = rotate(self.q_norm(queries), turn), rotate(self.k_norm(keys), turn)
        return self.o_proj(attend(*turned, values))

    def _project(self, hidden: Tensor) -> Sequence[Tensor]:
        if self.merged is not None:
            return (
                functional.linear(hidden, self.merged).unflatten(-1, (-1, self._head_width)).split(self._heads, dim=-2)
            )
        return [part(hidden).unflatten(-1, (-1, self._head_width)) for part in (self.q_proj, self.k_proj, self.v_proj)]


class QwenFeedForward(nn.Module):
    merged: Tensor | None

    def __init__(self, shape: QwenShape) -> None:
        super().__init__()
        self.register_buffer("merged", None, persistent=False)
        self.gate_proj = nn.Linear(shape.width, shape.inner_width, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.inner_width, bias=False)
        self.down_proj = nn.Linear(shape.inner_width, shape.width, bias=False)

    def merge(self) -> None:
        """From now on one product makes the gate and what goes through it."""
        self.merged = merged_weight([self.gate_proj, self.up_proj])

    def forward(self, hidden: Tensor) -> Tensor:
        if self.merged is not None:
            gate, inner = functional.linear(hidden, self.merged).chunk(2, dim=-1)
        else:
            gate, inner = self.gate_proj(hidden), self.up_proj(hidden)
        return self.down_proj(functional.silu(gate) * inner)


def merged_weight(parts: Sequence[nn.Linear]) -> Tensor:
    """One matrix with the weights of `parts` below each other; theirs become views of it, so nothing is held twice."""
    merged = torch.cat([part.weight.detach() for part in parts])
    for part, weight in zip(parts, merged.split([part.out_features for part in parts]), strict=True):
        part.weight = nn.Parameter(weight, requires_grad=False)
    return merged


class QwenLayer(nn.Module):
    def __init__(self, shape: QwenShape) -> None:
        super().__init__()
        self.input_layernorm = RmsNorm(shape.width, shape.norm_epsilon)
        self.self_attn = QwenAttention(shape)
        self.post_attention_layernorm = RmsNorm(shape.width, shape.norm_epsilon)
        self.mlp = QwenFeedForward(shape)

    def forward(self, hidden: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        """`hidden` `(batch, time, width)`."""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), turn, attend)
        return hidden + self.mlp(self.post_attention_layernorm(hidden))


class LayerNorm(nn.LayerNorm):
    """That of torch, called directly: where one row is normed at a time, the way there takes longer than the norm."""

    def forward(self, input: Tensor) -> Tensor:
        return torch.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class GptAttention(nn.Module):
    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self._num_heads = shape.num_heads
        self.c_attn = nn.Linear(shape.width, 3 * shape.width)
        self.c_proj = nn.Linear(shape.width, shape.width)

    def forward(self, hidden: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        return self.c_proj(attend(*self.project(hidden, turn)))

    def project(self, hidden: Tensor, turn: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values `(batch, time, heads, head_width)`, the first two turned."""
        heads = self.c_attn(hidden).unflatten(-1, (3 * self._num_heads, -1))
        turning, values = heads.split((2 * self._num_heads, self._num_heads), dim=-2)
        turned = (multiply_pairs if heads.dtype == torch.float32 else rotate_pairs)(turning, turn)
        queries, keys = turned.chunk(2, dim=-2)
        return queries, keys, values


class GptFeedForward(nn.Module):
    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self._activation = shape.activation
        self.fc_in = nn.Linear(shape.width, shape.inner_width)
        self.fc_out = nn.Linear(shape.inner_width, shape.width)

    def forward(self, hidden: Tensor) -> Tensor:
        inner = self.fc_in(hidden)
        if self._activation == "silu":
            return self.fc_out(functional.silu(inner))
        return self.fc_out(functional.gelu(inner, approximate="tanh"))


class GptLayer(nn.Module):
    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self.ln_1 = LayerNorm(shape.width, shape.norm_epsilon)
        self.attn = GptAttention(shape)
        self.ln_2 = LayerNorm(shape.width, shape.norm_epsilon)
        self.mlp = GptFeedForward(shape)

    def forward(self, hidden: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        """`hidden` `(batch, time, width)`."""
        return self.finish(hidden, self.attn(self.ln_1(hidden), turn, attend))

    def finish(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """The layer's output from its input and its attention branch."""
        hidden = hidden + attended
        return hidden + self.mlp(self.ln_2(hidden))
