"""One utterance with a MOSS model: pieces, prompts, frames, sound, and what happens where speech runs away."""

import math
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, repeat

import numpy as np
import torch
from torch import Tensor

from studio.audio.waveform import to_pcm
from studio.engine.device_memory import memory_suffices
from studio.engine.engine_errors import RanAway
from studio.engine.fixed_arithmetic import fixed_arithmetic
from studio.engine.frame_sampling import SpeechSampling
from studio.engine.model_errors import NotFinite
from studio.engine.moss_family import MossParts
from studio.engine.prompt_rows import PromptFields
from studio.engine.recorded_decoder import RecordedDecoder
from studio.engine.runaway import RunawayLimits, RunawayWatchdog
from studio.engine.sampling import CounterDraws, SamplingOptions
from studio.errors import ReferenceTooLong, SettingError
from studio.text.moss_chunks import FRAME_RATE, LONGEST_BUDGET, frame_budget, frame_estimate
from studio.text.script import Utterance

_ATTEMPTS = 2
CHUNK_FRAMES = (3, 3, 4, 4, 6, 8)
"""Frames of each chunk, the last number for all later ones: 240 ms before the first sound leaves, and no chunk takes
longer to make than the one before it plays, on a machine that is a quarter faster than real time."""
_AUDIBLE = 10 ** (-50 / 20)
"""A sample of this size or more is heard."""
_PIECE_FRAMES = 1 << 16
"""Places of a piece's frames among the draws of its utterance; no piece has as many."""
_NOTHING_SAID = "it ended without a sound"
Chunks = Generator[np.ndarray, None, None]


@dataclass(frozen=True, kw_only=True)
class MossRequest:
    """One utterance to speak; `codes` `(num_codebooks, num_frames)` are the voice, `index` its number in the script."""

    utterance: Utterance
    codes: np.ndarray
    options: SamplingOptions
    index: int


@dataclass(frozen=True)
class PieceDraws:
    """The draws of one piece: its frames have places of their own among those of the utterance."""

    draws: CounterDraws
    piece: int

    def frame(self, frame: int, count: int) -> np.ndarray:
        return self.draws.frame(self.piece * _PIECE_FRAMES + frame, count)


