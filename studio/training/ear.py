"""A small recogniser of phonemes that the decoder is trained to please, besides the spectrum: differences that a
spectrum's mean hardly shows are those by which words are told apart.

It is trained on the teachers' speech and its alignment, so it is no recogniser that the voice is evaluated by.
"""

import logging
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.harmonic_signal import HOP, mel_filters
from studio.engine.text_encoder import TICKS_PER_FRAME
from studio.training.pieces import DecoderTraining, Pieces, Recording, cut

log = logging.getLogger(__name__)

_WINDOW, _BANDS, _FLOOR = 512, 64, 1e-3
_WIDTH, _KERNEL = 192, 5
_DILATIONS = (1, 1, 2, 3)


@dataclass(frozen=True, kw_only=True)
class EarTraining:
    """Options of one run."""

    steps: int = 2800
    """Six minutes of one core."""
    learning_rate: float = 1e-3
    warm_up_steps: int = 50
    pieces: DecoderTraining = field(
        default_factory=lambda: DecoderTraining(minutes=0, batch_size=24, context=0, drawn=0.0)
    )
    """How the recordings are cut."""
    seed: int = 0


class PhonemeEar(nn.Module):
    """Log-mel every 10 ms to the phoneme that is heard, by convolutions over 170 ms."""

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.register_buffer("filters", mel_filters(_WINDOW, _BANDS), persistent=False)
        self.register_buffer("window", torch.hann_window(_WINDOW), persistent=False)
        widths = (_BANDS, *(_WIDTH for _ in _DILATIONS))
        self.layers = nn.ModuleList(
            nn.Conv1d(before, after, _KERNEL, padding=_KERNEL // 2 * dilation, dilation=dilation)
            for before, after, dilation in zip(widths, widths[1:], _DILATIONS, strict=False)
        )
        self.norms = nn.ModuleList(nn.GroupNorm(1, _WIDTH) for _ in _DILATIONS)
        self.head = nn.Conv1d(_WIDTH, vocabulary_size, 1)

    def forward(self, samples: Tensor) -> tuple[list[Tensor], Tensor]:
        """`(batch, samples)`, a multiple of 240, to the outputs of each layer `(batch, width, ticks)` and the logits
        `(batch, vocabulary_size, ticks)`."""
        spectrum = torch.stft(samples, _WINDOW, HOP, window=self.get_buffer("window"), return_complex=True)
        mel = self.get_buffer("filters") @ (spectrum.abs()[..., :-1] + 1e-7)
        hidden = torch.log(mel.clamp(min=_FLOOR)) + 2
        outputs = []
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            inner = norm(functional.gelu(layer(hidden)))
            hidden = inner if number == 0 else hidden + inner
            outputs.append(hidden)
        return outputs, self.head(hidden)


def wanted_phonemes(pieces: Pieces) -> Tensor:
    """The phoneme of each judged tick, `(batch, ticks)`."""
    ticks = pieces.pitch.shape[1]
    end = pieces.alignment.shape[1] - TICKS_PER_FRAME
    return pieces.phonemes.gather(1, pieces.alignment[:, end - ticks : end])


def ear_losses(ear: PhonemeEar, heard: Tensor, pieces: Pieces) -> Tensor:
    """Of decoded samples `heard`: nats of the phonemes that should be heard, and how far the ear's layers are from what
    the true samples make of them, relative to their size, `(2,)`."""
    outputs, logits = ear(heard)
    with torch.no_grad():
        wanted, _ = ear(pieces.samples)
    apart = [(one - other).abs().mean() / other.abs().mean() for one, other in zip(outputs, wanted, strict=True)]
    return torch.stack([functional.cross_entropy(logits, wanted_phonemes(pieces)), torch.stack(apart).mean()])


def train_ear(
    recordings: list[Recording],
    vocabulary_size: int,
    options: EarTraining | None = None,
) -> PhonemeEar:
    """A new ear, trained on true samples at levels of -10 to +6 dB."""
    options = options or EarTraining()
    torch.manual_seed(options.seed)
    ear = PhonemeEar(vocabulary_size)
    random, generator = np.random.default_rng(options.seed), torch.Generator().manual_seed(options.seed)
    optimiser = torch.optim.AdamW(ear.parameters(), lr=options.learning_rate, weight_decay=0.01)
    recent = []
    for step in range(options.steps):
        rate = options.learning_rate * min(1, (step + 1) / options.warm_up_steps)
        optimiser.param_groups[0]["lr"] = rate * max(0.05, 1 - step / options.steps)
        pieces = cut(recordings, options.pieces, random)
        gain = 10 ** (torch.empty(len(pieces.samples), 1).uniform_(-10, 6, generator=generator) / 20)
        _, logits = ear(pieces.samples * gain)
        wanted = wanted_phonemes(pieces)
        loss = functional.cross_entropy(logits, wanted)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        recent.append([loss.item(), float((logits.argmax(1) == wanted).float().mean())])
        if (step + 1) % 100 == 0:
            log.info("ear, step %d, nats and share that is right %s", step + 1, np.mean(recent, axis=0))
            recent.clear()
    return ear.eval().requires_grad_(False)
