"""Residual lookup quantiser of the MOSS audio tokenizer: codes of latents with their margins, and latents by table.

Each codebook looks up, by direction only, what the ones before it left over. Always float32, whatever dtype the stages
around it have: a last bit near a boundary changes a code and every later codebook of that frame.
"""

from collections.abc import Iterator
from itertools import islice
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.codec_config import LookupConfig


class LookupCodebook(nn.Module):
    """One codebook: a projection into the space of its entries, the entries, and a projection back."""

    def __init__(self, config: LookupConfig) -> None:
        super().__init__()
        self.in_proj = nn.Linear(config.residual_width, config.code_width)
        self.codebook = nn.Embedding(config.codebook_size, config.code_width)
        self.out_proj = nn.Linear(config.code_width, config.residual_width)

    def squared_distances(self, residual: Tensor) -> Tensor:
        """From `residual` `(batch, frames, residual_width)` to every entry, both at unit length: `(batch, frames,
        codebook_size)`."""
        sought = functional.normalize(self.in_proj(residual), dim=-1)
        entries = functional.normalize(self.codebook.weight, dim=-1)
        lengths = (sought * sought).sum(-1, keepdim=True) + (entries * entries).sum(-1)
        return lengths - 2 * (sought @ entries.T)

    def contributions(self) -> Tensor:
        """What each entry adds to the residual space, `(codebook_size, residual_width)`."""
        return self.out_proj(self.codebook.weight)


class LookupQuantizer(nn.Module):
    """The codebooks one after another, between a projection from the latents and one back to them."""

    def __init__(self, config: LookupConfig) -> None:
        super().__init__()
        self.input_proj = nn.Linear(config.latent_width, config.residual_width)
        self.quantizers = nn.ModuleList(LookupCodebook(config) for _ in range(config.num_codebooks))
        self.output_proj = nn.Linear(config.residual_width, config.latent_width)

    def codebooks(self, count: int) -> Iterator[LookupCodebook]:
        """The first `count` codebooks; there must be as many."""
        assert 1 <= count <= len(self.quantizers), f"{count} of {len(self.quantizers)} codebooks"
        return cast(Iterator[LookupCodebook], islice(self.quantizers, count))

    def encode(self, latents: Tensor, num_codebooks: int) -> Tensor:
        """Codes `(batch, num_codebooks, frames)` of `latents` `(batch, frames, latent_width)`; a tie takes the lowest.

        The first codes do not depend on how many codebooks follow.
        """
        return torch.stack([codes for codes, _ in self._search(latents, num_codebooks)], dim=1)

    def encode_with_margins(self, latents: Tensor, num_codebooks: int) -> tuple[Tensor, Tensor]:
        """Codes as `encode`, and squared distances `(batch, num_codebooks, frames, 2)` to the best and the second-best
        entry: where the two are close, the code hangs on a last bit."""
        codes, distances = zip(*self._search(latents, num_codebooks), strict=True)
        nearest = [each.topk(2, largest=False).values for each in distances]
        return torch.stack(codes, dim=1), torch.stack(nearest, dim=1)

    def table(self, num_codebooks: int) -> "LookupTable":
        """The way back for the first `num_codebooks`; only its output projection is shared with this module."""
        contributions = torch.stack([codebook.contributions() for codebook in self.codebooks(num_codebooks)])
        return LookupTable(contributions.detach(), self.output_proj)

    def _search(self, latents: Tensor, num_codebooks: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Codes and squared distances of one codebook after another."""
        residual = self.input_proj(latents.float())
        for codebook in self.codebooks(num_codebooks):
            distances = codebook.squared_distances(residual)
            codes = distances.argmin(-1)
            yield codes, distances
            residual = residual - codebook.out_proj(codebook.codebook(codes))


class LookupTable(nn.Module):
    """Codes back to latents: one gather, one sum and one projection; 2 MB a codebook at the released sizes."""

    contributions: Tensor

    def __init__(self, contributions: Tensor, output_proj: nn.Linear) -> None:
        super().__init__()
        self.register_buffer("contributions", contributions, persistent=False)
        self.output_proj = output_proj

    @property
    def num_codebooks(self) -> int:
        return self.contributions.shape[0]

    def forward(self, codes: Tensor) -> Tensor:
        """Float32 latents `(batch, frames, latent_width)` of `codes` `(batch, num_codebooks, frames)`; the first few
        codebooks alone give a coarser latent."""
        used = zip(self.contributions, codes.unbind(1), strict=False)
        return self.output_proj(torch.stack([entries[index] for entries, index in used]).sum(0))
