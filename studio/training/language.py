"""Training of the language model: teacher-forced losses, batches with cropped references, and the loop."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from studio.engine.aligned_model import AlignedModel
from studio.engine.text_encoder import TICKS_PER_FRAME
from studio.training.dataset import Example, Speakers

log = logging.getLogger(__name__)

CODEBOOK_WEIGHTS = (1.0, 0.9, 0.7, 0.5, 0.3, 0.2, 0.15, 0.1)
"""How much each codebook's loss counts: the later ones are mostly noise."""
_NONE = -1


@dataclass(frozen=True, kw_only=True)
class LanguageTraining:
    """Options of one run. `minutes` of wall time decide its length and the learning rate's way down."""

    minutes: float
    batch_size: int = 12
    learning_rate: float = 5e-4
    warm_up_steps: int = 100
    reference_frames: tuple[int, int] = (12, 125)
    exposures: tuple[float, ...] = (0.0, 0.1, 0.25)
    """Shares of the input codes that random ones replace, as the model's own mistakes will."""
    own_mistakes: float = 0.3
    """Of every third batch, the share of the frames that the model's own draws replace."""
    text_dropout: float = 0.1
    """Share of the utterances whose text is hidden: what the model then says is what guidance leads away from."""
    averaging: float = 0.999
    """Decay of the moving average of the weights, which is what is kept."""
    seed: int = 0


@dataclass(frozen=True)
class Batch:
    """Examples padded to one length; -1 where there is nothing."""

    reference: Tensor
    """`(batch, reference frames, num_codebooks)`, padded on the left."""
    phonemes: Tensor
    """`(batch, length)`."""
    alignment: Tensor
    """`(batch, 8 * num_frames)`: the phoneme of each 10 ms tick."""
    codes: Tensor
    """`(batch, num_frames, num_codebooks)`."""
    ticks: Tensor
    """`(batch, length)`: ticks of each phoneme."""


@dataclass(frozen=True)
class Losses:
    """`codebooks` `(num_codebooks,)` in nats a frame, `durations` a smooth L1 in the log domain."""

    codebooks: Tensor
    durations: Tensor

    def total(self) -> Tensor:
        weights = torch.tensor(CODEBOOK_WEIGHTS[: len(self.codebooks)])
        return (self.codebooks * weights / weights.mean()).mean() + self.durations


def collate(examples: list[Example], references: list[Tensor], num_codebooks: int) -> Batch:
    """Pads examples and the references `(num_frames, codebooks)` that go with them."""
    count, frames = len(examples), max(len(each.codes) for each in examples)
    length, prefix = max(len(each.phonemes) for each in examples), max(len(each) for each in references)
    reference = torch.full((count, prefix, num_codebooks), _NONE)
    phonemes = torch.full((count, length), _NONE)
    codes = torch.full((count, frames, num_codebooks), _NONE)
    alignment = torch.zeros(count, TICKS_PER_FRAME * frames, dtype=torch.long)
    ticks = torch.zeros(count, length)
    for row, (example, clip) in enumerate(zip(examples, references, strict=True)):
        own = len(example.alignment)
        reference[row, prefix - len(clip) :] = clip[:, :num_codebooks].long()
        phonemes[row, : len(example.phonemes)] = example.phonemes
        codes[row, : len(example.codes)] = example.codes[:, :num_codebooks].long()
        alignment[row, :own] = example.alignment
        alignment[row, own:] = example.alignment[-1]
        ticks[row, : len(example.phonemes)] = torch.bincount(example.alignment, minlength=len(example.phonemes)).float()
    return Batch(reference, phonemes, alignment, codes, ticks)


