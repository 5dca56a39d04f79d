"""The backbones that run over the rows of prompt and speech: one class for the Qwen3 shape, one for the GPT-2 shape."""

from collections.abc import Callable, Iterable
from typing import Protocol

from torch import Tensor, nn

from studio.engine.backbone_config import GptShape, QwenShape
from studio.engine.backbone_layers import GptLayer, LayerNorm, QwenAttention, QwenFeedForward, QwenLayer, RmsNorm
from studio.engine.slot_cache import Attend, SlotCache
from studio.engine.transformer import Rotation

Layer = Callable[[Tensor, Rotation, Attend], Tensor]


class Backbone(Protocol):
    """A causal stack over rows that are summed embeddings."""

    def embed(self, tokens: Tensor) -> Tensor:
        """The text embeddings `(..., width)` of `tokens` `(...)`."""
        ...

    def start(self, slots: int, capacity: int) -> SlotCache:
        """An empty cache, on the weights' device and in their dtype."""
        ...

    def prefill(self, rows: Tensor, cache: SlotCache, slot: int) -> Tensor:
        """Puts a whole prompt `(num_rows, width)` into a slot; returns the hidden states after the last norm, of the
        same shape. What the slot held before is forgotten."""
        ...

    def step(self, rows: Tensor, cache: SlotCache) -> Tensor:
        """One further row for every slot, `(slots, width)`, to hidden states of the same shape."""
        ...

    def merge(self) -> None:
        """Makes one matrix of those that are applied to the same input, once the weights are in their place."""
        ...


class QwenBackbone(nn.Module):
    """Implements `Backbone` in the Qwen3 shape."""

    def __init__(self, shape: QwenShape, vocabulary: int) -> None:
        super().__init__()
        self._shape = shape
        self.embed_tokens = nn.Embedding(vocabulary, shape.width)
        self.layers = nn.ModuleList(QwenLayer(shape) for _ in range(shape.num_layers))
        self.norm = RmsNorm(shape.width, shape.norm_epsilon)

    def embed(self, tokens: Tensor) -> Tensor:
        return self.embed_tokens(tokens)

    def start(self, slots: int, capacity: int) -> SlotCache:
        return SlotCache(
            num_layers=self._shape.num_layers,
            slots=slots,
            num_key_heads=self._shape.num_key_heads,
            capacity=capacity,
            head_width=self._shape.head_width,
            rotary_base=self._shape.rotary_base,
            like=self.embed_tokens.weight,
        )

    def prefill(self, rows: Tensor, cache: SlotCache, slot: int) -> Tensor:
        return self.norm(_prefill(self.layers, rows, cache, slot))

    def step(self, rows: Tensor, cache: SlotCache) -> Tensor:
        return self.norm(_step(self.layers, rows, cache))

    def merge(self) -> None:
        for part in self.layers.modules():
            if isinstance(part, QwenAttention | QwenFeedForward):
                part.merge()


class GptBackbone(nn.Module):
    """Implements `Backbone` in the GPT-2 shape."""

    def __init__(self, shape: GptShape, vocabulary: int) -> None:
        super().__init__()
        self._shape = shape
        self.wte = nn.Embedding(vocabulary, shape.width)
        self.h = nn.ModuleList(GptLayer(shape) for _ in range(shape.num_layers))
        self.ln_f = LayerNorm(shape.width, shape.norm_epsilon)

    def embed(self, tokens: Tensor) -> Tensor:
        return self.wte(tokens)

    def start(self, slots: int, capacity: int) -> SlotCache:
        return SlotCache(
            num_layers=self._shape.num_layers,
            slots=slots,
            num_key_heads=self._shape.num_heads,
            capacity=capacity,
            head_width=self._shape.head_width,
            rotary_base=self._shape.rotary_base,
            like=self.wte.weight,
        )

    def prefill(self, rows: Tensor, cache: SlotCache, slot: int) -> Tensor:
        return self.ln_f(_prefill(self.h, rows, cache, slot))

    def step(self, rows: Tensor, cache: SlotCache) -> Tensor:
        return self.ln_f(_step(self.h, rows, cache))

    def merge(self) -> None:
        """Nothing: the released matrices are merged already."""


def _prefill(layers: Iterable[Layer], rows: Tensor, cache: SlotCache, slot: int) -> Tensor:
    cache.clear(slot)
    hidden, turn = rows[None], cache.prompt_turn(len(rows))
    for index, layer in enumerate(layers):
        hidden = layer(hidden, turn, cache.attend_prompt(index, slot))
    cache.occupy(slot, len(rows))
    return hidden[0]


def _step(layers: Iterable[Layer], rows: Tensor, cache: SlotCache) -> Tensor:
    hidden, turn, attend = rows[:, None], cache.next_turn(), cache.next_rows()
    for index, layer in enumerate(layers):
        hidden = layer(hidden, turn, attend(index))
    cache.advance()
    return hidden[:, 0]
