"""Streaming through the stages of the MOSS audio tokenizer's decoder: an explicit state, handed in at every step.

Everything a stream remembers lies in buffers of fixed size and in one position, a tensor; off the CPU a step of a
given number of frames has the same shapes every time and decides nothing in Python, so that it can be captured as a
CUDA graph.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from studio.engine.codec_layers import CodecStages, Layer, ProjectedStack
from studio.engine.slot_cache import attend_rows
from studio.engine.transformer import Rotation


class KeyValueRing:
    """Keys and values `(1, heads, capacity, head_width)` of one layer; the step at position p lies in slot p modulo
    capacity, so that a stream of any length moves nothing."""

    def __init__(self, stack: ProjectedStack, capacity: int, like: Tensor) -> None:
        config = stack.config
        shape = (1, config.num_heads, capacity, config.width // config.num_heads)
        self.keys = torch.zeros(shape, device=like.device, dtype=like.dtype)
        self.values = torch.zeros_like(self.keys)

    def write(self, slots: Tensor, keys: Tensor, values: Tensor) -> None:
        """Puts `(1, heads, steps, head_width)` into `slots` `(steps,)`."""
        self.keys.index_copy_(2, slots, keys)
        self.values.index_copy_(2, slots, values)


@dataclass
class StreamState:
    """What one stream remembers: a ring for each layer of each stack, and the number of frames so far."""

    rings: list[list[KeyValueRing]]
    position: Tensor
    """Frames decoded so far: int64, without dimensions, on the device of the stages."""
    max_frames: int
    """Frames a step may have at most; the rings are that much longer than the windows."""

    @torch.inference_mode()
    def restart(self) -> None:
        """The same buffers for another stream. What they hold is never seen, because it lies before the beginning."""
        self.position.zero_()


@dataclass(frozen=True)
class RingPlace:
    """Where the steps of one call go, and what they may see."""

    turn: Rotation
    slots: Tensor
    """`(steps,)`"""
    filled: int
    """Slots that may hold something once the steps are written: the first ones of the ring, or all of it."""
    mask: Tensor
    """What is added to the scores, `(steps, filled)`: 0 where a slot may be seen once the steps are written. Made
    once for all layers of a stack, in the dtype in which it is added."""


def start_stream(stages: CodecStages, max_frames: int) -> StreamState:
    """A fresh state for one stream through `stages`, whose steps have at most `max_frames` frames."""
    rings, steps, device = [], max_frames, torch.device("cpu")
    for stage in stages:
        if isinstance(stage, ProjectedStack):
            like = next(stage.parameters())
            device, capacity = like.device, stage.config.window - 1 + steps
            rings.append([KeyValueRing(stage, capacity, like) for _ in stage.transformer])
        else:
            steps *= stage.patch
    return StreamState(rings, torch.zeros((), dtype=torch.int64, device=device), max_frames)


def stream_step(stages: CodecStages, hidden: Tensor, state: StreamState) -> Tensor:
    """The next frames `(1, frames, width)` of a stream through the stages; equal in exact arithmetic to what the whole
    sequence gives in these places. `state` moves on by `frames`, which `max_frames` bounds."""
    frames, rings, rate = hidden.shape[1], iter(state.rings), 1
    assert frames <= state.max_frames, f"{frames} frames in a stream of {state.max_frames} a step"
    for stage in stages:
        if isinstance(stage, ProjectedStack):
            hidden = _step_stack(stage, hidden, state.position * rate, next(rings))
        else:
            hidden, rate = stage(hidden), rate * stage.patch
    state.position.add_(frames)
    return hidden


def _step_stack(stack: ProjectedStack, hidden: Tensor, position: Tensor, rings: list[KeyValueRing]) -> Tensor:
    place = _place(stack, position, hidden.shape[1], rings[0].keys)
    hidden = stack.input_proj(hidden)
    for layer, ring in zip(stack.transformer, rings, strict=True):
        hidden = _step_layer(layer, hidden, place, ring)
    return stack.output_proj(hidden)


def _step_layer(layer: Layer, hidden: Tensor, place: RingPlace, ring: KeyValueRing) -> Tensor:
    attention = layer.self_attn
    queries, keys, values = attention.project(layer.norm1(hidden), place.turn)
    ring.write(place.slots, keys, values)
    held = slice(None), slice(None), slice(place.filled)
    return layer.finish(hidden, attention.merge(_attend(queries, ring.keys[held], ring.values[held], place.mask)))


def _attend(queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
    """All `(1, heads, rows, width)`."""
    if queries.device.type == "cpu":
        return attend_rows(queries[0], keys[0].transpose(1, 2), values[0], mask)[None]
    return functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)


def _place(stack: ProjectedStack, position: Tensor, steps: int, keys: Tensor) -> RingPlace:
    """The place of `steps` steps from `position` on in rings as that of `keys`; every slot holds the newest position
    that falls to it."""
    capacity = keys.shape[2]
    positions = position + torch.arange(steps, device=position.device)
    newest = position + (steps - 1)
    # On a CPU a stream that has just begun need not look at slots that are empty; elsewhere shapes never change.
    filled = min(int(newest) + 1, capacity) if position.device.type == "cpu" else capacity
    held = newest - torch.remainder(newest - torch.arange(filled, device=position.device), capacity)
    distance = positions[:, None] - held
    hidden = (held < 0) | (distance < 0) | (distance >= stack.config.window)
    mask = torch.zeros_like(hidden, dtype=keys.dtype).masked_fill(hidden, -torch.inf)
    return RingPlace(stack.rotation(positions), torch.remainder(positions, capacity), filled, mask)
