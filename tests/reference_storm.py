"""A storm on the reference cache: processes of many threads ask for few clips, and are killed meanwhile."""

import json
import multiprocessing
import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from counting_engine import CountingEngine, talk

from studio.audio.waveform import Waveform
from studio.engine.checkpoints import load
from studio.engine.embedded import EmbeddedEngine
from studio.engine.interface import Engine
from studio.reference import ReferenceDesk
from studio.reference_key import cache_key
from studio.settings import assets_dir
from studio.store.code_cache import CodeCache
from studio.store.database import connection

ENCODING, COMMITTING = 0, 1
CLIPS = 10
SECONDS = 4.0
Request = tuple[int, int]
"""Number of a clip, and of its variant: another last bit of its first sample, and so another key."""


@dataclass(frozen=True, kw_only=True)
class Storm:
    """Where it rages, and how many ask."""

    folder: Path
    engine: str
    """"embedded", or "counting" for one that is only slow."""
    processes: int = 4
    threads: int = 16

    @property
    def database(self) -> Path:
        return self.folder / "studio.db"


@dataclass(kw_only=True)
class Figures:
    """What was asked and what came of it."""

    requests: int = 0
    fills: int = 0
    digests: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By key."""
    seconds: float = 0.0

    def add(self, key: str, digest: str, outcome: str) -> None:
        self.requests += 1
        self.fills += outcome == "fill"
        self.digests[key].add(digest)


@dataclass(kw_only=True)
class Kills(Figures):
    """The same, with where the kills fell."""

    kills: int = 0
    in_encode: int = 0
    in_commit: int = 0
    rounds: int = 0

    @property
    def inside(self) -> int:
        return self.in_encode + self.in_commit


def calm(storm: Storm, requests: int, *, seed: int) -> Figures:
    """All processes ask for all clips in random order, each from all its threads, and end by themselves."""
    rng = random.Random(seed)
    figures = Figures()
    share = requests // storm.processes
    started = time.monotonic()
    workers = [Worker(storm, [(rng.randrange(CLIPS), 0) for _ in range(share)]) for _ in range(storm.processes)]
    for worker in workers:
        worker.go()
    with ThreadPoolExecutor(storm.processes) as readers:
        for answers in readers.map(lambda worker: list(worker.answers()), workers):
            for answer in answers:
                figures.add(*answer)
    for worker in workers:
        worker.end()
    figures.seconds = time.monotonic() - started
    return figures


def killing(storm: Storm, wanted: int, *, seed: int) -> Kills:
    """Kills every process within a second of its being ready, over and over, until `wanted` kills fell inside an encode
    or a commit; after each round every entry that was ever reported must be there with its digest."""
    rng = random.Random(seed)
    kills = Kills()
    started = time.monotonic()
    while kills.inside < wanted:
        kills.rounds += 1
        asked = [(number, kills.rounds) for number in range(CLIPS)]
        workers = [Worker(storm, rng.sample(asked, CLIPS)) for _ in range(storm.processes)]
        with ThreadPoolExecutor(storm.processes) as killers:
            for worker, answers in zip(
                workers, killers.map(Worker.kill, workers, [rng.random() for _ in workers]), strict=True
            ):
                kills.kills += 1
                kills.in_commit += worker.state[COMMITTING] > 0
                kills.in_encode += worker.state[COMMITTING] == 0 and worker.state[ENCODING] > 0
                for answer in answers:
                    kills.add(*answer)
        check_reported(storm, kills)
    kills.seconds = time.monotonic() - started
    return kills


def check_reported(storm: Storm, kills: Kills) -> None:
    """AssertionError where a reported entry is lost or has other codes, or the database is not whole."""
    cache = CodeCache(storm.database)
    for key, digests in kills.digests.items():
        entry = cache.look(key)
        assert entry is not None, f"{key} was reported as stored and is lost"
        assert digests == {entry.digest}, f"{key} was reported with {digests} and is {entry.digest}"
    cache.close()
    with connection(storm.database) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def check_values(storm: Storm, rounds: int) -> int:
    """Encodes every stored clip and variant once more, in this process alone; returns how many were compared."""
    engine, cache, compared = make_engine(storm), CodeCache(storm.database), 0
    for variant in range(rounds + 1):
        for number, clip in enumerate(load_clips(storm)):
            varied = vary(clip, variant)
            entry = cache.look(cache_key(varied, (0, varied.num_samples), engine.codec))
            if entry is not None:
                codes = engine.encode(engine.prepare(varied)).codes
                assert np.array_equal(entry.codes, codes), f"clip {number}, variant {variant} has a wrong value"
                compared += 1
    cache.close()
    return compared


class Worker:
    """One process with a desk of its own on the shared folder."""

    def __init__(self, storm: Storm, requests: list[Request]) -> None:
        context = multiprocessing.get_context("forkserver")
        # The server of forks finds our modules by the environment alone; without them every process imports torch anew.
        os.environ["PYTHONPATH"] = str(Path(__file__).parent)
        context.set_forkserver_preload([__name__, "studio.audio.speech"])
        self.state = context.RawArray("i", 2)
        """How many of its threads are inside an encode, and inside a commit; stays readable when it is killed."""
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=work, args=[storm, requests, theirs, self.state], daemon=True)
        self._process.start()
        theirs.close()
        assert self._ours.recv() == "ready"

    def go(self) -> None:
        self._ours.send("go")

    def answers(self) -> Iterator[tuple[str, str, str]]:
        """Key, digest and outcome of each request as it is answered, until the process ends."""
        while True:
            try:
                answer = self._ours.recv()
            except (EOFError, OSError):
                return
            if answer is None:
                return
            yield answer

    def end(self) -> None:
        self._process.join(60)
        assert self._process.exitcode == 0, f"a process ended with {self._process.exitcode}"

    def kill(self, after: float) -> list[tuple[str, str, str]]:
        """Lets it go, kills it after so many seconds, and returns what it had reported until then."""
        self.go()
        time.sleep(after)
        self._process.kill()
        answers = list(self.answers())
        self._process.join(60)
        assert self._process.exitcode in (-9, 0)
        return answers


def work(storm: Storm, requests: list[Request], parent: Connection, state: Any) -> None:
    """The life of one process."""
    engine, cache, lock = make_engine(storm), CodeCache(storm.database), threading.Lock()
    desk = ReferenceDesk(engine, cache, storm.folder / "locks")
    watch(engine, "encode", state, ENCODING, lock)
    watch(cache, "insert", state, COMMITTING, lock)
    clips = load_clips(storm)
    parent.send("ready")
    parent.recv()

    def ask(request: Request) -> None:
        number, variant = request
        reference = desk.from_clip(vary(clips[number], variant))
        with lock:
            parent.send((reference.key, reference.digest, reference.outcome))

    with ThreadPoolExecutor(storm.threads) as callers:
        list(callers.map(ask, requests))
    cache.close()
    parent.send(None)


def watch(owner: object, name: str, state: Any, place: int, lock: threading.Lock) -> None:
    """Counts in `state` how many calls of a method are under way."""
    method: Callable[..., Any] = getattr(owner, name)

    @contextmanager
    def counted() -> Iterator[None]:
        with lock:
            state[place] += 1
        try:
            yield
        finally:
            with lock:
                state[place] -= 1

    def watched(*arguments: Any, **options: Any) -> Any:
        with counted():
            return method(*arguments, **options)

    setattr(owner, name, watched)


def make_engine(storm: Storm) -> Engine:
    if storm.engine == "embedded":
        return EmbeddedEngine(load(assets_dir() / "model"))
    return CountingEngine(storm.folder / "encodes", delay=0.05)


def make_clips(storm: Storm) -> None:
    """Once for all processes."""
    np.save(storm.folder / "clips.npy", np.stack([talk(SECONDS, seed=seed).samples for seed in range(CLIPS)]))


def load_clips(storm: Storm) -> list[Waveform]:
    return [Waveform(samples, 24_000) for samples in np.load(storm.folder / "clips.npy")]


def vary(clip: Waveform, variant: int) -> Waveform:
    samples = clip.samples.copy()
    samples[0, 0] += np.float32(variant * 2.0**-20)
    return Waveform(samples, clip.sample_rate)


def report(name: str, figures: Figures, **more: Any) -> str:
    """One line of JSON."""
    told = {key: value for key, value in vars(figures).items() if key != "digests"}
    most = max(map(len, figures.digests.values()), default=0)
    return json.dumps({"storm": name, **told, "keys": len(figures.digests), "most_digests_per_key": most, **more})
