"""The small transformer that runs over the positions within one frame: it starts afresh with every frame."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.backbone_config import GptShape
from studio.engine.backbone_layers import GptLayer
from studio.engine.slot_cache import Attend, rotary_table


class DepthCache:
    """Keys and values of one frame for `slots` frames that are made together.

    All slots stand at the same position, which is the caller's own counter and no data: a new frame just begins at
    position 0 again, and what an earlier frame left behind is not seen.
    """

    def __init__(self, shape: GptShape, *, slots: int, positions: int, like: Tensor) -> None:
        """Buffers on the device and in the dtype of `like`."""
        self._keys = like.new_zeros(shape.num_layers, slots, shape.num_heads, positions, shape.head_width)
        self._values = torch.zeros_like(self._keys)
        self.cosines, self.sines = rotary_table(positions, shape.head_width, shape.rotary_base, like)

    def attend(self, layer: int, position: int) -> Attend:
        """Attention of the row at `position`, `(slots, 1, ...)`, on the rows before it and on itself."""

        def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            held_keys, held_values = self._keys[layer], self._values[layer]
            held_keys[:, :, position] = keys[:, 0]
            held_values[:, :, position] = values[:, 0]
            mixed = functional.scaled_dot_product_attention(
                queries.transpose(1, 2), held_keys[:, :, : position + 1], held_values[:, :, : position + 1]
            )
            return mixed.transpose(1, 2).flatten(2)

        return attend


class DepthTransformer(nn.Module):
    """GPT-2-shaped layers and a last norm; its rows come from outside, so it has no embedding."""

    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self._shape = shape
        self.h = nn.ModuleList(GptLayer(shape) for _ in range(shape.num_layers))
        self.ln_f = nn.LayerNorm(shape.width, shape.norm_epsilon)

    def start(self, slots: int, positions: int) -> DepthCache:
        """An empty cache for frames of at most `positions` positions, on the weights' device and in their dtype."""
        return DepthCache(self._shape, slots=slots, positions=positions, like=self.ln_f.weight)

    def step(self, row: Tensor, position: int, cache: DepthCache) -> Tensor:
        """The output `(slots, width)` at `position` for the input `row` `(slots, width)`; positions come in order."""
        return self._run(row[:, None], 0, position, cache)

    def projected(self, rows: Tensor, position: int) -> Tensor:
        """What the first layer projects `rows` `(count, width)` to at `position`: queries, keys and values, `(3, count,
        heads, head_width)`. A row that comes again and again at the same position need not be projected again."""
        shape = self._shape
        cosines, sines = rotary_table(position + 1, shape.head_width, shape.rotary_base, rows)
        first = self._first
        return torch.stack(first.attn.project(first.ln_1(rows), (cosines[position], sines[position])))

    def step_projected(self, row: Tensor, projected: Tensor, position: int, cache: DepthCache) -> Tensor:
        """As `step`, for a `row` of which `projected`, `(3, slots, heads, head_width)`, is known."""
        attended = self._first.attn.c_proj(cache.attend(0, position)(*projected[:, :, None]))
        return self._run(self._first.finish(row[:, None], attended), 1, position, cache)

    @property
    def _first(self) -> GptLayer:
        first = self.h[0]
        assert isinstance(first, GptLayer)
        return first

    def _run(self, hidden: Tensor, start: int, position: int, cache: DepthCache) -> Tensor:
        """Through the layers from number `start` on."""
        turn = cache.cosines[position], cache.sines[position]
        for index, layer in enumerate(self.h[start:], start):
            hidden = layer(hidden, turn, cache.attend(index, position))
        return self.ln_f(hidden)[:, 0]
