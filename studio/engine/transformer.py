"""Pre-norm causal transformer blocks with rotary positions: whole sequences for training and encoding, and single steps
over an explicit key-value state for streaming. Knows nothing of speech."""

from collections.abc import Iterator
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

Rotation = tuple[Tensor, Tensor]


def rotation(positions: Tensor, head_width: int, base: float = 10_000.0) -> Rotation:
    """Cosines and sines `(..., 1, head_width / 2)` of rotary position embedding for `positions` `(...)`, float32.

    Half-split pairing: feature i turns together with feature i + head_width / 2.
    """
    half = head_width // 2
    frequencies = base ** (-torch.arange(half, device=positions.device) / half)
    angles = positions[..., None].float() * frequencies
    return angles.cos().unsqueeze(-2), angles.sin().unsqueeze(-2)


def rotate(states: Tensor, rotation: Rotation) -> Tensor:
    """Turns `states` `(batch, time, heads, head_width)` by their positions."""
    cosine, sine = rotation
    first, second = states.chunk(2, dim=-1)
    return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def rotate_pairs(states: Tensor, turn: Rotation) -> Tensor:
    """Turns `states` `(batch, time, heads, head_width)`; features 2 i and 2 i + 1 turn together."""
    cosine, sine = turn
    even, odd = states.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([even * cosine - odd * sine, odd * cosine + even * sine], dim=-1).flatten(-2)


def multiply_pairs(states: Tensor, turn: Rotation) -> Tensor:
    """As `rotate_pairs`, for float32, by one product of complex numbers: a step of a single request is so small that
    it lasts as long as it has operations. What is encoded keeps to `rotate_pairs`, whose last bits it was made with."""
    pairs = torch.view_as_complex(states.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * torch.complex(*turn)).flatten(-2)


class KeyValues:
    """Keys and values of one block, `(batch, heads, capacity, head_width)`, filled from the left.

    Who streams through a window calls `keep_last` before each step, so that a stream of any length keeps its size.
    """

    def __init__(self, batch: int, num_heads: int, head_width: int, capacity: int, device: torch.device) -> None:
        self.keys = torch.zeros(batch, num_heads, capacity, head_width, device=device)
        self.values = torch.zeros_like(self.keys)
        self.length = 0

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Stores `(batch, heads, time, head_width)` and returns all that is held so far."""
        end = self.length + keys.shape[2]
        assert end <= self.keys.shape[2], "the key-value buffer is full"
        self.keys[:, :, self.length : end] = keys
        self.values[:, :, self.length : end] = values
        self.length = end
        return self.keys[:, :, :end], self.values[:, :, :end]

    def keep_last(self, count: int) -> None:
        """Drops all but the newest `count` entries."""
        drop = self.length - count
        if drop > 0:
            self.keys[:, :, :count] = self.keys[:, :, drop : self.length].clone()
            self.values[:, :, :count] = self.values[:, :, drop : self.length].clone()
            self.length = count


class Block(nn.Module):
    """Self-attention and a feed-forward layer, each behind a LayerNorm and added to its input."""

    def __init__(self, width: int, num_heads: int, expansion: int = 4, dropout: float = 0.0) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.output = nn.Linear(width, width, bias=False)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, expansion * width)
        self.down = nn.Linear(expansion * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, turn: Rotation, mask: Tensor | None) -> Tensor:
        """`hidden` `(batch, time, width)`; `mask` is true where a key may be seen, None means plain causal."""
        queries, keys, values = self._project(hidden, turn)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, is_causal=mask is None)
        return self._finish(hidden, mixed)

    def step(self, hidden: Tensor, turn: Rotation, cache: KeyValues, mask: Tensor | None = None) -> Tensor:
        """The same for `hidden` that follows what `cache` holds; `mask` `(time, held + time)`, None sees everything."""
        queries, keys, values = self._project(hidden, turn)
        keys, values = cache.append(keys, values)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        return self._finish(hidden, mixed)

    def _project(self, hidden: Tensor, turn: Rotation) -> tuple[Tensor, Tensor, Tensor]:
        batch, time, width = hidden.shape
        projected = self.qkv(self.attention_norm(hidden)).view(batch, time, 3, self.num_heads, width // self.num_heads)
        queries, keys, values = projected.unbind(2)
        return rotate(queries, turn).transpose(1, 2), rotate(keys, turn).transpose(1, 2), values.transpose(1, 2)

    def _finish(self, hidden: Tensor, mixed: Tensor) -> Tensor:
        hidden = hidden + self.dropout(self.output(mixed.transpose(1, 2).flatten(2)))
        inner = functional.gelu(self.up(self.feed_forward_norm(hidden)), approximate="tanh")
        return hidden + self.dropout(self.down(inner))


class Blocks(nn.ModuleList):
    """Blocks one after another."""

    def __init__(self, count: int, width: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(Block(width, num_heads, dropout=dropout) for _ in range(count))
        self.num_heads = num_heads
        self.head_width = width // num_heads

    def __iter__(self) -> Iterator[Block]:
        return cast(Iterator[Block], super().__iter__())

    def forward(self, hidden: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        """Whole sequences, as `Block.forward`; `positions` `(time,)`."""
        turn = rotation(positions, self.head_width)
        for block in self:
            hidden = block(hidden, turn, mask)
        return hidden

    def start(self, capacity: int, device: torch.device, batch: int = 1) -> list[KeyValues]:
        """Buffers for `batch` streams in step, of at most `capacity` rows held at once."""
        return [KeyValues(batch, self.num_heads, self.head_width, capacity, device) for _ in self]

    def step(self, hidden: Tensor, positions: Tensor, caches: list[KeyValues], mask: Tensor | None = None) -> Tensor:
        """The rows `(batch, time, width)` after those that `caches` hold, as `Block.step`."""
        turn = rotation(positions, self.head_width)
        for block, cache in zip(self, caches, strict=True):
            hidden = block.step(hidden, turn, cache, mask)
        return hidden


class StackState:
    """What a streaming `WindowedStack` remembers: one key-value buffer a block, and the position of the next row."""

    def __init__(self, caches: list[KeyValues]) -> None:
        self.caches = caches
        self.position = 0


class WindowedStack(nn.Module):
    """Causal blocks in which each row sees itself and the `window - 1` rows before it."""

    def __init__(self, width: int, num_layers: int, window: int, num_heads: int) -> None:
        super().__init__()
        self.blocks = Blocks(num_layers, width, num_heads)
        self.window = window

    def forward(self, hidden: Tensor) -> Tensor:
        """A whole sequence `(batch, time, width)` at once."""
        positions = torch.arange(hidden.shape[1], device=hidden.device)
        distance = positions[:, None] - positions[None]
        mask = None if hidden.shape[1] <= self.window else (distance >= 0) & (distance < self.window)
        return self.blocks(hidden, positions, mask)

    def start(self, rows: int, device: torch.device) -> StackState:
        """A fresh state for one stream that advances by `rows` rows a call."""
        return StackState(self.blocks.start(self.window - 1 + rows, device))

    def step(self, hidden: Tensor, state: StackState) -> Tensor:
        """The next rows `(1, rows, width)` of a stream; equal in exact arithmetic to `forward` over all of it."""
        rows, held = hidden.shape[1], min(state.position, self.window - 1)
        positions = torch.arange(state.position - held, state.position + rows, device=hidden.device)
        distance = positions[held:, None] - positions[None]
        mask = None if rows == 1 else (distance >= 0) & (distance < self.window)
        for cache in state.caches:
            cache.keep_last(self.window - 1)
        state.position += rows
        return self.blocks.step(hidden, positions[held:], state.caches, mask)
