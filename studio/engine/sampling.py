"""How codes are drawn: sampling options, and random numbers that depend on where they are used and on nothing else."""

from dataclasses import dataclass

import numpy as np
import torch

from studio.errors import SettingError

MAX_SEED = 2**32 - 1


@dataclass(frozen=True, kw_only=True)
class SamplingOptions:
    """What a user may set for one take. `None` means the engine's own recommendation."""

    seed: int
    speed: float = 1.0
    """Speaking rate: 2.0 is twice as fast."""
    temperature: float | None = None
    top_k: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.seed <= MAX_SEED:
            raise SettingError("seed", self.seed, f"choose a whole number from 0 to {MAX_SEED}.")
        if not 0.5 <= self.speed <= 2.0:
            raise SettingError("speed", self.speed, "choose a number from 0.5 to 2.")
        if self.temperature is not None and not 0.0 <= self.temperature <= 2.0:
            raise SettingError("temperature", self.temperature, "choose a number from 0 to 2.")
        if self.top_k is not None and self.top_k < 1:
            raise SettingError("top_k", self.top_k, "choose 1 or more.")


class CounterDraws:
    """Uniform numbers keyed by (seed, utterance, attempt, frame, position).

    Philox is counter-based: the key names the take and the counter names the place, so neighbours, order of arrival and
    the number of draws made before cannot change a draw.
    """

    def __init__(self, seed: int, utterance: int, attempt: int = 0) -> None:
        self._key = np.array([seed, (utterance << 16) | attempt], dtype=np.uint64)

    def frame(self, frame: int, count: int) -> np.ndarray:
        """`count` float64 numbers in [0, 1) for the positions of one frame."""
        generator = np.random.Generator(np.random.Philox(key=self._key, counter=[0, frame, 1, 0]))
        return generator.random(count)

    def noise(self, start: int, count: int, block: int = 240) -> np.ndarray:
        """White Gaussian noise for samples `start` to `start + count`, float32; `start` and `count` are multiples of
        `block`, so that every cut of a stream gives equal samples."""
        blocks = range(start // block, (start + count) // block)
        return np.concatenate([self._noise_block(index, block) for index in blocks])

    def _noise_block(self, index: int, block: int) -> np.ndarray:
        generator = np.random.Generator(np.random.Philox(key=self._key, counter=[0, index, 2, 0]))
        return generator.standard_normal(block, dtype=np.float32)


def draw(logits: torch.Tensor, uniform: float, *, temperature: float, top_k: int) -> int:
    """One index from `logits` `(vocabulary,)`: the `top_k` best at `temperature`, by inversion of their cumulative
    distribution; temperature 0 takes the best."""
    if temperature == 0.0:
        return int(logits.argmax())
    values, indices = logits.float().topk(min(top_k, logits.shape[-1]))
    cumulative = torch.softmax(values.double() / temperature, dim=-1).cumsum(dim=-1)
    position = int(torch.searchsorted(cumulative, uniform * float(cumulative[-1]), right=True))
    return int(indices[min(position, len(indices) - 1)])
