"""Training of the codec's decoder on frozen codes: the sound gets better and every code keeps its meaning.

What is encoded stays valid, so the language model can be trained at the same time. Pitch is Praat's while training: the
decoder learns to predict it, and the envelopes are judged on the right harmonics.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.harmonic_codec import FRAME, HOPS_PER_FRAME, HarmonicCodec
from studio.engine.harmonic_signal import mel_filters
from studio.engine.harmonic_synthesis import Envelopes

log = logging.getLogger(__name__)

_SCALES = ((256, 20), (512, 40), (1024, 80), (2048, 100))
"""Window lengths in samples, and mel bands, of the mel part of the spectral loss."""
_FINE = (512, 1024, 2048)
"""Window lengths of its other part: every bin, so that harmonics are told from noise."""
WEIGHTS = (10.0, 3.0, 3.0, 1.0)
"""Of the mel, fine, pitch and voicing losses."""


@dataclass(frozen=True, kw_only=True)
class DecoderTraining:
    """Options of one run. `minutes` of wall time decide its length and the learning rate's way down."""

    minutes: float
    batch_size: int = 16
    frames: int = 16
    """Frames that are heard of each piece."""
    context: int = 4
    """Frames before them, decoded but not judged."""
    learning_rate: float = 5e-4
    warm_up_steps: int = 100
    fewest_codebooks: int = 4
    """A quarter of the pieces is decoded from fewer codebooks, so that the first ones carry the most."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Recording:
    """One utterance: int16 samples `(1920 * num_frames,)`, pitch in hertz or 0 `(8 * num_frames,)`, codes
    `(num_frames, codebooks)`."""

    samples: np.ndarray
    pitch: np.ndarray
    codes: Tensor


@dataclass(frozen=True)
class Pieces:
    """A batch: codes with context, and samples and pitch of the frames that are judged."""

    codes: Tensor
    """`(batch, num_codebooks, context + frames + 1)`: the last frame follows those that are judged; -1 where there is
    none."""
    samples: Tensor
    pitch: Tensor


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


def cut(recordings: list[Recording], options: DecoderTraining, random: np.random.Generator) -> Pieces:
    """Random pieces of random recordings; where a recording begins late enough its context is shown too."""
    long_enough = [each for each in recordings if len(each.codes) >= options.context + options.frames]
    codes, samples, pitch = [], [], []
    for index in random.integers(len(long_enough), size=options.batch_size):
        recording = long_enough[index]
        start = int(random.integers(len(recording.codes) - options.context - options.frames + 1))
        first, end = start + options.context, start + options.context + options.frames
        ahead = recording.codes[start : end + 1].long().T
        codes.append(functional.pad(ahead, (0, end + 1 - start - ahead.shape[1]), value=-1))
        samples.append(recording.samples[first * FRAME : end * FRAME].astype(np.float32) / 32768)
        pitch.append(recording.pitch[first * HOPS_PER_FRAME : end * HOPS_PER_FRAME].astype(np.float32))
    return Pieces(torch.stack(codes), torch.from_numpy(np.stack(samples)), torch.from_numpy(np.stack(pitch)))


def decode_pieces(codec: HarmonicCodec, pieces: Pieces, fewest: int, generator: torch.Generator) -> Envelopes:
    """Envelopes of the judged hops, a quarter of the pieces from `fewest` or more codebooks."""
    count, codebooks, frames = pieces.codes.shape
    kept = torch.randint(fewest, codebooks + 1, (count,), generator=generator)
    kept = torch.where(torch.rand(count, generator=generator) < 0.25, kept, codebooks)
    latent = sum(
        codec.quantizer.codebooks[book][pieces.codes[:, book].clamp(min=0)] * (book < kept)[:, None, None]
        for book in range(codebooks)
    )
    envelopes = codec.decoder(latent * (pieces.codes[:, 0] >= 0)[..., None])
    end = HOPS_PER_FRAME * (frames - 1)
    judged = slice(end - pieces.pitch.shape[1], end)
    return Envelopes(
        envelopes.log_pitch[:, judged],
        envelopes.voicing_logit[:, judged],
        envelopes.harmonic[:, judged],
        envelopes.noise[:, judged],
    )


def sound_losses(
    codec: HarmonicCodec, spectral: SpectralLoss, envelopes: Envelopes, pieces: Pieces, generator: torch.Generator
) -> Tensor:
    """Mel, fine, pitch and voicing loss, `(4,)`."""
    voiced = (pieces.pitch > 0).float()
    wanted = torch.log(pieces.pitch.clamp(min=50) / 150) * 2
    pitch = (voiced * (envelopes.log_pitch - wanted).abs()).sum() / voiced.sum().clamp(min=1)
    voicing = functional.binary_cross_entropy_with_logits(envelopes.voicing_logit, voiced)
    heard_pitch = torch.where(pieces.pitch > 0, pieces.pitch, envelopes.pitch.detach())
    judged = Envelopes(envelopes.log_pitch, envelopes.voicing_logit.detach(), envelopes.harmonic, envelopes.noise)
    white = torch.randn(pieces.samples.shape, generator=generator)
    sound = codec.synthesis(judged, white, heard_pitch)
    return torch.cat([spectral(sound, pieces.samples), torch.stack([pitch, voicing])])


def train_decoder(
    codec: HarmonicCodec,
    recordings: list[Recording],
    options: DecoderTraining,
    keep: Callable[[HarmonicCodec], None],
) -> None:
    """Trains the decoder in place; `keep` is called every five minutes and at the end."""
    random, generator = np.random.default_rng(options.seed), torch.Generator().manual_seed(options.seed)
    spectral = SpectralLoss()
    optimiser = torch.optim.AdamW(
        codec.decoder.parameters(), lr=options.learning_rate, betas=(0.9, 0.95), weight_decay=0.01
    )
    started, kept, step, recent = time.monotonic(), 0.0, 0, []
    while (elapsed := (time.monotonic() - started) / 60) < options.minutes:
        rate = options.learning_rate * min(1, (step + 1) / options.warm_up_steps)
        optimiser.param_groups[0]["lr"] = rate * max(0.05, 1 - elapsed / options.minutes)
        pieces = cut(recordings, options, random)
        envelopes = decode_pieces(codec, pieces, options.fewest_codebooks, generator)
        losses = sound_losses(codec, spectral, envelopes, pieces, generator)
        optimiser.zero_grad()
        (losses @ torch.tensor(WEIGHTS)).backward()
        torch.nn.utils.clip_grad_norm_(codec.decoder.parameters(), 1.0)
        optimiser.step()
        recent.append(losses.detach())
        step += 1
        if step % 50 == 0:
            log.info(
                "step %d, %.1f min, mel, fine, pitch, voicing %s", step, elapsed, torch.stack(recent).mean(0).tolist()
            )
            recent.clear()
        if elapsed - kept > 5:
            kept = elapsed
            keep(codec)
    keep(codec)
