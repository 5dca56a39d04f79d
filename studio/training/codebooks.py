"""How the residual quantiser is trained: k-means on latents to begin with, then running means beside the networks."""

import torch
from torch import Tensor
from torch.nn import functional

from studio.engine.quantizer import ResidualQuantizer

_DECAY = 0.98
_DEAD = 2e-3
"""An entry whose running count falls below this is put where a latent is."""


@torch.no_grad()
def fit(quantizer: ResidualQuantizer, latents: Tensor, generator: torch.Generator, passes: int = 12) -> None:
    """Sets each codebook in turn to the k-means of what those before it leave of `latents` `(count, latent_width)`."""
    residual = latents.clone()
    for codebook, entries in enumerate(quantizer.codebooks):
        entries.copy_(_some(residual, len(entries), generator))
        for _ in range(passes):
            chosen = quantizer.nearest(residual, codebook)
            counts = torch.bincount(chosen, minlength=len(entries))[:, None]
            sums = torch.zeros_like(entries).index_add_(0, chosen, residual)
            spare = _some(residual, len(entries), generator)
            entries.copy_(torch.where(counts > 0, sums / counts.clamp(min=1), spare))
        residual = residual - entries[quantizer.nearest(residual, codebook)]


class RunningCodebooks:
    """Moves every entry to the running mean of the residuals that choose it; dead entries start anew."""

    def __init__(self, quantizer: ResidualQuantizer, generator: torch.Generator) -> None:
        self._quantizer, self._generator = quantizer, generator
        self._counts = torch.full(quantizer.codebooks.shape[:2], 0.1)
        self._sums = quantizer.codebooks * self._counts[..., None]

    def quantise(self, latent: Tensor) -> tuple[Tensor, Tensor]:
        """`latent` `(batch, num_frames, latent_width)` to its quantised value, through which gradients pass unchanged,
        and the commitment loss that draws it there."""
        residual = latent.detach()
        for codebook in range(self._quantizer.num_codebooks):
            chosen = self._quantizer.nearest(residual, codebook)
            entries = self._quantizer.codebooks[codebook][chosen]
            self._update(codebook, residual.flatten(0, 1), chosen.flatten())
            residual = residual - entries
        quantised = latent.detach() - residual
        return latent + (quantised - latent).detach(), functional.mse_loss(latent, quantised)

    @torch.no_grad()
    def _update(self, codebook: int, residual: Tensor, chosen: Tensor) -> None:
        counts, sums = self._counts[codebook], self._sums[codebook]
        share = 1 - _DECAY
        counts.mul_(_DECAY).index_add_(0, chosen, torch.full((len(chosen),), share))
        sums.mul_(_DECAY).index_add_(0, chosen, residual * share)
        dead = counts < _DEAD
        spare = _some(residual, int(dead.sum()), self._generator)
        counts[dead], sums[dead] = share, spare * share
        self._quantizer.codebooks[codebook] = sums / counts[:, None]


def _some(rows: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """`count` random rows, some of them twice where there are too few."""
    return rows[torch.randint(len(rows), (count,), generator=generator)]
