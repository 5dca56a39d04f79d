"""The small transformer that runs over the positions within one frame: it starts afresh with every frame."""

import torch
from torch import Tensor, nn

from studio.engine.backbone_config import GptShape
from studio.engine.backbone_layers import GptLayer, LayerNorm
from studio.engine.slot_cache import Attend, attend_rows, rotary_table


class DepthCache:
    """Keys and values of one frame for `slots` frames that are made together.

    All slots stand at the same position, which is the caller's own counter and no data: a new frame just begins at
    position 0 again, and what an earlier frame left behind is not seen.
    """

    def __init__(self, shape: GptShape, *, slots: int, positions: int, like: Tensor) -> None:
        """Buffers on the device and in the dtype of `like`."""
        layers = like.new_zeros(shape.num_layers, 2, slots * shape.num_heads, positions, shape.head_width)
        self._places = [[_Place(rows, number) for number in range(positions)] for rows in layers]
        self.cosines, self.sines = rotary_table(positions, shape.head_width, shape.rotary_base, like)

    def attend(self, layer: int, position: int) -> Attend:
        """Attention of the row at `position`, `(slots, 1, ...)`, on the rows before it and on itself."""

        def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            place = self._places[layer][position]
            place.key.copy_(keys.flatten(0, 2))
            place.value.copy_(values.flatten(0, 2))
            mixed = attend_rows(queries.flatten(0, 2)[:, None], place.keys, place.values)
            return mixed.view(len(queries), 1, -1)

        return attend

    def attend_projected(self, position: int, projected: Tensor) -> Tensor:
        """As the first layer's `attend`, for `projected` `(slots, 3, heads, head_width)`, to `(slots, width)`."""
        place = self._places[0][position]
        rows = projected[0] if len(projected) == 1 else projected.transpose(0, 1).flatten(1, 2)
        place.both.copy_(rows[1:])
        return attend_rows(rows[0][:, None], place.keys, place.values).view(len(projected), -1)


class _Place:
    """A position of one layer, as views that are made once: making them anew takes as long as using them."""

    def __init__(self, rows: Tensor, number: int) -> None:
        """`rows` `(2, slots * heads, positions, head_width)`."""
        self.both = rows[:, :, number]
        """The row's own key and value, `(2, slots * heads, head_width)`."""
        self.key, self.value = self.both.unbind()
        self.keys = rows[0, :, : number + 1].transpose(1, 2)
        """Of all rows up to this one, `(slots * heads, head_width, held)`."""
        self.values = rows[1, :, : number + 1]


class DepthTransformer(nn.Module):
    """GPT-2-shaped layers and a last norm; its rows come from outside, so it has no embedding."""

    def __init__(self, shape: GptShape) -> None:
        super().__init__()
        self._shape = shape
        self.h = nn.ModuleList(GptLayer(shape) for _ in range(shape.num_layers))
        self.ln_f = LayerNorm(shape.width, shape.norm_epsilon)

    def start(self, slots: int, positions: int) -> DepthCache:
        """An empty cache for frames of at most `positions` positions, on the weights' device and in their dtype."""
        return DepthCache(self._shape, slots=slots, positions=positions, like=self.ln_f.weight)

    def step(self, row: Tensor, position: int, cache: DepthCache) -> Tensor:
        """The output `(slots, width)` at `position` for the input `row` `(slots, width)`; positions come in order."""
        return self._run(row[:, None], 0, position, cache)

    def projected(self, rows: Tensor, position: int) -> Tensor:
        """What the first layer projects `rows` `(count, width)` to at `position`: queries, keys and values, `(count, 3,
        heads, head_width)`. A row that comes again and again at the same position need not be projected again."""
        shape = self._shape
        cosines, sines = rotary_table(position + 1, shape.head_width, shape.rotary_base, rows)
        first = self._first
        return torch.stack(first.attn.project(first.ln_1(rows), (cosines[position], sines[position])), dim=1)

    def step_projected(self, row: Tensor, projected: Tensor, position: int, cache: DepthCache) -> Tensor:
        """As `step`, for a `row` of which `projected`, `(slots, 3, heads, head_width)`, is known."""
        first = self._first
        hidden = first.finish(row, first.attn.c_proj(cache.attend_projected(position, projected)))
        return self.ln_f(hidden) if len(self.h) == 1 else self._run(hidden[:, None], 1, position, cache)

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
