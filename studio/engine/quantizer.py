"""Residual vector quantiser: each codebook takes what the ones before it left over. Always float32."""

import torch
from torch import Tensor, nn


class ResidualQuantizer(nn.Module):
    """Codebooks `(num_codebooks, codebook_size, latent_width)` in one buffer; nearest by squared distance."""

    codebooks: Tensor

    def __init__(self, num_codebooks: int, codebook_size: int, latent_width: int) -> None:
        super().__init__()
        self.register_buffer("codebooks", torch.zeros(num_codebooks, codebook_size, latent_width))

    @property
    def num_codebooks(self) -> int:
        return self.codebooks.shape[0]

    def nearest(self, residual: Tensor, codebook: int) -> Tensor:
        """Indices `(...)` of the entries nearest to `residual` `(..., latent_width)`; a tie takes the lowest."""
        entries = self.codebooks[codebook]
        return (residual @ entries.T * 2 - (entries * entries).sum(-1)).argmax(-1)

    def encode(self, latent: Tensor) -> Tensor:
        """Codes `(batch, num_codebooks, num_frames)` of `latent` `(batch, num_frames, latent_width)`."""
        residual, codes = latent.float(), []
        for codebook in range(self.num_codebooks):
            index = self.nearest(residual, codebook)
            codes.append(index)
            residual = residual - self.codebooks[codebook][index]
        return torch.stack(codes, dim=1)

    def decode(self, codes: Tensor) -> Tensor:
        """The latent `(batch, num_frames, latent_width)` of `codes` `(batch, num_codebooks, num_frames)`; fewer
        codebooks than there are give a coarser latent."""
        parts = [self.codebooks[codebook][codes[:, codebook]] for codebook in range(codes.shape[1])]
        return torch.stack(parts).sum(0)