def teacher_forced(model: AlignedModel, batch: Batch, seen: Tensor, spoken: Tensor | None = None) -> Losses:
    """Losses of a batch whose past codes are shown as `seen`, shaped like `batch.codes`; where `spoken` `(batch,)` is
    0 the text is hidden."""
    features = model.text(batch.phonemes)
    logits = _logits(model, batch, features, seen, spoken)
    truth = batch.codes[batch.codes[:, :, 0] >= 0]
    nats = functional.cross_entropy(logits.flatten(0, 1), truth.flatten(), reduction="none")
    return Losses(nats.view(truth.shape).mean(0), _duration_loss(model, batch, features))


def _logits(model: AlignedModel, batch: Batch, features: Tensor, seen: Tensor, spoken: Tensor | None) -> Tensor:
    """`(frames that are there, num_codebooks, codebook_size)`."""
    return model.local(hidden_states(model, batch, features, seen, spoken), batch.codes[batch.codes[:, :, 0] >= 0])


def hidden_states(model: AlignedModel, batch: Batch, features: Tensor, seen: Tensor, spoken: Tensor | None) -> Tensor:
    """The backbone's `(frames that are there, width)`, given the past as `seen`."""
    count, frames, _ = batch.codes.shape
    present, reference_present = batch.codes[:, :, 0] >= 0, batch.reference[:, :, 0] >= 0
    text = model.text.frames(features, batch.alignment)
    if spoken is not None:
        text = text * spoken[:, None, None]
    shifted = torch.cat([model.begin.expand(count, 1, -1), model.embed(seen)[:, :-1]], dim=1)
    rows = torch.cat([model.reference_rows(batch.reference), shifted + text], dim=1)
    prefix = batch.reference.shape[1]
    positions = torch.cat([model.reference_positions(prefix, rows.device), torch.arange(frames)])
    keys = torch.cat([reference_present, present], dim=1)[:, None]
    causal = torch.ones(prefix + frames, prefix + frames, dtype=torch.bool).tril()
    mask = (causal & keys) | torch.eye(prefix + frames, dtype=torch.bool)
    return model.backbone(rows, positions, mask[:, None])[:, prefix:][present]


@torch.no_grad()
def mistaken(model: AlignedModel, batch: Batch, share: float, generator: torch.Generator) -> Tensor:
    """The codes of `batch` with a `share` of the frames as the model draws them, given the true past."""
    present = batch.codes[:, :, 0] >= 0
    logits = _logits(model, batch, model.text(batch.phonemes), batch.codes, None)
    drawn = torch.multinomial(functional.softmax(logits, -1).flatten(0, 1), 1, generator=generator)
    own = batch.codes.clone()
    own[present] = drawn.view(logits.shape[:2])
    chosen = torch.rand(present.shape, generator=generator) < share
    return torch.where(chosen[..., None], own, batch.codes)


def _duration_loss(model: AlignedModel, batch: Batch, features: Tensor) -> Tensor:
    """The text features are not trained through durations, as in the prototype: they serve the sound."""
    present = batch.phonemes >= 0
    predicted = model.log_durations(features.detach(), batch.reference)
    error = functional.smooth_l1_loss(predicted, torch.log1p(batch.ticks), reduction="none")
    return (error * present).sum() / present.sum()


def expose(codes: Tensor, share: float, codebook_size: int, generator: torch.Generator) -> Tensor:
    """Replaces a `share` of the codes that are there by random ones."""
    chosen = (torch.rand(codes.shape, generator=generator) < share) & (codes >= 0)
    return torch.where(chosen, torch.randint(0, codebook_size, codes.shape, generator=generator), codes)


