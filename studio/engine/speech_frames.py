"""The frame loop: requests side by side in slots, or one alone as a generator of frames."""

from collections.abc import Generator
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from studio.engine.frame_graph import Recorder, plain, recorded
from studio.engine.frame_sampling import Pick, SpeechSampling, invert
from studio.engine.frame_step import NOT_FINITE, STOPS, FrameStep
from studio.engine.speech_model import SpeechModel


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
        record: Recorder = recorded,
    ) -> None:
        """`capacity`: rows of prompt and speech that a slot can hold; `num_codebooks`: how many are drawn, the model's
        own number by default, the others stay pads. On a GPU the step is recorded here, which takes a moment and pays
        where the slots are used again and again; `record=plain` leaves it out."""
        config = model.config
        self.num_codebooks = num_codebooks or config.num_codebooks
        if not 1 <= self.num_codebooks <= config.num_codebooks:
            raise ValueError(f"{num_codebooks} codebooks of {config.num_codebooks} cannot be drawn")
        if capacity > config.longest:
            raise ValueError(f"{capacity} rows are more than the {config.longest} that the model was made for")
        self._step = FrameStep(
            model, sampling, slots=slots, capacity=capacity, num_codebooks=self.num_codebooks, pick=pick
        )
        self._draws: list[Draws | None] = [None] * slots
        self._frames = [0] * slots
        self._room = [0] * slots
        # While every slot is free nothing grows, so the calls before a recording leave no trace.
        self._draw_frame, self._feed = (record(half, self._step.device) for half in (self._step.draw, self._step.feed))

    @property
    def capacity(self) -> int:
        """Rows of prompt and speech that a slot can hold."""
        return self._step.cache.capacity

    @torch.inference_mode()
    def open(self, slot: int, prompt: np.ndarray, draws: Draws) -> None:
        """Puts the rows of a prompt, int64 `(num_rows, 1 + num_codebooks)`, into a slot that is free."""
        assert self._draws[slot] is None, "the slot is taken"
        self._step.open(slot, torch.from_numpy(prompt).to(self._step.device))
        self._draws[slot], self._frames[slot], self._room[slot] = draws, 0, self.capacity - len(prompt)

    @torch.inference_mode()
    def draw(self) -> tuple[Tensor, list[bool]]:
        """The next frame of every slot, int64 `(slots, num_codebooks)`, and whether its speech has ended before that
        frame, which then means nothing; so do the codes of free slots.

        Raises FloatingPointError where the model's numbers have left the range of their dtype.
        """
        self._fetch_uniforms()
        self._draw_frame()
        verdicts = self._step.verdicts.tolist()
        taken = [draws is not None for draws in self._draws]
        if any(verdict == NOT_FINITE and here for verdict, here in zip(verdicts, taken, strict=True)):
            raise FloatingPointError("the speech model computed numbers that are not finite; float32 has a wider range")
        self._frames = [frame + 1 for frame in self._frames]
        return self._step.codes.clone(), [
            here and verdict == STOPS for verdict, here in zip(verdicts, taken, strict=True)
        ]

    @torch.inference_mode()
    def advance(self) -> None:
        """Feeds the drawn frames back, so that the next ones can be drawn."""
        for draws, frames, room in zip(self._draws, self._frames, self._room, strict=True):
            assert draws is None or frames <= room, "the slot is full"
        self._feed()

    @torch.inference_mode()
    def close(self, slot: int) -> None:
        """Frees a slot."""
        self._draws[slot] = None
        self._step.cache.clear(slot)

    def frames(self, prompt: np.ndarray, *, budget: int, draws: Draws) -> Generator[Tensor, None, None]:
        """As `speech_frames`, in the first of these slots; the others must be free."""
        self.open(0, prompt, draws)
        try:
            for frame in range(budget):
                if frame:
                    self.advance()
                codes, stopped = self.draw()
                if stopped[0]:
                    return
                yield codes[0]
        finally:
            self.close(0)

    def _fetch_uniforms(self) -> None:
        uniforms = np.zeros(self._step.uniforms.shape)
        for slot, draws in enumerate(self._draws):
            if draws is not None:
                uniforms[slot] = draws.frame(self._frames[slot], uniforms.shape[1])
        self._step.uniforms.copy_(torch.from_numpy(uniforms))


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
    slots = SpeechSlots(
        model, sampling, slots=1, capacity=capacity, num_codebooks=num_codebooks, pick=pick, record=plain
    )
    yield from slots.frames(prompt, budget=budget, draws=draws)
