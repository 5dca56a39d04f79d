"""The promise itself: whoever asks the reference cache, when and beside whom, a clip has one stable value."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from studio.audio.waveform import Waveform
from studio.engine.interface import Engine
from studio.errors import ClipError
from studio.invariance.batched_fill import digest
from studio.invariance.clips import LabClip
from studio.invariance.experiment import Found, Steps, missing
from studio.invariance.lab import Lab
from studio.reference import ReferenceDesk
from studio.store.code_cache import CodeCache

THREADS = 4


class FilledCodes(Protocol):
    """A reference cache that starts empty."""

    def codes(self, clip: LabClip) -> np.ndarray:
        """What it gives for a clip; asked from many threads at once."""
        ...

    def canonical(self, clip: LabClip) -> np.ndarray:
        """What the clip's codes are by the contract: those of a solo encode."""
        ...

    def restart(self) -> None:
        """Closes it, and opens what is on the disk."""
        ...

    def forget(self) -> None:
        """Begins again with nothing."""
        ...

    def counters(self) -> dict[str, float]:
        """What was filled, found and merged since it began."""
        ...


class DeskPromise:
    """Implements `FilledCodes` with the studio's own desk, in a folder that is not the user's."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine, self._folder, self._number = engine, folder, 0
        self._cache, self._desk = self._open()

    def codes(self, clip: LabClip) -> np.ndarray:
        return self._desk.from_clip(self._sound(clip), name=clip.name).codes

    def canonical(self, clip: LabClip) -> np.ndarray:
        return self._engine.encode(self._engine.prepare(self._sound(clip))).codes

    def restart(self) -> None:
        self._cache.close()
        self._cache, self._desk = self._open()

    def forget(self) -> None:
        self._number += 1
        self.restart()

    def counters(self) -> dict[str, float]:
        return self._cache.counters()

    def _open(self) -> tuple[CodeCache, ReferenceDesk]:
        folder = self._folder / str(self._number)
        folder.mkdir(parents=True, exist_ok=True)
        cache = CodeCache(folder / "studio.db")
        return cache, ReferenceDesk(self._engine, cache, folder / "locks")

    def _sound(self, clip: LabClip) -> Waveform:
        return Waveform(clip.samples, self._engine.codec.sample_rate)


def cache_check(lab: Lab, steps: Steps) -> Found:
    """Several threads ask for clips in random order; then again after a restart, and twice more from nothing."""
    if lab.parts.promise is None:
        return missing("no reference cache was handed in")
    promise = lab.parts.promise()
    try:
        canonical = {clip.name: digest(promise.canonical(clip)) for clip in lab.sources}
        found, restarts = _asked(lab, steps, promise)
    except ClipError as error:
        return missing(str(error))
    rows = [
        {"clip": name, "requests": len(digests), "digests": list(dict.fromkeys(digests)), "canonical": canonical[name]}
        for name, digests in found.items()
    ]
    wrong = [row for row in rows if row["digests"] != [row["canonical"]]]
    asked = sum(row["requests"] for row in rows)
    figures: dict[str, Any] = {
        "clips": rows,
        "requests": asked,
        "threads": THREADS,
        "restarts": restarts,
        "counters": promise.counters(),
    }
    begun = f"{asked} requests of {THREADS} threads in random order, with {restarts} restarts"
    if wrong:
        most = max(len(row["digests"]) for row in wrong)
        sentence = (
            f"{begun}: {len(wrong)} of {len(rows)} clips have other codes than the canonical ones, up to {most} "
            "digests each."
        )
        return Found(figures=figures, verdict="broken", sentence=sentence)
    return Found(
        figures=figures,
        verdict="holds",
        sentence=f"{begun}: one digest for each of {len(rows)} clips, and it is the canonical one.",
    )


def _asked(lab: Lab, steps: Steps, promise: FilledCodes) -> tuple[dict[str, list[str]], int]:
    """Digests by clip, in the order in which they came."""
    found: dict[str, list[str]] = {clip.name: [] for clip in lab.sources}
    rng = np.random.default_rng(lab.seed)
    begin: list[Callable[[], None]] = [lambda: None, promise.restart, promise.forget, promise.restart, promise.forget]
    with ThreadPoolExecutor(THREADS) as threads:
        for start in steps(begin, "asking from several threads"):
            start()
            order = [lab.sources[place] for place in _arrival(rng, len(lab.sources), lab.size.requests // len(begin))]
            for clip, codes in zip(order, threads.map(promise.codes, order), strict=True):
                found[clip.name].append(digest(codes))
    return found, len(begin) - 1


def _arrival(rng: np.random.Generator, clips: int, requests: int) -> list[int]:
    """Every clip at least once, in random order."""
    return [int(place) for place in rng.permutation([*range(clips), *rng.integers(0, clips, max(requests - clips, 0))])]
