"""The layers of both backbones: Qwen3-shaped and GPT-2-shaped. What they attend to is handed in, so they know of no
cache. Attributes are named as in the released weight files."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.backbone_config import GptShape, QwenShape
from studio.engine.slot_cache import Attend
from studio.engine.transformer import Rotation, rotate, rotate_pairs


class RmsNorm(nn.Module):
    """Divides by the root mean square of the last axis: statistics in float32, the weight in the input's dtype."""

    def __init__(self, width: int, epsilon: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self._epsilon = epsilon

    def forward(self, states: Tensor) -> Tensor:
        exact = states.float()
        scaled = exact * torch.rsqrt(exact.square().mean(-1, keepdim=True) + self._epsilon)
        return self.weight * scaled.to(states.dtype)


class QwenAttention(nn.Module):
    """Queries and keys are normed head by head before they are turned."""

    def __init__(self, shape: QwenShape) -> None:
        super().__init__()
        self._head_width = shape.head_width
        self.q_proj = nn.Linear(shape.width, shape.num_heads * shape.head_width, bias=False)
        self.k_proj = nn.Linear(shape.width, shape.num_key_heads * shape.head_width, bias=False)
        self.v_proj = nn.Linear(shape.width, shape.num_key_heads * shape.head_width, bias=False)
        self.o_proj = nn.Linear(shape.num_heads * shape.head_width, shape.width, bias=False)
        self.q_norm = RmsNorm(shape.head_width, shape.norm_epsilon)
        self.k_norm = RmsNorm(shape.head_width, shape.norm_epsilon)

    def forward(self, hidden: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        heads = (-1, self._head_width)
        queries = rotate(self.q_norm(self.q_proj(hidden).unflatten(-1, heads)), turn)
        keys = rotate(self.k_norm(self.k_proj(hidden).unflatten(-1, heads)), turn)
        return self.o_proj(attend(queries, keys, self.v_proj(hidden).unflatten(-1, heads)))


class QwenFeedForward(nn.Module):
    def __init__(self, shape: QwenShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.width, shape.inner_width, bias=False)
        self.up_proj = nn.Linear(shape.width, shape.inner_width, bias=False)
        self.down_proj = nn.Linear(shape.inner_width, shape.width, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.down_proj(functional.silu(self.gate_proj(hidden)) * self.up_proj(hidden))


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


class GptAttention(nn.Module):
    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self._num_heads = shape.num_heads
        self.c_attn = nn.Linear(shape.width, 3 * shape.width)
        self.c_proj = nn.Linear(shape.width, shape.width)

    def forward(self, hidden: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        queries, keys, values = self.c_attn(hidden).unflatten(-1, (3, self._num_heads, -1)).unbind(-3)
        return self.c_proj(attend(rotate_pairs(queries, turn), rotate_pairs(keys, turn), values))


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
        self.ln_1 = nn.LayerNorm(shape.width, shape.norm_epsilon)
        self.attn = GptAttention(shape)
        self.ln_2 = nn.LayerNorm(shape.width, shape.norm_epsilon)
        self.mlp = GptFeedForward(shape)

    def forward(self, hidden: Tensor, turn: Rotation, attend: Attend) -> Tensor:
        """`hidden` `(batch, time, width)`."""
        hidden = hidden + self.attn(self.ln_1(hidden), turn, attend)
        return hidden + self.mlp(self.ln_2(hidden))
