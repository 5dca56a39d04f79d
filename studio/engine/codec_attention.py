"""Causal self-attention over a window of steps, with rotary positions; a sequence of any length in bounded memory."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.transformer import Rotation, rotate_pairs

_SMALLEST_BLOCK = 64


@dataclass(frozen=True)
class AttentionBlock:
    """Some queries of a sequence with the keys that any of them may see."""

    queries: slice
    keys: slice
    mask: Tensor
    """`(queries, keys)`, true where a key may be seen."""


def attention_blocks(steps: int, window: int, device: torch.device) -> list[AttentionBlock]:
    """Cuts the causal band of `steps` queries into blocks of about a window, so that nothing of `steps` squared is
    made: a minute at 400 steps a second would need a mask of 24,000 x 24,000. Blocks of one form share one mask."""
    size = max(window, _SMALLEST_BLOCK)
    blocks, masks = [], {}
    for start in range(0, max(steps, 1), size):
        end, first = min(start + size, steps), max(start - window + 1, 0)
        form = (end - start, start - first)
        if form not in masks:
            masks[form] = _band(*form, window, device)
        blocks.append(AttentionBlock(slice(start, end), slice(first, end), masks[form]))
    return blocks


def _band(queries: int, earlier: int, window: int, device: torch.device) -> Tensor:
    """True where one of `queries` steps in a row may see one of them, or of the `earlier` steps before them."""
    distance = torch.arange(earlier, earlier + queries, device=device)[:, None]
    distance = distance - torch.arange(earlier + queries, device=device)
    return (distance >= 0) & (distance < window)


def codec_rotation(positions: Tensor, head_width: int, max_period: float) -> Rotation:
    """Cosines and sines `(steps, 1, head_width / 2)` for `positions` `(steps,)`, float32.

    The frequencies are made by the exponential, as in the released code: as a power they differ in their last bits, and
    those multiplied by the position of a late step are no longer last bits.
    """
    decay = -2 * math.log(max_period) / head_width
    frequencies = torch.exp(decay * torch.arange(head_width // 2, device=positions.device, dtype=torch.float32))
    angles = positions.float()[:, None, None] * frequencies
    return angles.cos(), angles.sin()


def turned(states: Tensor, turn: Rotation) -> Tensor:
    """Turns `states` `(batch, steps, heads, head_width)` by their positions in float32, in the dtype they came in.

    Interleaved pairing: features 2 i and 2 i + 1 turn together.
    """
    return rotate_pairs(states.float(), turn).to(states.dtype)


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence on itself, without biases."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.in_proj = nn.Linear(width, 3 * width, bias=False)
        self.out_proj = nn.Linear(width, width, bias=False)

    def forward(self, hidden: Tensor, turn: Rotation, blocks: Iterable[AttentionBlock]) -> Tensor:
        """The attention branch `(batch, steps, width)` of a whole sequence that `blocks` cut up."""
        queries, keys, values = self.project(hidden, turn)
        parts = [
            functional.scaled_dot_product_attention(
                queries[:, :, block.queries], keys[:, :, block.keys], values[:, :, block.keys], attn_mask=block.mask
            )
            for block in blocks
        ]
        return self.merge(torch.cat(parts, dim=2))

    def project(self, hidden: Tensor, turn: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values `(batch, heads, steps, head_width)`, the first two turned."""
        projected = self.in_proj(hidden).unflatten(-1, (3, self.num_heads, -1))
        queries, keys, values = projected.unbind(2)
        return turned(queries, turn).transpose(1, 2), turned(keys, turn).transpose(1, 2), values.transpose(1, 2)

    def merge(self, mixed: Tensor) -> Tensor:
        """`(batch, heads, steps, head_width)` back to `(batch, steps, width)`."""
        return self.out_proj(mixed.transpose(1, 2).flatten(2))
