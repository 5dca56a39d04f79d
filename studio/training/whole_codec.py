"""Training of the whole codec, encoder, quantiser and decoder: after it every clip and every example is encoded anew.

The latent is continuous first, then its codebooks are fitted by k-means, then all of it is trained on together: with
the quantiser in from the first step, words were never recognised.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from studio.engine.harmonic_codec import HarmonicCodec
from studio.training.codebooks import RunningCodebooks, fit
from studio.training.codec import WEIGHTS, SpectralLoss, decoded_sound, sound_losses
from studio.training.pieces import DecoderTraining, Recording, cut

log = logging.getLogger(__name__)

_NOISE = 0.1
"""Standard deviation of what is added to the continuous latent, so that it stands rounding later."""
_SIZE = 1e-3
_COMMITMENT = 0.25
"""Weights of the latent's mean square, and of its distance to the codebooks."""

Bottleneck = Callable[[Tensor], tuple[Tensor, Tensor]]
"""A latent to what the decoder gets, and a loss."""


@dataclass(frozen=True, kw_only=True)
class CodecTraining:
    """Options of one run; its second half has a lower learning rate. `pieces` are cut without context."""

    continuous_minutes: float
    quantised_minutes: float
    pieces: DecoderTraining
    seed: int = 0


def train_codec(
    codec: HarmonicCodec,
    recordings: list[Recording],
    options: CodecTraining,
    keep: Callable[[HarmonicCodec], None],
) -> None:
    """Trains everything in place; `keep` is called at the end only, for codes change all the time."""
    generator = torch.Generator().manual_seed(options.seed)
    stage = _Stage(codec, recordings, options.pieces, generator)
    stage.run(options.continuous_minutes, options.pieces.learning_rate, _noisy(generator))
    fit(codec.quantizer, latents(codec, recordings), generator)
    running = RunningCodebooks(codec.quantizer, generator)
    stage.run(options.quantised_minutes, options.pieces.learning_rate * 0.6, _committed(running))
    keep(codec)


@torch.no_grad()
def latents(codec: HarmonicCodec, recordings: list[Recording]) -> Tensor:
    """Of all recordings, `(frames, latent_width)`."""
    samples = (torch.from_numpy(each.samples.astype(np.float32) / 32768)[None] for each in recordings)
    return torch.cat([codec.encoder(each)[0] for each in samples])


def _noisy(generator: torch.Generator) -> Bottleneck:
    def bottleneck(latent: Tensor) -> tuple[Tensor, Tensor]:
        noise = torch.randn(latent.shape, generator=generator)
        return latent + _NOISE * noise, _SIZE * latent.square().mean()

    return bottleneck


def _committed(running: RunningCodebooks) -> Bottleneck:
    def bottleneck(latent: Tensor) -> tuple[Tensor, Tensor]:
        quantised, distance = running.quantise(latent)
        return quantised, _COMMITMENT * distance

    return bottleneck


class _Stage:
    """What both stages share: data, losses and the optimiser's state."""

    def __init__(
        self,
        codec: HarmonicCodec,
        recordings: list[Recording],
        pieces: DecoderTraining,
        generator: torch.Generator,
    ) -> None:
        if pieces.context:
            raise ValueError("the encoder hears what is judged only: context must be 0")
        self._codec, self._recordings, self._pieces, self._generator = codec, recordings, pieces, generator
        self._random, self._spectral = np.random.default_rng(pieces.seed), SpectralLoss()
        self._optimiser = torch.optim.AdamW(codec.parameters(), betas=(0.9, 0.95), weight_decay=0.01)

    def run(self, minutes: float, learning_rate: float, bottleneck: Bottleneck) -> None:
        started, step = time.monotonic(), 0
        while (elapsed := (time.monotonic() - started) / 60) < minutes:
            rate = learning_rate * min(1, (step + 1) / self._pieces.warm_up_steps)
            self._optimiser.param_groups[0]["lr"] = rate * max(0.05, 1 - elapsed / minutes)
            losses = self._step(bottleneck)
            step += 1
            if step % 50 == 0:
                log.info("step %d, %.1f min, mel, fine, pitch, voicing %s", step, elapsed, losses.tolist())

    def _step(self, bottleneck: Bottleneck) -> Tensor:
        pieces = cut(self._recordings, self._pieces, self._random)
        latent, extra = bottleneck(self._codec.encoder(pieces.samples))
        envelopes = self._codec.decoder(latent)
        sound = decoded_sound(self._codec, envelopes, pieces, self._generator)
        losses = sound_losses(self._spectral, sound, envelopes, pieces)
        self._optimiser.zero_grad()
        (losses @ torch.tensor(WEIGHTS) + extra).backward()
        torch.nn.utils.clip_grad_norm_(self._codec.parameters(), 1.0)
        self._optimiser.step()
        return losses.detach()
