"""From the corpus to what is trained on: codes, phonemes and alignments, also of each utterance at other pitches.

A repitched utterance is another speaker for nothing: its codes are made anew, its alignment is the original's, scaled.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from studio.engine.harmonic_codec import FRAME, HarmonicCodec
from studio.text.phonemes import BREAKS, phonemes
from studio.training.aligner import Aligner, Spoken
from studio.training.corpus import Line, lines
from studio.training.dataset import Example, stretch
from studio.training.pieces import Recording
from studio.training.pitch import pitch_of
from studio.training.teachers import BUILT_IN, THROATS, Joe, change_joe, joe_ratio, repitch

_FITTED_ON = 440
"""Utterances that the aligner fits itself to."""
_WORST = 2
"""Per cent of the alignments that are left out, the least likely ones."""
_KOKORO_PITCHES = (0.86, 0.9, 0.94, 1.07, 1.13, 1.2)


@dataclass(frozen=True, eq=False)
class _Utterance:
    line: Line
    phonemes: tuple[str, ...]
    samples: np.ndarray
    mel: np.ndarray


@dataclass(frozen=True, eq=False)
class _Aligned:
    utterance: _Utterance
    phonemes: Tensor
    """Vocabulary indices `(length,)`."""
    alignment: np.ndarray
    """The phoneme of each tick."""


def prepare(folder: Path, codec: HarmonicCodec, vocabulary: Sequence[str]) -> list[Example]:
    """Every utterance of the corpus and its repitched copies, but for those with a phoneme outside `vocabulary`."""
    source = random.Random(0)  # noqa: S311
    return [
        _example(each, speaker, _as_speaker(each.utterance, speaker, ratio), ratio, codec)
        for each in _aligned(folder, codec, vocabulary)
        for speaker, ratio in _speakers(each.utterance.line.speaker, source)
    ]


def _aligned(folder: Path, codec: HarmonicCodec, vocabulary: Sequence[str]) -> list[_Aligned]:
    numbers = {phoneme: number for number, phoneme in enumerate(vocabulary)}
    utterances = (_utterance(line, folder, codec) for line in lines(folder))
    known = [each for each in utterances if numbers.keys() >= set(each.phonemes)]
    spoken = [Spoken(each.mel, each.phonemes) for each in known]
    source = random.Random(0)  # noqa: S311
    aligner = Aligner(source.sample(spoken, min(_FITTED_ON, len(spoken))), BREAKS)
    alignments = [aligner.align(each) for each in spoken]
    worst = np.percentile([each.score for each in alignments], _WORST)
    return [
        _Aligned(each, torch.tensor([numbers[phoneme] for phoneme in each.phonemes]), alignment.phonemes)
        for each, alignment in zip(known, alignments, strict=True)
        if alignment.score > worst
    ]


def recordings(folder: Path, codec: HarmonicCodec, vocabulary: Sequence[str], copies: int = 2) -> list[Recording]:
    """What the codec's decoder is trained on: samples with Praat's pitch, and codes and text as `prepare` has them,
    each utterance as it is and as `copies` others would say it."""
    source, made = random.Random(0), []  # noqa: S311
    for each in _aligned(folder, codec, vocabulary):
        own, *others = _speakers(each.utterance.line.speaker, source)
        for speaker, ratio in (own, *source.sample(others, min(copies, len(others)))):
            changed = _as_speaker(each.utterance, speaker, ratio)
            pcm = np.round(changed * 32767).astype(np.int16)
            made.append(Recording(pcm, pitch_of(changed), _example(each, speaker, changed, ratio, codec)))
    return made


def whole_frames(samples: np.ndarray) -> np.ndarray:
    """Filled up with silence to a multiple of 1,920 samples."""
    return np.pad(samples, (0, -len(samples) % FRAME))


@torch.inference_mode()
def encode(codec: HarmonicCodec, samples: np.ndarray) -> Tensor:
    """Codes `(num_frames, num_codebooks)`, int16."""
    return codec.encode(torch.from_numpy(samples)[None])[0].T.to(torch.int16)


@torch.inference_mode()
def _utterance(line: Line, folder: Path, codec: HarmonicCodec) -> _Utterance:
    samples = whole_frames(line.samples(folder))
    mel = codec.encoder.features(torch.from_numpy(samples)[None])[0, :, :80].numpy()
    return _Utterance(line, phonemes(line.text), samples, mel)


def _speakers(speaker: str, source: random.Random) -> list[tuple[str, float]]:
    """The speaker itself, and who it becomes when played faster by a ratio."""
    if speaker not in Joe.speakers:
        factor = source.choice(_KOKORO_PITCHES)
        return [(speaker, 1.0), (f"{speaker}x{factor}", factor)]
    wanted = [*(each.speaker for each in BUILT_IN), source.choice(list(THROATS))]
    others = [name for name in dict.fromkeys(wanted) if name != speaker]
    return [(speaker, 1.0), *((name, joe_ratio(speaker, name)) for name in others)]


def _as_speaker(utterance: _Utterance, speaker: str, ratio: float) -> np.ndarray:
    own, samples = utterance.line.speaker, utterance.samples
    if speaker != own:
        samples = change_joe(samples, own, speaker) if own in Joe.speakers else repitch(samples, ratio)
    return whole_frames(samples)


def _example(each: _Aligned, speaker: str, samples: np.ndarray, ratio: float, codec: HarmonicCodec) -> Example:
    return Example(
        speaker=speaker,
        text=each.utterance.line.text,
        phonemes=each.phonemes,
        codes=encode(codec, samples),
        alignment=torch.from_numpy(stretch(each.alignment, ratio, len(samples) // FRAME)),
    )
