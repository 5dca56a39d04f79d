"""What a GPU makes of the MOSS models, at real size with random weights: speed with and without recorded steps, memory,
whether a request depends on its neighbours, and which arithmetic keeps a codec's codes apart from the batch.

Nothing is judged here, only measured. With `toy`, everything runs in moments, on a CPU too, to see that it runs.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from studio.engine.device_codec_bench import decoder_figures, encoder_figures
from studio.engine.fixed_arithmetic import fixed_arithmetic
from studio.engine.frame_graph import Recorder, plain, recorded
from studio.engine.moss_bench import FIRST_CHUNK, bench_prompt
from studio.engine.random_models import random_decoder, random_speech_model
from studio.engine.recorded_decoder import RecordedDecoder
from studio.engine.released_sizes import SIZES, ModelSize
from studio.engine.sampling import CounterDraws
from studio.engine.speech_frames import SpeechSlots
from studio.engine.speech_model import SpeechModel
from studio.errors import SettingError

Figures = dict[str, Any]
_RECORDERS: dict[str, Recorder] = {"recorded": recorded, "plain": plain}
_LONG_CAPACITY = 4096


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is measured."""

    slots: tuple[int, ...] = (1, 4, 16)
    frames: int = 40
    compared_frames: int = 24
    capacity: int = 320
    long_capacity: int = _LONG_CAPACITY


_TOY_EFFORT = Effort(slots=(1, 2), frames=3, compared_frames=4, capacity=256, long_capacity=512)


def bench_device(*, toy: bool) -> str:
    """The GPU, or for toys the CPU where there is none. Raises SettingError where there is none to measure."""
    if torch.cuda.is_available():
        return "cuda"
    if toy:
        return "cpu"
    raise SettingError("moss-gpu", "on", "torch finds no CUDA device here; with --toy it runs on a CPU.")


def measure_device(device: str, *, toy: bool) -> Iterator[tuple[str, Figures]]:
    """Names of parts and their figures, as they are found; a part that torch cannot run says why."""
    yield "machine", machine(device)
    effort = _TOY_EFFORT if toy else Effort()
    for name in ("toy-nano", "toy-local") if toy else ("nano", "local"):
        size = SIZES[name]
        parts: dict[str, Callable[[], Figures]] = {
            "speech": lambda size=size: speech_figures(size, device, effort),
            "decoder": lambda size=size: decoder_figures(size, device, effort.frames),
            "encoder": lambda size=size: encoder_figures(size, device),
        }
        for part, measure in parts.items():
            yield f"{name}_{part}", _told(measure, device)


def machine(device: str) -> Figures:
    """What is measured on."""
    figures: Figures = {"device": device, "torch": torch.__version__}
    if device.startswith("cuda"):
        figures |= {
            "name": torch.cuda.get_device_name(device),
            "memory_mb": torch.cuda.get_device_properties(device).total_memory / 1e6,
            "cuda": torch.version.cuda,
        }
    return figures


def speech_figures(size: ModelSize, device: str, effort: Effort) -> Figures:
    """A language model in bfloat16; "fixed" is the arithmetic in which the studio speaks."""
    started = time.perf_counter()
    model = random_speech_model(size, device=device, dtype=torch.bfloat16)
    _wait(device)
    figures: Figures = {"build_s": time.perf_counter() - started, "weights_mb": _allocated(device)}
    for slots in effort.slots:
        for name, record in _RECORDERS.items():
            figures[f"{name}_{slots}"] = frame_figures(model, size, record, slots, effort.capacity, effort.frames)
    long = frame_figures(model, size, recorded, 1, effort.long_capacity, effort.frames)
    with fixed_arithmetic():
        figures["recorded_1_fixed"] = frame_figures(model, size, recorded, 1, effort.capacity, effort.frames)
    return figures | {
        f"recorded_1_capacity_{effort.long_capacity}": long,
        "first_audio": first_audio(model, size, device, effort),
        "invariance": invariance(model, size, effort),
        "peak_mb": _peak(device),
    }


def frame_figures(
    model: SpeechModel, size: ModelSize, record: Recorder, slots: int, capacity: int, frames: int
) -> Figures:
    """Times of frames of `slots` requests together."""
    prompt, device = bench_prompt(size), next(model.parameters()).device.type
    started = time.perf_counter()
    together = SpeechSlots(model, size.sampling, slots=slots, capacity=capacity, record=record)
    _wait(device)
    made_ready = time.perf_counter() - started
    for slot in range(slots):
        together.open(slot, prompt, CounterDraws(1, slot))
    _frame_times(together, device, 2)
    draws, advances = _frame_times(together, device, frames)
    frame = (sum(draws) + sum(advances)) / frames
    return {
        "ready_s": made_ready,
        "draw_ms": 1000 * min(draws),
        "advance_ms": 1000 * min(advances),
        "frame_ms": 1000 * frame,
        "best_frame_ms": 1000 * min(map(sum, zip(draws, advances, strict=True))),
        "realtime_speed_of_each": 1 / (frame * size.codec.frame_rate),
        "realtime_speed_of_all": slots / (frame * size.codec.frame_rate),
    }


