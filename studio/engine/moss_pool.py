"""What a MOSS model speaks with, kept from one piece of text to the next: slots of the language model and decoders.

Making them takes memory and, on a graphics card, a recording; whoever speaks borrows them and gives them back. What is
spoken depends on what is asked for alone, never on who had the same slots or decoder before.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from studio.engine.codec import CodecDecoder
from studio.engine.frame_sampling import SpeechSampling
from studio.engine.recorded_decoder import RecordedDecoder
from studio.engine.speech_frames import SpeechSlots
from studio.engine.speech_model import SpeechModel

_CAPACITY_STEP = 512
"""Rows by which slots grow; on a graphics card a step reads all of them."""
_KEPT = 4
"""Of slots, and of decoders, that nobody uses; more are let go."""


class SpeechPool:
    """Slots and decoders of one model; used by the thread that speaks."""

    def __init__(self, model: SpeechModel, decoder: CodecDecoder) -> None:
        self._model, self._decoder = model, decoder
        self._slots: list[tuple[SpeechSampling, int, SpeechSlots]] = []
        self._decoders: list[RecordedDecoder] = []

    @contextmanager
    def slots(self, sampling: SpeechSampling, capacity: int) -> Iterator[SpeechSlots]:
        """One slot for `capacity` rows or more of prompt and speech."""
        rows = min(-(-capacity // _CAPACITY_STEP) * _CAPACITY_STEP, self._model.config.longest)
        found = next((each for each in self._slots if each[:2] == (sampling, rows)), None)
        if found is None:
            found = (sampling, rows, SpeechSlots(self._model, sampling, slots=1, capacity=rows))
        else:
            self._slots.remove(found)
        try:
            yield found[2]
        finally:
            self._slots = [*self._slots, found][-_KEPT:]

    @contextmanager
    def decoder(self) -> Iterator[RecordedDecoder]:
        """A decoder at the beginning of a stream."""
        decoder = self._decoders.pop() if self._decoders else RecordedDecoder(self._decoder)
        decoder.restart()
        try:
            yield decoder
        finally:
            self._decoders = [*self._decoders, decoder][-_KEPT:]
