"""The encoding half of a MOSS codec: there while clips come, gone when none has come for a while."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from studio.audio.waveform import Waveform
from studio.engine.codec import CodecEncoder
from studio.engine.device_memory import give_back, memory_suffices
from studio.engine.engine_errors import EngineClosed
from studio.engine.fixed_arithmetic import fixed_arithmetic
from studio.engine.interface import Encoded, Environment
from studio.engine.lanes import EncoderLanes, check_lanes
from studio.engine.weight_files import tensor_bytes


@dataclass(frozen=True, kw_only=True)
class EncoderPlan:
    """How an encoder is got and used."""

    name: str
    """Of the engine, for sentences."""
    load: Callable[[], CodecEncoder]
    num_codebooks: int
    device: str
    lanes: int = 1
    keep: float | None = None
    """Seconds without a clip after which the encoder goes; None keeps it, as its weights are mapped from the file."""


class SoloEncoder:
    """Encodes each clip alone, in a lane of one thread, in float32 under fixed arithmetic: the canonical value."""

    def __init__(self, plan: EncoderPlan) -> None:
        self._plan = plan
        self._lanes = EncoderLanes(plan.lanes)
        self._lock = threading.Lock()
        self._encoder: CodecEncoder | None = None
        self._users = 0
        self._ended = 0.0
        self._closed = False

    @property
    def is_loaded(self) -> bool:
        return self._encoder is not None

    def encode(self, prepared: Waveform) -> Encoded:
        """Waits for a lane. Raises OutOfMemory, CheckpointError where loading fails, EngineClosed after `close`."""
        return self._lanes.run(lambda: self._encode(prepared))

    def check_lanes(self, clip: Waveform) -> None:
        """Raises LanesDiffer where encodes that run at once have other codes than one that runs alone."""
        check_lanes(self._lanes, lambda: self._encode(clip).codes, self._plan.device)

    def close(self) -> int:
        """Lets the encoder go for good and returns the bytes of its weights; an encode that runs now still ends."""
        with self._lock:
            self._closed = True
            encoder, self._encoder = self._encoder, None
        return 0 if encoder is None else tensor_bytes(encoder)

    @torch.inference_mode()
    def _encode(self, prepared: Waveform) -> Encoded:
        plan = self._plan
        with memory_suffices(plan.name, plan.device), self._in_use() as encoder, fixed_arithmetic():
            started = time.perf_counter()
            codes = encoder.encode(torch.tensor(prepared.samples, device=plan.device), plan.num_codebooks).cpu()
            duration = time.perf_counter() - started
        environment = environment_of(plan.device, torch.get_num_threads())
        return Encoded(codes=codes.numpy().astype(np.int16), environment=environment, duration=duration)

    @contextmanager
    def _in_use(self) -> Iterator[CodecEncoder]:
        with self._lock:
            if self._closed:
                raise EngineClosed(self._plan.name)
            encoder = self._encoder = self._encoder or self._plan.load()
            self._users += 1
        try:
            yield encoder
        finally:
            with self._lock:
                self._users -= 1
                self._ended = time.monotonic()
                if self._plan.keep is not None and self._users == 0:
                    self._let_go_after(self._plan.keep)

    def _let_go_after(self, seconds: float) -> None:
        timer = threading.Timer(seconds, self._let_go, [seconds])
        timer.daemon = True
        timer.start()

    def _let_go(self, seconds: float) -> None:
        """Nothing where a clip came meanwhile: its end has set a timer of its own."""
        with self._lock:
            if self._users or time.monotonic() < self._ended + seconds:
                return
            self._encoder = None
        give_back(self._plan.device)


def environment_of(device: str, num_threads: int) -> Environment:
    """Where something runs, with the name of a graphics card."""
    on_card = torch.device(device).type == "cuda"
    return Environment(
        device=f"{device} ({torch.cuda.get_device_name(device)})" if on_card else device,
        torch_version=str(torch.__version__),
        cuda_version=torch.version.cuda if on_card else None,
        num_threads=num_threads,
    )
