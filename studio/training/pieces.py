"""What the decoder is trained on, and how it is cut: recordings with their sound, pitch, codes and text."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from studio.engine.harmonic_codec import FRAME, HOPS_PER_FRAME
from studio.engine.text_encoder import TICKS_PER_FRAME
from studio.training.dataset import Example


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
    hidden_text: float = 0.1
    """Share of the pieces of which the decoder is not told what is said."""
    drawn: float = 0.5
    """Share of the pieces whose codes are the language model's, of recordings that have such."""
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Recording:
    """One utterance: int16 samples `(1920 * num_frames,)`, pitch in hertz or 0 `(8 * num_frames,)`, and its codes and
    text."""

    samples: np.ndarray
    pitch: np.ndarray
    example: Example
    drawn: Tensor | None = None
    """Codes as the language model draws them, given the true past; shaped like the true ones."""


@dataclass(frozen=True)
class Pieces:
    """A batch: codes with context, and samples and pitch of the frames that are judged."""

    codes: Tensor
    """`(batch, num_codebooks, context + frames + 1)`: the last frame follows those that are judged; -1 where there is
    none."""
    samples: Tensor
    pitch: Tensor
    phonemes: Tensor
    """Of the whole utterances `(batch, length)`, -1 where there is none."""
    alignment: Tensor
    """The phoneme of each tick, for the frames of `codes`."""
    true: Tensor
    """`(batch,)`: 1 where the codes are the recording's own."""


def cut(recordings: list[Recording], options: DecoderTraining, random: np.random.Generator) -> Pieces:
    """Random pieces of random recordings; raises ValueError where all of them are too short."""
    long_enough = [each for each in recordings if len(each.example.codes) >= options.context + options.frames]
    if not long_enough:
        raise ValueError(f"no recording has the {options.context + options.frames} frames of a piece")
    codes, samples, pitch, phonemes, alignment, true = [], [], [], [], [], []
    for index in random.integers(len(long_enough), size=options.batch_size):
        recording = long_enough[index]
        example, drawn = recording.example, recording.drawn
        start = int(random.integers(len(example.codes) - options.context - options.frames + 1))
        first, end = start + options.context, start + options.context + options.frames
        shown = example.codes if drawn is None or random.random() >= options.drawn else drawn
        ahead = shown[start : end + 1].long().T
        missing = end + 1 - start - ahead.shape[1]
        ticks = example.alignment[start * TICKS_PER_FRAME : (end + 1) * TICKS_PER_FRAME]
        codes.append(functional.pad(ahead, (0, missing), value=-1))
        alignment.append(functional.pad(ticks, (0, missing * TICKS_PER_FRAME), value=int(ticks[-1])))
        phonemes.append(example.phonemes)
        true.append(float(shown is example.codes))
        samples.append(recording.samples[first * FRAME : end * FRAME].astype(np.float32) / 32768)
        pitch.append(recording.pitch[first * HOPS_PER_FRAME : end * HOPS_PER_FRAME].astype(np.float32))
    return Pieces(
        codes=torch.stack(codes),
        samples=torch.from_numpy(np.stack(samples)),
        pitch=torch.from_numpy(np.stack(pitch)),
        phonemes=nn.utils.rnn.pad_sequence(phonemes, batch_first=True, padding_value=-1),
        alignment=torch.stack(alignment),
        true=torch.tensor(true),
    )
