"""The frame loop: requests side by side in slots, or one alone as a generator of frames."""

from collections.abc import Generator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from studio.engine.frame_sampling import Pick, SpeechSampling, choose, invert
from studio.engine.speech_model import SpeechModel

_CAPACITY_STEP = 64


class Draws(Protocol):
    """Uniform numbers by their place: `CounterDraws` of one request."""

    def frame(self, frame: int, count: int) -> np.ndarray:
        """`count` float64 numbers in [0, 1) for frame number `frame`."""
        ...


class SpeechSlots:
    """Requests that advance together, one frame a step, each in a slot of its own.

    A step has the shape of all slots whether they are taken or not, and each slot sees only its own rows, history and
    uniform numbers: what a request says depends neither on the slot it got nor on who is beside it. One frame is
    `draw`, then `advance`; between them its codes may already be handed on.
    """

    def __init__(
        self,
        model: SpeechModel,
        sampling: SpeechSampling,
        *,
        slots: int,
        capacity: int,
        num_codebooks: int | None = None,
        pick: Pick = invert,
    ) -> None:
        """`capacity`: rows of prompt and speech that a slot can hold; `num_codebooks`: how many are drawn, the model's
        own number by default, the others stay pads."""
        config = model.config
        self.num_codebooks = num_codebooks or config.num_codebooks
        if not 1 <= self.num_codebooks <= config.num_codebooks:
            raise ValueError(f"{num_codebooks} codebooks of {config.num_codebooks} cannot be drawn")
        if capacity > config.longest:
            raise ValueError(f"{capacity} rows are more than the {config.longest} that the model was made for")
        self._model, self._sampling, self._pick = model, sampling, pick
        self._cache = model.transformer.start(slots, -(-capacity // _CAPACITY_STEP) * _CAPACITY_STEP)
        self._depth = model.start_depth(slots)
        device = self._cache.lengths.device
        self._hidden = self._cache.new_rows(config.backbone.width)
        self._rows = torch.full((slots, 1 + config.num_codebooks), config.code_pad, device=device)
        self._rows[:, 0] = config.tokens.assistant_slot
        self._seen = torch.zeros(slots, self.num_codebooks, config.codebook_size, dtype=torch.bool, device=device)
        self._uniforms = torch.zeros(slots, 1 + self.num_codebooks, dtype=torch.float64, device=device)
        self._draws: list[Draws | None] = [None] * slots
        self._frames = [0] * slots
        self._room = [0] * slots

    @torch.inference_mode()
    def open(self, slot: int, prompt: np.ndarray, draws: Draws) -> None:
        """Puts the rows of a prompt, int64 `(num_rows, 1 + num_codebooks)`, into a slot that is free."""
        assert self._draws[slot] is None, "the slot is taken"
        rows = torch.from_numpy(prompt).to(self._rows.device)
        self._hidden[slot] = self._model.transformer.prefill(self._model.embed_rows(rows), self._cache, slot)[-1]
        self._seen[slot] = False
        self._draws[slot], self._frames[slot], self._room[slot] = draws, 0, self._cache.capacity - len(prompt)

    @torch.inference_mode()
    def draw(self) -> tuple[Tensor, list[bool]]:
        """The next frame of every slot, int64 `(slots, num_codebooks)`, and whether its speech has ended before that
        frame, which then means nothing; so do the codes of free slots.

        Raises FloatingPointError where the model's numbers have left the range of their dtype.
        """
        self._fetch_uniforms()
        stops = self._draw_frame().tolist()
        taken = [draws is not None for draws in self._draws]
        if any(stop < 0 and here for stop, here in zip(stops, taken, strict=True)):
            raise FloatingPointError("the speech model computed numbers that are not finite; float32 has a wider range")
        self._frames = [frame + 1 for frame in self._frames]
        codes = self._rows[:, 1 : 1 + self.num_codebooks]
        return codes.clone(), [here and stop == 1 for stop, here in zip(stops, taken, strict=True)]

    @torch.inference_mode()
    def advance(self) -> None:
        """Feeds the drawn frames back, so that the next ones can be drawn."""
        for draws, frames, room in zip(self._draws, self._frames, self._room, strict=True):
            assert draws is None or frames <= room, "the slot is full"
        self._hidden.copy_(self._model.transformer.step(self._model.embed_rows(self._rows), self._cache))

    @torch.inference_mode()
    def close(self, slot: int) -> None:
        """Frees a slot."""
        self._draws[slot] = None
        self._cache.clear(slot)

    def _fetch_uniforms(self) -> None:
        uniforms = np.zeros(self._uniforms.shape)
        for slot, draws in enumerate(self._draws):
            if draws is not None:
                uniforms[slot] = draws.frame(self._frames[slot], uniforms.shape[1])
        self._uniforms.copy_(torch.from_numpy(uniforms))

    def _draw_frame(self) -> Tensor:
        """Writes the codes into the rows; returns for each slot 0 to go on, 1 to stop, -1 for numbers that are none."""
        model, sampling = self._model, self._sampling
        hidden = model.local_transformer.step(self._hidden, 0, self._depth)
        stops = choose(model.stop_logits(hidden), sampling.stop, self._uniforms[:, 0], pick=self._pick)
        stops = stops.masked_fill(~torch.isfinite(hidden).all(-1), -1)
        hidden = model.first_code_state(hidden, self._depth)
        for codebook in range(self.num_codebooks):
            logits, uniforms = model.code_logits(hidden, codebook), self._uniforms[:, 1 + codebook]
            codes = choose(logits, sampling.codes, uniforms, seen=self._seen[:, codebook], pick=self._pick)
            self._rows[:, 1 + codebook] = codes
            if codebook + 1 < self.num_codebooks:
                hidden = model.next_code_state(codes, codebook, self._depth)
        self._seen.scatter_(2, self._rows[:, 1 : 1 + self.num_codebooks, None], True)
        return stops


def speech_frames(
    model: SpeechModel,
    prompt: np.ndarray,
    *,
    budget: int,
    sampling: SpeechSampling,
    draws: Draws,
    num_codebooks: int | None = None,
    pick: Pick = invert,
) -> Generator[Tensor, None, None]:
    """One request alone: frames of codes, int64 `(num_codebooks,)`, until the model stops or `budget` frames are out.

    `prompt`: rows as `SpeechSlots.open` takes them. Closing the generator stops the model within a frame.
    """
    capacity = len(prompt) + budget
    slots = SpeechSlots(model, sampling, slots=1, capacity=capacity, num_codebooks=num_codebooks, pick=pick)
    slots.open(0, prompt, draws)
    for frame in range(budget):
        if frame:
            slots.advance()
        codes, stopped = slots.draw()
        if stopped[0]:
            return
        yield codes[0]
