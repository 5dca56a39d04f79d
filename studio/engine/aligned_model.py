"""The embedded voice's language model: phonemes aligned to frames, a reference's codes and all codes so far, to the
next frame of codes.

Alignment is given rather than learned: a duration is predicted for every phoneme, so the number of frames is known
before the first one is made. The backbone runs once a frame; a frame-local transformer then goes through the codebooks.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from studio.engine.text_encoder import TextEncoder
from studio.engine.transformer import Blocks, KeyValues

_GAP = 10
"""Positions left free between the reference and the first frame."""


@dataclass(frozen=True, kw_only=True)
class AlignedModelConfig:
    """Sizes of the networks."""

    vocabulary_size: int
    num_codebooks: int = 8
    codebook_size: int = 1024
    width: int = 256
    num_heads: int = 4
    text_layers: int = 3
    backbone_layers: int = 5
    local_layers: int = 1
    quarters: int = 4
    """Parts of a frame whose phonemes are averaged separately."""
    dropout: float = 0.0


class FrameLocal(nn.Module):
    """Within one frame: the backbone's hidden state, then the codes so far, to logits for the next codebook."""

    def __init__(self, config: AlignedModelConfig) -> None:
        super().__init__()
        width, size = config.width, config.codebook_size
        self.num_codebooks, self.codebook_size = config.num_codebooks, size
        self.input = nn.Linear(width, width)
        self.embedding = nn.Embedding(config.num_codebooks * size, width)
        self.positions = nn.Parameter(torch.zeros(config.num_codebooks, width))
        self.blocks = Blocks(config.local_layers, width, config.num_heads, config.dropout)
        self.norm = nn.LayerNorm(width)
        self.heads = nn.Parameter(torch.zeros(config.num_codebooks, width, size))

    def forward(self, hidden: Tensor, codes: Tensor) -> Tensor:
        """Teacher-forced logits `(frames, num_codebooks, codebook_size)` for `hidden` `(frames, width)` and the true
        `codes` `(frames, num_codebooks)`."""
        offsets = torch.arange(self.num_codebooks, device=codes.device) * self.codebook_size
        known = self.embedding(codes[:, :-1] + offsets[:-1])
        rows = torch.cat([self.input(hidden)[:, None], known], dim=1) + self.positions
        rows = self.blocks(rows, torch.arange(self.num_codebooks, device=codes.device), None)
        return torch.einsum("fqd,qdk->fqk", self.norm(rows), self.heads)

    def start(self, device: torch.device, batch: int = 1) -> list[KeyValues]:
        """Buffers for the codebooks of one frame; set their length to 0 to use them for the next frame."""
        return self.blocks.start(self.num_codebooks, device, batch)

    def first_row(self, hidden: Tensor) -> Tensor:
        """The row that asks for codebook 0: `hidden` `(batch, 1, width)` to the same shape."""
        return self.input(hidden) + self.positions[0]

    def next_row(self, code: int, codebook: int) -> Tensor:
        """The row that follows the `code` drawn for `codebook`, `(1, 1, width)`."""
        return (self.embedding.weight[codebook * self.codebook_size + code] + self.positions[codebook + 1])[None, None]

    def step(self, row: Tensor, codebook: int, caches: list[KeyValues]) -> Tensor:
        """Logits `(batch, codebook_size)` for `codebook`; `row` `(batch, 1, width)`."""
        row = self.blocks.step(row, torch.tensor([codebook], device=row.device), caches)
        return self.norm(row)[:, 0] @ self.heads[codebook]


class AlignedModel(nn.Module):
    """Text encoder, duration predictor, backbone and frame-local transformer."""

    def __init__(self, config: AlignedModelConfig) -> None:
        super().__init__()
        self.config = config
        width, size = config.width, config.num_codebooks * config.codebook_size
        self.text = TextEncoder(
            config.vocabulary_size,
            width,
            config.text_layers,
            config.num_heads,
            quarters=config.quarters,
            dropout=config.dropout,
        )
        self.durations = nn.Sequential(nn.Linear(2 * width, width), nn.GELU(), nn.Linear(width, 1))
        self.codes = nn.Embedding(size + 1, width)
        """One row a code and codebook; the last row stands for "no code"."""
        self.reference_mark = nn.Parameter(torch.zeros(width))
        self.begin = nn.Parameter(torch.zeros(width))
        self.blocks = Blocks(config.backbone_layers, width, config.num_heads, config.dropout)
        self.norm = nn.LayerNorm(width)
        self.local = FrameLocal(config)

    def embed(self, codes: Tensor) -> Tensor:
        """Sum of the embeddings of each frame's codes: `(batch, num_frames, num_codebooks)`, -1 where there is none, to
        `(batch, num_frames, width)`."""
        offsets = torch.arange(self.config.num_codebooks, device=codes.device) * self.config.codebook_size
        none = torch.full_like(codes, self.codes.num_embeddings - 1)
        return self.codes(torch.where(codes < 0, none, codes + offsets)).sum(2)

    def log_durations(self, features: Tensor, reference: Tensor) -> Tensor:
        """`log(1 + ticks)` of each phoneme `(batch, length)`, given text features and the reference's codes
        `(batch, num_frames, num_codebooks)`, whose mean embedding stands for the voice."""
        present = (reference[:, :, 0] >= 0).to(features.dtype)[..., None]
        voice = (self.embed(reference) * present).sum(1) / present.sum(1).clamp(min=1)
        spread = voice[:, None].expand(-1, features.shape[1], -1)
        return self.durations(torch.cat([features, spread], dim=-1))[..., 0]

    def reference_rows(self, reference: Tensor) -> Tensor:
        return self.embed(reference) + self.reference_mark

    def reference_positions(self, count: int, device: torch.device) -> Tensor:
        """Positions of the reference's rows: they end a fixed gap before the first frame, which is at 0."""
        return torch.arange(count, device=device) - count - _GAP

    def backbone(self, rows: Tensor, positions: Tensor, mask: Tensor | None) -> Tensor:
        """Hidden states `(batch, time, width)` of whole sequences; `positions` and `mask` as `Blocks.forward` takes
        them."""
        return self.norm(self.blocks(rows, positions, mask))

    def start(self, capacity: int, device: torch.device, batch: int = 1) -> list[KeyValues]:
        """Buffers for `batch` streams in step, of at most `capacity` rows."""
        return self.blocks.start(capacity, device, batch)

    def step(self, row: Tensor, position: int, caches: list[KeyValues]) -> Tensor:
        """The hidden state of the next row, both `(batch, 1, width)`."""
        return self.norm(self.blocks.step(row, torch.tensor([position], device=row.device), caches))

    def prefill(self, rows: Tensor, positions: Tensor, caches: list[KeyValues]) -> None:
        """Puts the reference's rows `(batch, time, width)` into fresh buffers."""
        time = rows.shape[1]
        causal = torch.ones(time, time, dtype=torch.bool, device=rows.device).tril()
        self.blocks.step(rows, positions, caches, causal)
