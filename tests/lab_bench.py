"""A small bench of the invariance lab: the real codec at toy size, and codecs with a fault that somebody planted."""

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from counting_engine import talk
from toy_voice import toy_voice

from studio.engine.embedded import EmbeddedEngine
from studio.engine.interface import CodecIdentity
from studio.engine.probe import CANONICAL, CodecProbe, PaddedBatch, ProbeSetting
from studio.engine.probe_harmonic import HarmonicProbe
from studio.invariance.clips import LabClip, together
from studio.invariance.experiment import perform
from studio.invariance.experiments import EXPERIMENTS
from studio.invariance.lab import Lab, LabSize, StudioParts
from studio.invariance.promise import DeskPromise, FilledCodes
from studio.invariance.record import Record

SIZE = LabSize(
    lengths=(2, 4),
    clips=3,
    batches=(2, 3),
    repeats=2,
    gaps=(0, 2),
    boundary_lengths=(2,),
    boundary_clips=1,
    search_lengths=(2,),
    search_clips=1,
    threads=(1,),
    requests=24,
)


def sources(engine: EmbeddedEngine) -> list[LabClip]:
    return [LabClip(f"talk {seed}", engine.prepare(talk(2.0, seed=seed)).samples) for seed in range(3)]


def bench(
    folder: Path, fault: Callable[[CodecProbe], CodecProbe] = lambda probe: probe, *, size: LabSize = SIZE
) -> Lab:
    """Everything an experiment may want; the codec under every setting has the fault."""
    model = toy_voice()
    engine = EmbeddedEngine(model)

    def probes(setting: ProbeSetting) -> CodecProbe:
        return fault(HarmonicProbe(model.codec, engine.codec, setting))

    return Lab(
        probe=probes(CANONICAL),
        probes=probes,
        sources=sources(engine),
        size=size,
        dtypes=("float32",),
        parts=StudioParts(engine=engine, promise=lambda: DeskPromise(engine, folder), smallest=folder / "case.json"),
    )


def verdicts(lab: Lab) -> dict[str, Record]:
    return {experiment.name: perform(experiment, lab) for experiment in EXPERIMENTS}


class FaultyProbe:
    """Implements `CodecProbe` by another one, whose batches it may change first."""

    def __init__(self, probe: CodecProbe) -> None:
        self._probe = probe

    @property
    def setting(self) -> ProbeSetting:
        return self._probe.setting

    @property
    def codec(self) -> CodecIdentity:
        return self._probe.codec

    @property
    def device(self) -> str:
        return self._probe.device

    @property
    def whole_tolerance(self) -> float:
        return self._probe.whole_tolerance

    def changed(self, batch: PaddedBatch) -> PaddedBatch:
        return batch

    def encode(self, batch: PaddedBatch) -> np.ndarray:
        return self._probe.encode(self.changed(batch))

    def latents(self, batch: PaddedBatch) -> np.ndarray:
        return self._probe.latents(batch)

    def distances(self, batch: PaddedBatch) -> np.ndarray:
        return self._probe.distances(batch)

    def trace(self, solo: PaddedBatch, batch: PaddedBatch, row: int):
        return self._probe.trace(solo, batch, row)

    def decode(self, codes: np.ndarray) -> np.ndarray:
        return self._probe.decode(codes)

    def decode_streamed(self, codes: np.ndarray, chunk: int) -> np.ndarray:
        return self._probe.decode_streamed(codes, chunk)


class LeakyProbe(FaultyProbe):
    """Hears what stands in the padding."""

    def changed(self, batch: PaddedBatch) -> PaddedBatch:
        samples = batch.samples.copy()
        for row, length in zip(samples, batch.lengths, strict=True):
            row[:, :length] *= 1 + 20 * float(np.abs(row[:, length:]).sum()) / row.size
        return replace(batch, samples=samples)


class TalkativeProbe(FaultyProbe):
    """Every row hears the second one."""

    def changed(self, batch: PaddedBatch) -> PaddedBatch:
        if len(batch.samples) < 2:
            return batch
        return replace(batch, samples=batch.samples + batch.samples[1] * np.float32(0.5))


class NoisyProbe(FaultyProbe):
    """No two encodes are the same."""

    rng = np.random.default_rng(5)

    def changed(self, batch: PaddedBatch) -> PaddedBatch:
        noise = self.rng.standard_normal(batch.samples.shape).astype(np.float32)
        level = 10 ** self.rng.uniform(-3, 0, (len(noise), 1)).astype(np.float32)
        return replace(batch, samples=batch.samples + level * noise)


class RememberingProbe(FaultyProbe):
    """Something of a call is heard in the next one."""

    _left = 0.0

    def changed(self, batch: PaddedBatch) -> PaddedBatch:
        heard = replace(batch, samples=batch.samples * np.float32(1 + 20 * self._left))
        self._left = float(np.abs(batch.samples).mean())
        return heard


class CrowdedProbe(FaultyProbe):
    """A row's numbers depend on how many there are."""

    def changed(self, batch: PaddedBatch) -> PaddedBatch:
        return replace(batch, samples=batch.samples * np.float32(1 + 200 * (len(batch.samples) - 1)))


class BatchFilledCodes:
    """Implements `FilledCodes` as others do: whoever comes is encoded beside whoever came last."""

    def __init__(self, probe: CodecProbe) -> None:
        self._probe, self._lock = probe, threading.Lock()
        self._stored: dict[str, np.ndarray] = {}
        self._last: LabClip | None = None

    def codes(self, clip: LabClip) -> np.ndarray:
        with self._lock:
            if clip.name not in self._stored:
                batch = [clip.samples] if self._last is None else [clip.samples, self._last.samples]
                self._stored[clip.name] = self._probe.encode(together(batch))[0]
                self._last = clip
            return self._stored[clip.name]

    def canonical(self, clip: LabClip) -> np.ndarray:
        return self._probe.encode(together([clip.samples]))[0]

    def restart(self) -> None: ...

    def forget(self) -> None:
        self._stored, self._last = {}, None

    def counters(self) -> dict[str, float]:
        return {}


def filled_by(lab: Lab, promise: Callable[[], FilledCodes]) -> Lab:
    return replace(lab, parts=replace(lab.parts, promise=promise), compared=[])
