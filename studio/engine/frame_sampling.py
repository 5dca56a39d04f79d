"""How one token is drawn from logits: repetition penalty, temperature, top-k, top-p, and a uniform number that comes
from outside. The filters are those of the released samplers, in their order; all of it is float32 or finer."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

Pick = Callable[[Tensor, Tensor], Tensor]
"""Probabilities `(slots, entries)` and uniform numbers in [0, 1) `(slots,)` to indices `(slots,)`."""


@dataclass(frozen=True, kw_only=True)
class HeadSampling:
    """How one head is drawn from."""

    temperature: float = 1.0
    """0 takes the best entry; nothing is filtered or drawn then."""
    top_k: int = 0
    """0, or as many as there are, keeps all."""
    top_p: float = 1.0
    """0 and 1 keep all, as in the released samplers."""
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        if self.temperature < 0 or self.top_k < 0 or not 0 <= self.top_p <= 1 or self.repetition_penalty <= 0:
            raise ValueError(f"{self} cannot be sampled")


@dataclass(frozen=True, kw_only=True)
class SpeechSampling:
    """How a frame is drawn: whether speech ends before it, and each of its codes."""

    stop: HeadSampling = HeadSampling(top_k=50)
    codes: HeadSampling


LOCAL_SAMPLING = SpeechSampling(codes=HeadSampling(temperature=1.7, top_k=25, top_p=0.8))
"""What the makers of Local v1.5 recommend."""
NANO_SAMPLING = SpeechSampling(codes=HeadSampling(temperature=0.8, top_k=25, top_p=0.95, repetition_penalty=1.2))
"""What the makers of Nano set in their service."""
GREEDY = SpeechSampling(stop=HeadSampling(temperature=0.0), codes=HeadSampling(temperature=0.0))


def penalised(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Logits `(..., entries)` in which each entry that `seen` (bool, the same shape) marks is less likely for a penalty
    above 1: scores below 0 times the penalty, others divided by it. How often an entry was seen does not matter."""
    return torch.where(seen, torch.where(logits < 0, logits * penalty, logits / penalty), logits)


def probabilities(logits: Tensor, sampling: HeadSampling) -> Tensor:
    """What is drawn from, float32 `(..., entries)`: logits over the temperature, what is below the k-th best left out
    (ties with it stay), then what the entries before it, best first, already make up more than `top_p` for (the best
    always stays)."""
    scores = logits.float() / sampling.temperature
    filters_rank, filters_share = 0 < sampling.top_k < scores.shape[-1], 0 < sampling.top_p < 1
    if not filters_rank and not filters_share:
        return scores.softmax(-1)
    ordered, places = scores.sort(dim=-1, descending=True)
    if filters_rank:
        ordered = ordered.masked_fill(ordered < ordered[..., sampling.top_k - 1, None], -torch.inf)
    if filters_share:
        before = functional.pad(ordered.softmax(-1).cumsum(-1)[..., :-1], (1, 0))
        ordered = ordered.masked_fill(before > sampling.top_p, -torch.inf)
    return torch.empty_like(scores).scatter_(-1, places, ordered.softmax(-1))


def invert(chances: Tensor, uniforms: Tensor) -> Tensor:
    """Indices `(slots,)`: where the running sum of `chances` `(slots, entries)`, in float64, first exceeds the uniform
    number's share of the whole. An entry without a chance is never taken."""
    sums = chances.double().cumsum(-1)
    total = sums[:, -1:]
    share = torch.minimum(uniforms[:, None] * total, torch.nextafter(total, torch.zeros_like(total)))
    # The bound is met only where chances are no numbers; who draws finds that out a moment later.
    return torch.searchsorted(sums, share, right=True)[:, 0].clamp(max=chances.shape[-1] - 1)


def choose(
    logits: Tensor, sampling: HeadSampling, uniforms: Tensor, *, seen: Tensor | None = None, pick: Pick = invert
) -> Tensor:
    """Indices `(slots,)` from `logits` `(slots, entries)`; `seen`, of the same shape, is what the penalty looks at."""
    if logits.device.type == "cpu" and pick is invert:
        return choose_in_rows(logits, sampling, uniforms, seen=seen)
    return choose_in_tensors(logits, sampling, uniforms, seen=seen, pick=pick)


def choose_in_tensors(
    logits: Tensor, sampling: HeadSampling, uniforms: Tensor, *, seen: Tensor | None = None, pick: Pick = invert
) -> Tensor:
    """As `choose`, for all slots at once and without asking a tensor for its value."""
    scores = logits.float()
    if seen is not None and sampling.repetition_penalty != 1.0:
        scores = penalised(scores, seen, sampling.repetition_penalty)
    if sampling.temperature == 0.0:
        return scores.argmax(-1)
    return pick(probabilities(scores, sampling), uniforms)


def choose_in_rows(logits: Tensor, sampling: HeadSampling, uniforms: Tensor, *, seen: Tensor | None = None) -> Tensor:
    """As `choose` on a CPU, slot by slot with numpy: a frame asks 17 times, and for a thousand numbers torch takes
    longer to begin than to compute. What is left out is left out first, so most steps see a few entries only."""
    rows, numbers = logits.float().numpy(), uniforms.tolist()
    marks = seen.numpy() if seen is not None and sampling.repetition_penalty != 1.0 else [None] * len(rows)
    with np.errstate(invalid="ignore"):
        return torch.tensor([_choose(*each, sampling) for each in zip(rows, marks, numbers, strict=True)])


def _choose(row: np.ndarray, seen: np.ndarray | None, uniform: float, sampling: HeadSampling) -> int:
    if seen is not None:
        row, penalty = row.copy(), np.float32(sampling.repetition_penalty)
        before = row[seen]
        row[seen] = np.where(before < 0, before * penalty, before / penalty)
    if sampling.temperature == 0.0:
        return int(row.argmax())
    row = row / np.float32(sampling.temperature)
    if 0 < sampling.top_k < len(row):
        (kept,) = np.nonzero(row >= np.partition(row, -sampling.top_k)[-sampling.top_k])
    else:
        kept = np.arange(len(row))
    # No number compares with what is no number: nothing is kept then, and who draws finds that out a moment later.
    if not len(kept):
        return 0
    chances = np.exp(row[kept] - row[kept].max())
    if 0 < sampling.top_p < 1:
        order = np.argsort(-chances, kind="stable")
        up_to = np.cumsum(chances[order] / chances.sum())
        chances[order[1:][up_to[:-1] > np.float32(sampling.top_p)]] = 0
    sums = chances.astype(np.float64).cumsum()
    share = min(uniform * sums[-1], np.nextafter(sums[-1], 0))
    return int(kept[min(np.searchsorted(sums, share, side="right"), len(kept) - 1)])
