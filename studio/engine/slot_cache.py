"""Keys and values of sequences that run side by side, each in a slot of its own with its own length.

All shapes are fixed when the cache is made and lengths are tensors. Off the CPU a step asks nothing of them, so that it
can be recorded as a CUDA graph. What one slot computes depends on no other: it sees its own rows and nothing else.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from studio.engine.transformer import Rotation

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Queries, keys and values `(batch, time, heads, head_width)` to what they mix to, `(batch, time, width)`."""
AttendLayer = Callable[[int], Attend]
"""The attention of each layer, by its number."""


def rotary_table(positions: int, head_width: int, base: float, like: Tensor) -> Rotation:
    """Cosines and sines `(positions, head_width / 2)` on the device and in the dtype of `like`. Angles are float32
    whatever the dtype is: in 16 bit a position above 256 is no whole number any more."""
    exponents = torch.arange(0, head_width, 2, dtype=torch.float32, device=like.device) / head_width
    angles = torch.arange(positions, dtype=torch.float32, device=like.device)[:, None] * (1.0 / base**exponents)
    return angles.cos().to(like.dtype), angles.sin().to(like.dtype)


def attend_rows(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention of rows `(heads, rows, width)` on `keys` `(heads, width, held)` and `values` `(heads, held, width)`;
    `mask` `(rows, held)` is added to the scores, none sees everything. On a CPU two plain products are quicker than
    what `scaled_dot_product_attention` makes ready, and than its care for rows that see nothing."""
    added, share = (queries[:1, :1, :1], 0) if mask is None else (mask, 1)
    scores = torch.baddbmm(added, queries, keys, beta=share, alpha=queries.shape[2] ** -0.5)
    return torch.bmm(scores.softmax(-1), values)


class SlotCache:
    """The state of a stack of layers for `slots` sequences of at most `capacity` rows each."""

    def __init__(
        self,
        *,
        num_layers: int,
        slots: int,
        num_key_heads: int,
        capacity: int,
        head_width: int,
        rotary_base: float,
        like: Tensor,
    ) -> None:
        """Buffers on the device and in the dtype of `like`."""
        self._keys = like.new_zeros(num_layers, slots, num_key_heads, capacity, head_width)
        self._values = torch.zeros_like(self._keys)
        self._cosines, self._sines = rotary_table(capacity, head_width, rotary_base, like)
        self._places = torch.arange(capacity, device=like.device)
        self._slots = torch.arange(slots, device=like.device)
        self.lengths = torch.zeros(slots, dtype=torch.int64, device=like.device)
        """Rows held for each slot, `(slots,)`."""
        self._growth = torch.zeros_like(self.lengths)

    @property
    def capacity(self) -> int:
        return self._keys.shape[3]

    def new_rows(self, width: int) -> Tensor:
        """A buffer of one row for every slot, `(slots, width)`, beside the keys."""
        return self._keys.new_zeros(len(self.lengths), width)

    def occupy(self, slot: int, length: int) -> None:
        """From now on the slot holds the `length` rows that were just attended to and grows with every step."""
        self.lengths[slot] = length
        self._growth[slot] = 1

    def clear(self, slot: int) -> None:
        """The slot is free: it takes part in steps, as shapes are fixed, and does not grow. Zeros, because a value
        that is no number would come through its weight of zero."""
        self.lengths[slot] = 0
        self._growth[slot] = 0
        self._keys[:, slot] = 0
        self._values[:, slot] = 0

    def prompt_turn(self, length: int) -> Rotation:
        """Rotations of the first `length` positions, `(1, length, 1, head_width / 2)`."""
        assert length <= self.capacity, "the prompt is longer than its slot"
        return self._cosines[None, :length, None], self._sines[None, :length, None]

    def attend_prompt(self, layer: int, slot: int) -> Attend:
        """Causal attention of a prompt `(1, time, ...)` on itself; its keys and values go into the slot."""

        def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            keys, values = keys.transpose(1, 2), values.transpose(1, 2)
            self._keys[layer, slot, :, : keys.shape[2]] = keys[0]
            self._values[layer, slot, :, : keys.shape[2]] = values[0]
            group = queries.shape[2] // keys.shape[1]
            mixed = functional.scaled_dot_product_attention(
                queries.transpose(1, 2),
                keys.repeat_interleave(group, dim=1),
                values.repeat_interleave(group, dim=1),
                is_causal=True,
            )
            return mixed.transpose(1, 2).flatten(2)

        return attend

    def next_rows(self) -> AttendLayer:
        """For each layer, attention of one further row for every slot on what its slot holds and on itself.

        On a CPU each slot's rows are cut out by its length, so no time goes into places that are empty. Elsewhere a
        mask hides those: lengths stay on the device, and shapes are the same at every step.
        """
        if self.lengths.device.type == "cpu":
            lengths = self.lengths.tolist()
            return lambda layer: self._attend_lengths(layer, lengths)
        mask = self._next_mask()
        return lambda layer: self._attend_masked(layer, mask)

    def next_turn(self) -> Rotation:
        """Rotations of the row after those that each slot holds, `(slots, 1, 1, head_width / 2)`."""
        return self._cosines[self.lengths][:, None, None], self._sines[self.lengths][:, None, None]

    def _next_mask(self) -> Tensor:
        """What is added to the scores of each place, `(slots, 1, 1, capacity)`: 0 where the next row of a slot may see
        it, itself included. Made once for all layers, in the dtype in which it is added."""
        hidden = self._places > self.lengths[:, None]
        return torch.zeros_like(hidden, dtype=self._keys.dtype).masked_fill(hidden, -torch.inf)[:, None, None]

    def _attend_masked(self, layer: int, mask: Tensor) -> Attend:
        def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            held_keys, held_values = self._keys[layer], self._values[layer]
            held_keys[self._slots, :, self.lengths] = keys[:, 0]
            held_values[self._slots, :, self.lengths] = values[:, 0]
            # The query heads that share a key head stand where time would: one call, and no copies of the keys.
            grouped = queries[:, 0].unflatten(1, (held_keys.shape[1], -1))
            mixed = functional.scaled_dot_product_attention(grouped, held_keys, held_values, attn_mask=mask)
            return mixed.flatten(1)[:, None]

        return attend

    def _attend_lengths(self, layer: int, lengths: list[int]) -> Attend:
        def attend(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
            held_keys, held_values = self._keys[layer], self._values[layer]
            mixed = []
            # Slot by slot, because one call for all would have the shape of the longest: what a slot computes would
            # depend on who is beside it.
            for slot, length in enumerate(lengths):
                held_keys[slot, :, length] = keys[slot, 0]
                held_values[slot, :, length] = values[slot, 0]
                grouped = queries[slot, 0].unflatten(0, (held_keys.shape[1], -1))
                seen = slot, slice(None), slice(length + 1)
                mixed.append(attend_rows(grouped, held_keys[seen].transpose(1, 2), held_values[seen]))
            return torch.stack(mixed).flatten(1)[:, None]

        return attend

    def advance(self) -> None:
        """The rows of this step are held now."""
        self.lengths += self._growth