class Batches:
    """Endless batches of examples of like length, with references cut from other utterances of the same speaker."""

    def __init__(self, examples: list[Example], options: LanguageTraining, num_codebooks: int) -> None:
        if len(examples) < options.batch_size:
            raise ValueError(f"{len(examples)} examples do not fill a batch of {options.batch_size}")
        self._examples, self._options, self._num_codebooks = examples, options, num_codebooks
        self._speakers = Speakers(examples)
        self._random = np.random.default_rng(options.seed)
        self._queue: list[list[Example]] = []

    def next(self) -> Batch:
        if not self._queue:
            self._queue = self._pass()
        examples = self._queue.pop()
        low, high = self._options.reference_frames
        # Short references are drawn more often than long ones: they are harder, and cheaper.
        frames = int(low * (high / low) ** self._random.random())
        references = [self._speakers.reference(each, frames, self._random) for each in examples]
        return collate(examples, references, self._num_codebooks)

    def _pass(self) -> list[list[Example]]:
        """One pass over the data; lengths are blurred, so that batches differ from pass to pass."""
        size = self._options.batch_size
        blurred = [len(each.codes) + 8 * self._random.random() for each in self._examples]
        order = [self._examples[index] for index in np.argsort(blurred)]
        batches = [order[start : start + size] for start in range(0, len(order) - size + 1, size)]
        self._random.shuffle(batches)  # type: ignore[arg-type]
        return batches


def train(
    model: AlignedModel,
    examples: list[Example],
    held_out: list[Example],
    options: LanguageTraining,
    keep: Callable[[AlignedModel], None],
) -> None:
    """Trains `model` in place; `keep` is called with the averaged model every five minutes and at the end."""
    generator = torch.Generator().manual_seed(options.seed)
    batches = Batches(examples, options, model.config.num_codebooks)
    check = Batches(held_out, options, model.config.num_codebooks).next()
    averaging = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(options.averaging))
    averaged = cast(AlignedModel, averaging.module)
    optimiser = torch.optim.AdamW(model.parameters(), lr=options.learning_rate, betas=(0.9, 0.95), weight_decay=0.1)
    started, kept, step, recent = time.monotonic(), 0.0, 0, []
    while (elapsed := (time.monotonic() - started) / 60) < options.minutes:
        rate = options.learning_rate * min(1, (step + 1) / options.warm_up_steps)
        optimiser.param_groups[0]["lr"] = rate * max(0.02, 1 - elapsed / options.minutes)
        recent.append(optimise(model, batches.next(), optimiser, options, generator))
        averaging.update_parameters(model)
        step += 1
        if step % 50 == 0:
            log.info("step %d, %.1f min, trained %s", step, elapsed, _figures(recent[-50:]))
            recent.clear()
        if elapsed - kept > 5:
            kept = elapsed
            log.info("held out %s", _figures([held_out_losses(averaged, check)]))
            keep(averaged)
    keep(averaged)


def optimise(
    model: AlignedModel,
    batch: Batch,
    optimiser: torch.optim.Optimizer,
    options: LanguageTraining,
    generator: torch.Generator,
) -> Losses:
    """One step; returns its losses."""
    model.train()
    seen = _seen(model, batch, options, generator)
    spoken = (torch.rand(len(batch.codes), generator=generator) >= options.text_dropout).float()
    losses = teacher_forced(model, batch, seen, spoken)
    optimiser.zero_grad()
    losses.total().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    return Losses(losses.codebooks.detach(), losses.durations.detach())


def _seen(model: AlignedModel, batch: Batch, options: LanguageTraining, generator: torch.Generator) -> Tensor:
    """The past as the model is shown it: with random codes in it, or with its own draws."""
    if int(torch.randint(3, (), generator=generator)) == 0:
        return mistaken(model, batch, options.own_mistakes, generator)
    share = options.exposures[int(torch.randint(len(options.exposures), (), generator=generator))]
    return expose(batch.codes, share, model.config.codebook_size, generator)


@torch.no_grad()
def held_out_losses(model: AlignedModel, batch: Batch) -> Losses:
    model.eval()
    return teacher_forced(model, batch, batch.codes)


def _figures(losses: list[Losses]) -> str:
    codebooks = torch.stack([each.codebooks for each in losses]).mean(0)
    durations = torch.stack([each.durations for each in losses]).mean()
    return " ".join(f"{value:.3f}" for value in codebooks.tolist()) + f" durations {durations:.3f}"
