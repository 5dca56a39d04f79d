"""Phonemes to features, and features to what is said during each frame, by an alignment that is given."""

import torch
from torch import Tensor, nn

from studio.engine.transformer import Blocks

TICKS_PER_FRAME = 8
"""Durations are counted in ticks of 10 ms."""


class TextEncoder(nn.Module):
    """Phonemes to features, every phoneme seeing all others; and features to one row a frame."""

    def __init__(
        self, vocabulary_size: int, width: int, num_layers: int, num_heads: int, *, quarters: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.quarters = quarters
        """Parts of a frame whose phonemes are averaged separately."""
        self.embedding = nn.Embedding(vocabulary_size, width)
        self.blocks = Blocks(num_layers, width, num_heads, dropout)
        self.norm = nn.LayerNorm(width)
        self.to_frame = nn.Linear((quarters + 2) * width, width)

    def forward(self, phonemes: Tensor) -> Tensor:
        """`phonemes` `(batch, length)`, -1 where there is none, to features `(batch, length, width)`."""
        present = phonemes >= 0
        hidden = self.embedding(phonemes.clamp(min=0))
        positions = torch.arange(phonemes.shape[1], device=phonemes.device)
        return self.norm(self.blocks(hidden, positions, present[:, None, None]))

    def parts(self, features: Tensor, alignment: Tensor) -> Tensor:
        """`alignment` `(batch, 8 * num_frames)` names the phoneme of each tick; to the mean features of each quarter of
        a frame, `(batch, 4 * num_frames, width)`."""
        width, ticks = features.shape[-1], TICKS_PER_FRAME // self.quarters
        gathered = torch.gather(features, 1, alignment[..., None].expand(-1, -1, width))
        return gathered.unflatten(1, (-1, ticks)).mean(2)

    def frames(self, features: Tensor, alignment: Tensor) -> Tensor:
        """As `parts`, to rows `(batch, num_frames, width)`: the four quarters of the frame and the first half of the
        next one."""
        return self.rows(self.parts(features, alignment))

    def rows(self, parts: Tensor) -> Tensor:
        """The rows of `frames` for the features of each quarter."""
        width = parts.shape[-1]
        rows = parts.unflatten(1, (-1, self.quarters)).flatten(2)
        ahead = torch.cat([rows[:, 1:, : 2 * width], rows[:, -1:, -2 * width :]], dim=1)
        return self.to_frame(torch.cat([rows, ahead], dim=-1))
