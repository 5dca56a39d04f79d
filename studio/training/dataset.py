"""What the language model is trained on: utterances as codes, phonemes and their alignment, by speaker."""

from collections import defaultdict
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import torch
from torch import Tensor

from studio.engine.text_encoder import TICKS_PER_FRAME


@dataclass(frozen=True, eq=False)
class Example:
    """One utterance of one speaker."""

    speaker: str
    text: str
    phonemes: Tensor
    """Vocabulary indices `(length,)`."""
    codes: Tensor
    """`(num_frames, codebooks)`, int16."""
    alignment: Tensor
    """The phoneme of each 10 ms tick, `(8 * num_frames,)`."""


def stretch(alignment: np.ndarray, ratio: float, num_frames: int) -> np.ndarray:
    """Of `alignment` `(ticks,)` that of the same utterance played `ratio` times as fast, `(8 * num_frames,)`."""
    ticks = (np.arange(num_frames * TICKS_PER_FRAME) * ratio).astype(np.int64)
    return alignment[np.minimum(ticks, len(alignment) - 1)]


class Speakers:
    """The utterances of each speaker, to cut references from."""

    def __init__(self, examples: list[Example]) -> None:
        self._utterances: defaultdict[str, list[Example]] = defaultdict(list)
        for example in examples:
            self._utterances[example.speaker].append(example)

    def reference(self, example: Example, frames: int, random: np.random.Generator) -> Tensor:
        """Codes `(frames or fewer, codebooks)` of the speaker of `example`, from other utterances where there are any.

        Utterances are joined until they are long enough; the piece begins anywhere in the first one.
        """
        others = [each for each in self._utterances[example.speaker] if each.text != example.text] or [example]
        first = others[random.integers(len(others))].codes
        start = int(random.integers(max(1, len(first) - min(frames, len(first)) + 1)))
        pieces = [first[start:]]
        for _ in range(8):
            if sum(map(len, pieces)) >= frames:
                break
            pieces.append(others[random.integers(len(others))].codes)
        return torch.cat(pieces)[:frames]


def hold_out(examples: list[Example], texts: int = 24) -> tuple[list[Example], list[Example]]:
    """What is trained on and what is not: all examples of some texts, the first ones in the order of their digests,
    which is the same whatever else is in the data."""
    order = sorted({each.text for each in examples}, key=lambda text: sha256(text.encode()).digest())
    held = frozenset(order[:texts])
    return [each for each in examples if each.text not in held], [each for each in examples if each.text in held]
