"""One utterance of the embedded voice, frame by frame: phonemes and a reference in, codes out."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from studio.engine.aligned_model import AlignedModel
from studio.engine.sampling import CounterDraws, draw
from studio.engine.text_encoder import TICKS_PER_FRAME


@dataclass(frozen=True, kw_only=True)
class FrameSampling:
    """Resolved sampling settings of one utterance."""

    temperature: float
    later_temperature: float
    """From the third codebook on."""
    top_k: int
    pace: float
    """Predicted durations are divided by this."""
    guidance: float
    """How far the logits are led away from those without the text (classifier-free guidance); 1 leaves them."""


class FrameGenerator:
    """The state of one utterance between two frames: alignment, key-value buffers, and the frame that comes next.

    `phonemes` are vocabulary indices; `reference` is codes `(num_codebooks, num_frames)`.
    """

    @torch.inference_mode()
    def __init__(
        self,
        model: AlignedModel,
        phonemes: list[int],
        reference: np.ndarray,
        sampling: FrameSampling,
        draws: CounterDraws,
    ) -> None:
        self._model, self._sampling, self._draws = model, sampling, draws
        prefix = torch.from_numpy(reference.T.astype(np.int64))[None]
        self.phonemes = torch.tensor([phonemes])
        """`(1, length)`."""
        features = model.text(self.phonemes)
        self.alignment = align(model.log_durations(features, prefix)[0], sampling.pace)[None]
        """The phoneme of each 10 ms tick, `(1, 8 * num_frames)`."""
        text = model.text.frames(features, self.alignment)
        self.num_frames = text.shape[1]
        # Two streams in step, the second without the text: the number of rows is the take's own, whoever else speaks.
        self._text = text if sampling.guidance == 1.0 else torch.cat([text, torch.zeros_like(text)])
        batch, device, count = len(self._text), text.device, prefix.shape[1]
        self._caches = model.start(count + self.num_frames, device, batch)
        rows = model.reference_rows(prefix).expand(batch, -1, -1)
        model.prefill(rows, model.reference_positions(count, device), self._caches)
        self._local_caches = model.local.start(device, batch)
        self._previous = model.begin[None, None]
        self._frame = 0

    @property
    def finished(self) -> bool:
        return self._frame == self.num_frames

    @torch.inference_mode()
    def next_frame(self) -> Tensor:
        """The codes `(num_codebooks,)` of the next frame."""
        row = self._previous + self._text[:, self._frame : self._frame + 1]
        codes = self._draw_codes(self._model.step(row, self._frame, self._caches))
        self._previous = self._model.embed(codes[None, None])
        self._frame += 1
        return codes

    def _draw_codes(self, hidden: Tensor) -> Tensor:
        local, count = self._model.local, self._model.config.num_codebooks
        for cache in self._local_caches:
            cache.length = 0
        uniforms = self._draws.frame(self._frame, count)
        row, codes = local.first_row(hidden), []
        for codebook in range(count):
            temperature = self._sampling.temperature if codebook < 2 else self._sampling.later_temperature
            logits = self._guided(local.step(row, codebook, self._local_caches))
            codes.append(draw(logits, uniforms[codebook], temperature=temperature, top_k=self._sampling.top_k))
            if codebook + 1 < count:
                row = local.next_row(codes[-1], codebook)
        return torch.tensor(codes)

    def _guided(self, logits: Tensor) -> Tensor:
        """`(batch, codebook_size)` to `(codebook_size,)`."""
        if len(logits) == 1:
            return logits[0]
        spoken, unspoken = logits
        return unspoken + self._sampling.guidance * (spoken - unspoken)


LONGEST_PHONEME = 100
"""Ticks, one second: whatever a strange reference makes the predictor say, an utterance has a bound."""


def align(log_durations: Tensor, pace: float) -> Tensor:
    """Names the phoneme of every 10 ms tick, `(8 * num_frames,)`; the last phoneme fills the last frame.

    `log_durations` `(length,)` are `log(1 + ticks)`. The running sum is rounded, so that rounding does not add up; at
    least one frame comes out.
    """
    ticks = (log_durations.exp() - 1).clamp(0, LONGEST_PHONEME) / pace
    ends = ticks.cumsum(0).round().long()
    counts = torch.diff(ends, prepend=torch.zeros(1, dtype=torch.long))
    alignment = torch.repeat_interleave(torch.arange(len(counts)), counts)
    missing = max(TICKS_PER_FRAME - len(alignment), -len(alignment) % TICKS_PER_FRAME)
    return torch.cat([alignment, torch.full((missing,), len(counts) - 1)])