def first_audio(model: SpeechModel, size: ModelSize, device: str, effort: Effort) -> Figures:
    """From a prompt to samples on the CPU, with steps that were recorded before."""
    slots = SpeechSlots(model, size.sampling, slots=1, capacity=effort.capacity)
    decoder = RecordedDecoder(random_decoder(size, device=device))
    prompt, times, prefills = bench_prompt(size), [], []
    for _ in range(4):
        _wait(device)
        started = time.perf_counter()
        slots.open(0, prompt, CounterDraws(0, 0))
        _wait(device)
        prefills.append(time.perf_counter() - started)
        decoder.restart()
        decoder.step(torch.stack(_frames(slots, FIRST_CHUNK), dim=1)).cpu()
        times.append(time.perf_counter() - started)
        slots.close(0)
    return {"first_ms": 1000 * times[0], "best_ms": 1000 * min(times), "best_prefill_ms": 1000 * min(prefills)}


def invariance(model: SpeechModel, size: ModelSize, effort: Effort) -> Figures:
    """Shares of a request's codes that stay, wherever it runs; the first five ought to be 1. Another number of slots
    has other shapes, so that last bits may differ there."""
    run = _Request(model, size, effort)
    alone = run.codes(recorded, slots=4, slot=0)
    cases = {
        "again": run.codes(recorded, slots=4, slot=0),
        "other_slot": run.codes(recorded, slots=4, slot=2),
        "neighbours": run.codes(recorded, slots=4, slot=0, neighbours=(1, 2, 3)),
        "neighbours_begun_before": run.codes(recorded, slots=4, slot=1, neighbours=(0, 3), wait=5),
        "not_recorded": run.codes(plain, slots=4, slot=0),
        "one_slot": run.codes(recorded, slots=1, slot=0),
        "two_slots": run.codes(recorded, slots=2, slot=0),
    }
    shares: Figures = {name: float((codes == alone).float().mean()) for name, codes in cases.items()}
    return shares | {"distinct_codes": len(alone.unique())}


@dataclass(frozen=True)
class _Request:
    """One request that runs in many places."""

    model: SpeechModel
    size: ModelSize
    effort: Effort

    def codes(
        self, record: Recorder, *, slots: int, slot: int, neighbours: tuple[int, ...] = (), wait: int = 0
    ) -> Tensor:
        """Its codes `(frames, num_codebooks)`, on the CPU, from slot `slot` of `slots`."""
        sampling, capacity = self.size.sampling, self.effort.capacity
        together = SpeechSlots(self.model, sampling, slots=slots, capacity=capacity, record=record)
        for other in neighbours:
            prompt = bench_prompt(self.size, seconds=1.0 + other, text_rows=40 + 20 * other)
            together.open(other, prompt, CounterDraws(9, other))
        for _ in range(wait):
            together.draw()
            together.advance()
        together.open(slot, bench_prompt(self.size), CounterDraws(7, 0))
        return torch.stack(_frames(together, self.effort.compared_frames, slot)).cpu()


def _frames(slots: SpeechSlots, count: int, slot: int = 0) -> list[Tensor]:
    made = []
    for number in range(count):
        if number:
            slots.advance()
        made.append(slots.draw()[0][slot])
    return made


def _frame_times(slots: SpeechSlots, device: str, frames: int) -> tuple[list[float], list[float]]:
    """Seconds of the two halves of each frame."""
    draws, advances = [], []
    for _ in range(frames):
        started = time.perf_counter()
        slots.draw()
        drawn = time.perf_counter()
        slots.advance()
        _wait(device)
        draws.append(drawn - started)
        advances.append(time.perf_counter() - drawn)
    return draws, advances


def _told(measure: Callable[[], Figures], device: str) -> Figures:
    """A device may lack memory or a kernel for one part; the other parts are worth having all the same."""
    started = time.perf_counter()
    try:
        figures = measure()
    except RuntimeError as error:
        figures = {"failed": f"{type(error).__name__}: {error}"[:600]}
    if device.startswith("cuda"):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    return figures | {"took_s": time.perf_counter() - started}


def _wait(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def _allocated(device: str) -> float | None:
    return torch.cuda.memory_allocated(device) / 1e6 if device.startswith("cuda") else None


def _peak(device: str) -> float | None:
    return torch.cuda.max_memory_allocated(device) / 1e6 if device.startswith("cuda") else None
