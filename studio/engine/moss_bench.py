"""How fast a MOSS model speaks on this machine's CPU, its codec's decoder included: the frame loop of the studio beside
the plain one, in one run with the same random weights. Times do not depend on what the weights are."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, repeat

import numpy as np
import torch
from torch import Tensor

from studio.engine.codec import CodecDecoder
from studio.engine.fixed_arithmetic import fixed_arithmetic
from studio.engine.huge_pages import use_huge_pages
from studio.engine.moss_speech import CHUNK_FRAMES
from studio.engine.naive_frames import NaiveLoop
from studio.engine.packed_weights import WeightBits, pack
from studio.engine.random_models import random_decoder, random_speech_model
from studio.engine.recorded_decoder import RecordedDecoder
from studio.engine.released_sizes import SIZES, ModelSize
from studio.engine.sampling import CounterDraws
from studio.engine.speech_frames import SpeechSlots
from studio.engine.speech_model import SpeechModel
from studio.text.moss_chunks import FRAME_RATE

CHUNKS = (1, 2, 4, 8)
REFERENCE_SECONDS = 6.0
_TEXT_ROWS = 100
"""Of the template and a sentence."""
FIRST_CHUNK = CHUNK_FRAMES[0]
"""Frames before the first sound leaves."""
_DECODER_RUNS = 8
_LATE = 1000
"""A frame at which every window has long been full."""


@dataclass
class MossFigures:
    """What was measured; one entry a run."""

    model: str
    dtype: str
    packed_bits: int | None
    """What the weights of the fast loop are packed to; None leaves them as they are."""
    threads: int
    frames: int
    """In each run, after the prompt of a reference of REFERENCE_SECONDS; the model is not asked whether to stop."""
    parameters: int
    prompt_rows: int
    realtime_speed: list[float] = field(default_factory=list)
    naive_realtime_speed: list[float] = field(default_factory=list)
    first_audio_ms: list[float] = field(default_factory=list)
    naive_first_audio_ms: list[float] = field(default_factory=list)
    decoder_ms: dict[int, list[float]] = field(default_factory=dict)
    """For chunks of so many frames."""
    equal_codes: float = 0.0
    """Share of the codes in which both loops agree."""


FrameOf = Callable[[int], Tensor]
"""The codes of a frame by its number."""
Begin = Callable[[], FrameOf]
"""Takes the prompt in."""
Decode = Callable[[Tensor], Tensor]
"""The sound of the next codes `(num_codebooks, num_frames)`."""


@dataclass
class _Run:
    realtime_speed: float
    first_audio_ms: float
    codes: Tensor


def measure_moss(name: str, *, runs: int, frames: int, bits: WeightBits | None = None) -> MossFigures:
    """Figures of the model `name` of SIZES, `runs` times `frames` frames of both loops in turn. `bits` packs the
    weights of the fast loop; raises ValueError where they cannot be."""
    size = SIZES[name]
    model = random_speech_model(size, device="cpu", dtype=size.cpu_dtype)
    whole = model
    if bits is not None:
        model = random_speech_model(size, device="cpu", dtype=size.cpu_dtype)
        pack(model, bits)
    use_huge_pages()
    decoder = random_decoder(size, device="cpu")
    prompt = bench_prompt(size)
    figures = MossFigures(
        model=size.name,
        dtype=str(size.cpu_dtype).removeprefix("torch."),
        packed_bits=bits,
        threads=torch.get_num_threads(),
        frames=frames,
        parameters=sum(weight.numel() for weight in whole.parameters()),
        prompt_rows=len(prompt),
    )
    with fixed_arithmetic():
        sound = RecordedDecoder(decoder)
        _speak(_fast(model, size, prompt, FIRST_CHUNK), sound.step, FIRST_CHUNK, CHUNK_FRAMES)  # warms libraries up
    for _ in range(runs):
        with fixed_arithmetic():
            sound.restart()
            fast = _speak(_fast(model, size, prompt, frames), sound.step, frames, CHUNK_FRAMES)
        state = decoder.start(max_frames=1)
        naive = _speak(_naive(whole, size, prompt), partial(decoder.step, state=state), frames, (1,))
        figures.realtime_speed.append(fast.realtime_speed)
        figures.naive_realtime_speed.append(naive.realtime_speed)
        figures.first_audio_ms.append(fast.first_audio_ms)
        figures.naive_first_audio_ms.append(naive.first_audio_ms)
        figures.equal_codes = float((fast.codes == naive.codes).float().mean())
    with fixed_arithmetic():
        figures.decoder_ms = {chunk: decoder_times(decoder, chunk) for chunk in CHUNKS}
    return figures


def bench_prompt(size: ModelSize, seconds: float = REFERENCE_SECONDS, text_rows: int = _TEXT_ROWS) -> np.ndarray:
    """The rows of a prompt with a reference of so many seconds, of numbers that mean nothing."""
    speech, rng = size.speech, np.random.default_rng(0)
    frames = round(seconds * size.codec.frame_rate)
    rows = np.full((text_rows + frames, 1 + speech.num_codebooks), speech.code_pad, dtype=np.int64)
    rows[:, 0] = rng.integers(16, speech.vocabulary, len(rows))
    reference = rows[16 : 16 + frames]
    reference[:, 0] = speech.tokens.user_slot
    reference[:, 1:] = rng.integers(0, speech.codebook_size, (frames, speech.num_codebooks))
    return rows


def decoder_times(decoder: CodecDecoder, chunk: int, runs: int = _DECODER_RUNS) -> list[float]:
    """Milliseconds of steps of `chunk` frames, one after another in a stream whose windows are full."""
    state, device = decoder.start(chunk), decoder.table.contributions.device
    with torch.inference_mode():
        state.position.fill_(_LATE)
    codes = torch.zeros(decoder.table.num_codebooks, chunk, dtype=torch.int64, device=device)
    decoder.step(codes, state)
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        decoder.step(codes, state)
        times.append(1000 * (time.perf_counter() - started))
    return times


def _speak(begin: Begin, decode: Decode, frames: int, chunks: Sequence[int]) -> _Run:
    """`frames` frames with their sound, decoded in `chunks` of which the last size is every later one's; the clock runs
    from before the prompt for the first audio, and from after it for the speed."""
    sizes = chain(chunks, repeat(chunks[-1]))
    started = time.perf_counter()
    draw, codes, decoded, target = begin(), list[Tensor](), 0, next(sizes)
    spoken = time.perf_counter()
    first_audio = 0.0
    for number in range(frames):
        codes.append(draw(number))
        if len(codes) - decoded == target or number + 1 == frames:
            decode(torch.stack(codes[decoded:], dim=1))
            decoded, target = len(codes), next(sizes)
        if number + 1 == FIRST_CHUNK:
            first_audio = time.perf_counter() - started
    return _Run(frames / FRAME_RATE / (time.perf_counter() - spoken), 1000 * first_audio, torch.stack(codes))


def _fast(model: SpeechModel, size: ModelSize, prompt: np.ndarray, frames: int) -> Begin:
    def begin() -> FrameOf:
        slots = SpeechSlots(model, size.sampling, slots=1, capacity=len(prompt) + frames)
        slots.open(0, prompt, CounterDraws(0, 0))
        return lambda number: _next(slots, number)

    return begin


def _next(slots: SpeechSlots, number: int) -> Tensor:
    if number:
        slots.advance()
    return slots.draw()[0][0]


def _naive(model: SpeechModel, size: ModelSize, prompt: np.ndarray) -> Begin:
    return lambda: NaiveLoop(model, size.sampling, prompt, CounterDraws(0, 0)).frame
