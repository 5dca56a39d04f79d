"""The stages of the MOSS audio tokenizer over whole sequences: patches, and stacks of causal transformer layers.

Sequences are `(batch, steps, width)`. Attributes carry the names of the released checkpoints, whose weights fill the
modules as they are.
"""

from collections.abc import Iterable, Iterator
from typing import cast

import torch
from torch import Tensor, nn

from studio.engine.codec_attention import AttentionBlock, SelfAttention, attention_blocks, codec_rotation
from studio.engine.codec_config import PatchConfig, StackConfig, Stage, UnpatchConfig
from studio.engine.transformer import Rotation


class Patch(nn.Module):
    """Puts the features of `patch` steps side by side; feature d of step k becomes feature d * patch + k."""

    def __init__(self, patch: int) -> None:
        super().__init__()
        self.patch = patch

    def forward(self, hidden: Tensor) -> Tensor:
        """`(batch, steps, width)` to `(batch, steps / patch, width * patch)`; `steps` is a multiple of `patch`."""
        return hidden.unflatten(1, (-1, self.patch)).transpose(2, 3).flatten(2)


class Unpatch(nn.Module):
    """The inverse of `Patch`."""

    def __init__(self, patch: int) -> None:
        super().__init__()
        self.patch = patch

    def forward(self, hidden: Tensor) -> Tensor:
        """`(batch, steps, width)` to `(batch, steps * patch, width / patch)`."""
        return hidden.unflatten(2, (-1, self.patch)).transpose(2, 3).flatten(1, 2)


class LayerScale(nn.Module):
    """Multiplies each feature by a number of its own."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, hidden: Tensor) -> Tensor:
        return hidden * self.scale


class Layer(nn.Module):
    """Attention and a feed-forward network, each behind a LayerNorm, scaled and added to its input."""

    def __init__(self, width: int, num_heads: int, feed_forward_width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.self_attn = SelfAttention(width, num_heads)
        self.layer_scale_1 = LayerScale(width)
        self.norm2 = nn.LayerNorm(width)
        self.ffn = nn.Sequential(
            nn.Linear(width, feed_forward_width, bias=False),
            nn.GELU(),
            nn.Linear(feed_forward_width, width, bias=False),
        )
        self.layer_scale_2 = LayerScale(width)

    def forward(self, hidden: Tensor, turn: Rotation, blocks: Iterable[AttentionBlock]) -> Tensor:
        """A whole sequence `(batch, steps, width)`."""
        return self.finish(hidden, self.self_attn(self.norm1(hidden), turn, blocks))

    def finish(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """The layer's output from its input and its attention branch."""
        hidden = hidden + self.layer_scale_1(attended)
        return hidden + self.layer_scale_2(self.ffn(self.norm2(hidden)))


class Transformer(nn.Module):
    """Layers one after another, each over the same windows."""

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            Layer(config.width, config.num_heads, config.feed_forward_width) for _ in range(config.num_layers)
        )

    def __iter__(self) -> Iterator[Layer]:
        return cast(Iterator[Layer], iter(self.layers))


class ProjectedStack(nn.Module):
    """A transformer between a projection to its width and one away from it."""

    def __init__(self, config: StackConfig) -> None:
        super().__init__()
        self.config = config
        self.input_proj = _projection(config.input_features, config.width) if config.projects_input else nn.Identity()
        self.transformer = Transformer(config)
        self.output_proj = (
            _projection(config.width, config.output_features) if config.projects_output else nn.Identity()
        )

    def forward(self, hidden: Tensor) -> Tensor:
        """A whole sequence `(batch, steps, input_features)` to `(batch, steps, output_features)`."""
        steps, device = hidden.shape[1], hidden.device
        turn = self.rotation(torch.arange(steps, device=device))
        blocks = attention_blocks(steps, self.config.window, device)
        hidden = self.input_proj(hidden)
        for layer in self.transformer:
            hidden = layer(hidden, turn, blocks)
        return self.output_proj(hidden)

    def rotation(self, positions: Tensor) -> Rotation:
        """The turn of steps at `positions` `(steps,)`, counted from the beginning of the stream; float32."""
        return codec_rotation(positions, self.config.width // self.config.num_heads, self.config.max_period)


class CodecStages(nn.Sequential):
    """The stages of an encoder or a decoder; applied one after another they take a whole sequence."""

    def __init__(self, stages: Iterable[Stage]) -> None:
        super().__init__(*(_build(stage) for stage in stages))

    def __iter__(self) -> Iterator[Patch | Unpatch | ProjectedStack]:
        return cast(Iterator[Patch | Unpatch | ProjectedStack], super().__iter__())


def _build(stage: Stage) -> Patch | Unpatch | ProjectedStack:
    match stage:
        case PatchConfig():
            return Patch(stage.patch)
        case UnpatchConfig():
            return Unpatch(stage.patch)
        case StackConfig():
            return ProjectedStack(stage)


def _projection(input_features: int, output_features: int) -> nn.Linear:
    return nn.Linear(input_features, output_features, bias=False)
