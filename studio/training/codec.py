"""Training of the codec's decoder on frozen codes: the sound gets better and every code keeps its meaning.

What is encoded stays valid, so the language model can be trained at the same time. Pitch is Praat's while training: the
decoder learns to predict it, and the envelopes are judged on the right harmonics. The decoder reads along what is said;
some pieces hide it, so that codes alone can be decoded too, and some show the codes that the language model would have
drawn, so that the decoder learns to say what is written where these are wrong.
"""

import logging
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.harmonic_codec import HOPS_PER_FRAME, HarmonicCodec, ReadAlong
from studio.engine.harmonic_signal import mel_filters
from studio.engine.harmonic_synthesis import Envelopes
from studio.training.ear import PhonemeEar, ear_losses
from studio.training.pieces import DecoderTraining, Pieces, Recording, cut

log = logging.getLogger(__name__)

_SCALES = ((256, 20), (512, 40), (1024, 80), (2048, 100))
"""Window lengths in samples, and mel bands, of the mel part of the spectral loss."""
_FINE = (512, 1024, 2048)
"""Window lengths of its other part: every bin, so that harmonics are told from noise."""
WEIGHTS = (10.0, 3.0, 3.0, 1.0)
"""Of the mel, fine, pitch and voicing losses."""
EAR_WEIGHTS = (1.0, 4.0)
"""Of an ear's losses: the phonemes, and its layers."""


class SpectralLoss(nn.Module):
    """Mean absolute differences of log magnitudes, over several window lengths: of mel bands, and of all bins."""

    def __init__(self) -> None:
        super().__init__()
        for window, bands in _SCALES:
            self.register_buffer(f"filters{window}", mel_filters(window, bands), persistent=False)
            self.register_buffer(f"window{window}", torch.hann_window(window), persistent=False)

    def forward(self, heard: Tensor, wanted: Tensor) -> Tensor:
        """Both `(batch, samples)`; to the two parts, `(2,)`."""
        mel, fine = [], []
        for window, _ in _SCALES:
            filters = self.get_buffer(f"filters{window}")
            one, other = self._magnitudes(heard, window), self._magnitudes(wanted, window)
            mel.append(_log_difference(filters @ one, filters @ other, 1e-4))
            if window in _FINE:
                fine.append(_log_difference(one, other, 1e-3))
        return torch.stack([torch.stack(mel).mean(), torch.stack(fine).mean()])

    def _magnitudes(self, samples: Tensor, window: int) -> Tensor:
        taper = self.get_buffer(f"window{window}")
        return torch.stft(samples, window, window // 4, window=taper, return_complex=True).abs() + 1e-7


def _log_difference(one: Tensor, other: Tensor, floor: float) -> Tensor:
    return (torch.log(one.clamp(min=floor)) - torch.log(other.clamp(min=floor))).abs().mean()


def decode_pieces(
    codec: HarmonicCodec, pieces: Pieces, options: DecoderTraining, generator: torch.Generator
) -> Envelopes:
    """Envelopes of the judged hops, a quarter of the pieces from fewer codebooks, and some without their text."""
    count, codebooks, frames = pieces.codes.shape
    fewest = options.fewest_codebooks
    kept = torch.randint(fewest, codebooks + 1, (count,), generator=generator)
    kept = torch.where(torch.rand(count, generator=generator) < 0.25, kept, codebooks)
    latent = sum(
        codec.quantizer.codebooks[book][pieces.codes[:, book].clamp(min=0)] * (book < kept)[:, None, None]
        for book in range(codebooks)
    )
    told = (torch.rand(count, generator=generator) >= options.hidden_text).float()[:, None, None]
    text = codec.decoder.read(pieces.phonemes, pieces.alignment)
    text = ReadAlong(text.coarse * told, text.fine * told)
    envelopes = codec.decoder(latent * (pieces.codes[:, 0] >= 0)[..., None], text)
    end = HOPS_PER_FRAME * (frames - 1)
    judged = slice(end - pieces.pitch.shape[1], end)
    return Envelopes(
        envelopes.log_pitch[:, judged],
        envelopes.voicing_logit[:, judged],
        envelopes.harmonic[:, judged],
        envelopes.noise[:, judged],
    )


def decoded_sound(codec: HarmonicCodec, envelopes: Envelopes, pieces: Pieces, generator: torch.Generator) -> Tensor:
    """What is heard, `(batch, samples)`: at the true pitch where there is one, so that the envelopes are judged on the
    right harmonics."""
    heard_pitch = torch.where(pieces.pitch > 0, pieces.pitch, envelopes.pitch.detach())
    judged = Envelopes(envelopes.log_pitch, envelopes.voicing_logit.detach(), envelopes.harmonic, envelopes.noise)
    white = torch.randn(pieces.samples.shape, generator=generator)
    return codec.synthesis(judged, white, heard_pitch)


def sound_losses(spectral: SpectralLoss, sound: Tensor, envelopes: Envelopes, pieces: Pieces) -> Tensor:
    """Mel, fine, pitch and voicing loss, `(4,)`. Codes that were drawn have a melody of their own: their pitch is not
    judged."""
    voiced = (pieces.pitch > 0).float()
    wanted = torch.log(pieces.pitch.clamp(min=50) / 150) * 2
    judged_pitch = voiced * pieces.true[:, None]
    pitch = (judged_pitch * (envelopes.log_pitch - wanted).abs()).sum() / judged_pitch.sum().clamp(min=1)
    voicing = functional.binary_cross_entropy_with_logits(envelopes.voicing_logit, voiced)
    return torch.cat([spectral(sound, pieces.samples), torch.stack([pitch, voicing])])


def train_decoder(
    codec: HarmonicCodec,
    recordings: list[Recording],
    options: DecoderTraining,
    keep: Callable[[HarmonicCodec], None],
    ear: PhonemeEar | None = None,
) -> None:
    """Trains the decoder in place; `keep` is called every five minutes and at the end. `ear` judges the sound too."""
    random, generator = np.random.default_rng(options.seed), torch.Generator().manual_seed(options.seed)
    spectral = SpectralLoss()
    weights = torch.tensor(WEIGHTS if ear is None else WEIGHTS + EAR_WEIGHTS)
    optimiser = torch.optim.AdamW(
        codec.decoder.parameters(), lr=options.learning_rate, betas=(0.9, 0.95), weight_decay=0.01
    )
    started, kept, step, recent = time.monotonic(), 0.0, 0, []
    while (elapsed := (time.monotonic() - started) / 60) < options.minutes:
        rate = options.learning_rate * min(1, (step + 1) / options.warm_up_steps)
        optimiser.param_groups[0]["lr"] = rate * max(0.05, 1 - elapsed / options.minutes)
        pieces = cut(recordings, options, random)
        envelopes = decode_pieces(codec, pieces, options, generator)
        sound = decoded_sound(codec, envelopes, pieces, generator)
        losses = sound_losses(spectral, sound, envelopes, pieces)
        if ear is not None:
            losses = torch.cat([losses, ear_losses(ear, sound, pieces)])
        optimiser.zero_grad()
        (losses @ weights).backward()
        torch.nn.utils.clip_grad_norm_(codec.decoder.parameters(), 1.0)
        optimiser.step()
        recent.append(losses.detach())
        step += 1
        if step % 50 == 0:
            figures = [round(value, 4) for value in torch.stack(recent).mean(0).tolist()]
            log.info("step %d, %.1f min, mel, fine, pitch, voicing (phonemes, ear's layers) %s", step, elapsed, figures)
            recent.clear()
        if elapsed - kept > 5:
            kept = elapsed
            keep(codec)
    keep(codec)
