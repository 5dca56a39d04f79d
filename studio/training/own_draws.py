"""The codes that the language model draws where the past is true: such as the decoder will be given, for utterances of
which the sound is known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from studio.engine.aligned_model import AlignedModel
from studio.engine.checkpoints import Recommended
from studio.training.dataset import Speakers
from studio.training.language import Batch, collate, hidden_states
from studio.training.pieces import Recording

_BATCH = 12
_REFERENCE_FRAMES = (25, 100)


def with_draws(
    model: AlignedModel, recordings: Sequence[Recording], sampling: Recommended, seed: int = 0
) -> list[Recording]:
    """The recordings in their order, each with codes that `model` drew after other clips of the same speaker."""
    random, generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
    speakers = Speakers([each.example for each in recordings])
    made = list(recordings)
    order = np.argsort([len(each.example.codes) for each in recordings], kind="stable")
    for start in range(0, len(order), _BATCH):
        chosen = order[start : start + _BATCH]
        examples = [recordings[index].example for index in chosen]
        frames = int(random.integers(*_REFERENCE_FRAMES))
        references = [speakers.reference(each, frames, random) for each in examples]
        batch = collate(examples, references, model.config.num_codebooks)
        drawn = draw_codes(model, batch, sampling, generator)
        for index, example, codes in zip(chosen, examples, drawn, strict=True):
            made[index] = replace(recordings[index], drawn=codes[: len(example.codes)])
    return made


@torch.inference_mode()
def draw_codes(model: AlignedModel, batch: Batch, sampling: Recommended, generator: torch.Generator) -> Tensor:
    """Codes shaped like `batch.codes`, int16, each frame drawn given the true frames before it."""
    present = batch.codes[:, :, 0] >= 0
    hidden = hidden_states(model, batch, model.text(batch.phonemes), batch.codes, None)
    count = model.config.num_codebooks
    drawn = torch.zeros(len(hidden), count, dtype=torch.long)
    for codebook in range(count):
        scale = 1.0 if codebook < 2 else sampling.later_scale
        best = model.local(hidden, drawn)[:, codebook].topk(sampling.top_k, dim=-1)
        shares = torch.softmax(best.values / (sampling.temperature * scale), dim=-1)
        drawn[:, codebook] = best.indices.gather(1, torch.multinomial(shares, 1, generator=generator))[:, 0]
    codes = torch.full_like(batch.codes, -1, dtype=torch.int16)
    codes[present] = drawn.to(torch.int16)
    return codes