@dataclass(frozen=True, eq=False)
class Sound:
    """Frames that were decoded together: codes `(num_codebooks, num_frames)` and samples `(channels, num_samples)`."""

    codes: np.ndarray
    samples: np.ndarray

    def audible(self) -> list[bool]:
        """Whether anything is heard, frame by frame."""
        frames = self.codes.shape[1]
        return [] if frames == 0 else [_is_heard(each) for each in np.split(self.samples, frames, axis=1)]


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended: why it is no good, None where it is good, and whether any of it was heard."""

    fault: str | None
    heard: bool


def speak_utterance(parts: MossParts, request: MossRequest) -> Chunks:
    """Int16 PCM `(channels, samples)` after every frame, without samples until a chunk is full: 3 frames at first, 8 in
    the end.

    A piece that runs away, or ends without a sound, is tried once more with other draws where nothing of it was heard
    yet; else the utterance ends there with RanAway, after what was sound. Raises SettingError where the model has no
    control of its pace, ReferenceTooLong, OutOfMemory and NotFinite.
    """
    if request.options.speed != 1.0 and not parts.family.takes_length:
        cure = f"{parts.entry.title} speaks at the pace of its voice only; use 1, or another voice model."
        raise SettingError("speed", request.options.speed, cure)
    pieces = parts.family.cut(request.utterance, parts.tokenizer)
    for number, piece in enumerate(pieces):
        yield from _speak_piece(parts, request, piece.text, number)
        if number + 1 < len(pieces):
            yield _silence(parts, piece.pause)


def _speak_piece(parts: MossParts, request: MossRequest, text: str, number: int) -> Chunks:
    prompt, budget = _prompt(parts, request, text)
    for attempt in range(_ATTEMPTS):
        draws = PieceDraws(CounterDraws(request.options.seed, request.index, attempt), number)
        sampling = sampling_of(parts.family.sampling, request.options)
        with closing(_sounds(parts, prompt, budget, sampling, draws)) as sounds:
            outcome = yield from _attempt(sounds, RunawayWatchdog(RunawayLimits(budget=budget)))
        if outcome.fault is None:
            return
        if outcome.heard or attempt + 1 == _ATTEMPTS:
            raise RanAway(text[:40], outcome.fault)


def _attempt(sounds: Generator[Sound, None, None], watchdog: RunawayWatchdog) -> Generator[np.ndarray, None, Outcome]:
    """Hands out sound. The chunk in which speech runs away is never handed out."""
    heard = False
    for sound in sounds:
        audible = sound.audible()
        for codes, is_heard in zip(sound.codes.T, audible, strict=True):
            runaway = watchdog.observe(codes, silent=not is_heard)
            if runaway is not None:
                return Outcome(runaway.value, heard)
        heard = heard or any(audible)
        yield to_pcm(sound.samples)
    return Outcome(None if heard else _NOTHING_SAID, heard)


def _sounds(
    parts: MossParts, prompt: np.ndarray, budget: int, sampling: SpeechSampling, draws: PieceDraws
) -> Generator[Sound, None, None]:
    """After every frame what is new: nothing, until a chunk is full. One frame more than the budget at most, so that
    the watchdog sees it."""
    with ExitStack() as borrowed:
        with _at_work(parts):
            slots = borrowed.enter_context(parts.pool.slots(sampling, len(prompt) + budget + 1))
            decoder = borrowed.enter_context(parts.pool.decoder())
        frames = borrowed.enter_context(closing(slots.frames(prompt, budget=budget + 1, draws=draws)))
        sizes, pending = chain(CHUNK_FRAMES, repeat(CHUNK_FRAMES[-1])), list[Tensor]()
        target = next(sizes)
        while True:
            with _at_work(parts):
                codes = _next_codes(parts, frames)
                pending += [] if codes is None else [codes]
                is_full = len(pending) == target or (codes is None and bool(pending))
                sound = _decoded(decoder, pending) if is_full else _nothing(parts)
            if is_full:
                pending, target = [], next(sizes)
            if is_full or codes is not None:
                yield sound
            if codes is None:
                return


def _decoded(decoder: RecordedDecoder, pending: list[Tensor]) -> Sound:
    codes = torch.stack(pending, dim=1)
    return Sound(codes.cpu().numpy(), decoder.step(codes).cpu().numpy())


def _nothing(parts: MossParts) -> Sound:
    return Sound(np.empty((0, 0), dtype=np.int64), np.empty((parts.decoder.config.channels, 0), dtype=np.float32))


@contextmanager
def _at_work(parts: MossParts) -> Iterator[None]:
    with memory_suffices(parts.entry.title, parts.device), fixed_arithmetic():
        yield


def _next_codes(parts: MossParts, frames: Generator[Tensor, None, None]) -> Tensor | None:
    try:
        return next(frames, None)
    except FloatingPointError as error:
        raise NotFinite(parts.entry.title, parts.device, parts.dtype) from error


def _prompt(parts: MossParts, request: MossRequest, text: str) -> tuple[np.ndarray, int]:
    """The rows of the prompt, and how many frames the speech may take."""
    speed, longest = request.options.speed, parts.model.config.longest
    fields = None if speed == 1.0 else PromptFields(tokens=max(round(frame_estimate(text) / speed), 1))
    prompt = parts.prompts.clone(text, [request.codes], fields)
    room = longest - len(prompt) - 1
    if room < 1:
        possible = longest - (len(prompt) - request.codes.shape[1]) - math.ceil(frame_estimate(text))
        raise ReferenceTooLong(request.codes.shape[1] / FRAME_RATE, max(possible, 0) / FRAME_RATE)
    budget = math.ceil(frame_budget(text) / min(speed, 1.0))
    return prompt, min(budget, LONGEST_BUDGET, room)


def sampling_of(recommended: SpeechSampling, options: SamplingOptions) -> SpeechSampling:
    """The family's own sampling where nothing else is asked for; whether speech ends is always drawn as recommended."""
    codes = recommended.codes
    temperature = codes.temperature if options.temperature is None else options.temperature
    return replace(recommended, codes=replace(codes, temperature=temperature, top_k=options.top_k or codes.top_k))


def _is_heard(samples: np.ndarray) -> bool:
    return float(np.abs(samples).max()) >= _AUDIBLE


def _silence(parts: MossParts, seconds: float) -> np.ndarray:
    config = parts.decoder.config
    return np.zeros((config.channels, round(seconds * config.sample_rate)), dtype=np.int16)
