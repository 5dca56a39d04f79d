"""One frame for all slots at once, in two halves over buffers that stay where they are: codes are drawn, then fed back.

Neither half asks a tensor for its value, so each can be recorded as a CUDA graph.
"""

import torch
from torch import Tensor

from studio.engine.frame_sampling import Pick, SpeechSampling, choose
from studio.engine.speech_model import SpeechModel

_CAPACITY_STEP = 64

GOES_ON, STOPS, NOT_FINITE = 0, 1, -1
"""What a frame's verdict may be."""


class FrameStep:
    """The state of `slots` requests, as tensors."""

    def __init__(
        self,
        model: SpeechModel,
        sampling: SpeechSampling,
        *,
        slots: int,
        capacity: int,
        num_codebooks: int,
        pick: Pick,
    ) -> None:
        config = model.config
        self._model, self._sampling, self._pick, self._count = model, sampling, pick, num_codebooks
        self.cache = model.transformer.start(slots, -(-capacity // _CAPACITY_STEP) * _CAPACITY_STEP)
        self._depth = model.start_depth(slots)
        self.device = self.cache.lengths.device
        self.hidden = self.cache.new_rows(config.backbone.width)
        """What the next frame is drawn from, `(slots, width)`."""
        self.rows = torch.full((slots, 1 + config.num_codebooks), config.code_pad, device=self.device)
        """The newest row of each slot: the slot token, then the codes that were drawn last."""
        self.rows[:, 0] = config.tokens.assistant_slot
        self.seen = torch.zeros(slots, num_codebooks, config.codebook_size, dtype=torch.bool, device=self.device)
        """What each slot has drawn so far."""
        self.uniforms = torch.zeros(slots, 1 + num_codebooks, dtype=torch.float64, device=self.device)
        """What the next frame is drawn with; filled from outside."""
        self.verdicts = torch.zeros(slots, dtype=torch.int64, device=self.device)
        """Of the newest frame of each slot: GOES_ON, STOPS, or NOT_FINITE."""

    @property
    def codes(self) -> Tensor:
        """The codes that were drawn last, `(slots, num_codebooks)`; a view."""
        return self.rows[:, 1 : 1 + self._count]

    def open(self, slot: int, rows: Tensor) -> None:
        """Puts the rows of a prompt into a slot and forgets what it has drawn."""
        model = self._model
        self.hidden[slot] = model.transformer.prefill(model.embed_rows(rows), self.cache, slot)[-1]
        self.seen[slot] = False

    def draw(self) -> None:
        """The first half: codes and verdicts from `hidden` and `uniforms`."""
        model, codes = self._model, self._sampling.codes
        hidden = model.local_transformer.step(self.hidden, 0, self._depth)
        stops = choose(model.stop_logits(hidden), self._sampling.stop, self.uniforms[:, 0], pick=self._pick)
        self.verdicts.copy_(stops.masked_fill(~torch.isfinite(hidden).all(-1), NOT_FINITE))
        hidden = model.first_code_state(hidden, self._depth)
        for codebook in range(self._count):
            logits, uniforms = model.code_logits(hidden, codebook), self.uniforms[:, 1 + codebook]
            drawn = choose(logits, codes, uniforms, seen=self.seen[:, codebook], pick=self._pick)
            self.rows[:, 1 + codebook] = drawn
            if codebook + 1 < self._count:
                hidden = model.next_code_state(drawn, codebook, self._depth)
        self.seen.scatter_(2, self.codes[..., None], True)

    def feed(self) -> None:
        """The second half: the drawn rows go through the backbone and give the next `hidden`."""
        model = self._model
        self.hidden.copy_(model.transformer.step(model.embed_rows(self.rows), self.cache))
