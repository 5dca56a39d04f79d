"""The reference desk in several processes on one data folder: one encode, one row, and no lock outlives its holder."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from counting_engine import CountingEngine, talk

from studio.reference import ReferenceDesk
from studio.store.code_cache import CodeCache
from studio.store.database import connection

ASK = """
import sys, time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from counting_engine import CountingEngine, talk
from studio.reference import ReferenceDesk
from studio.store.code_cache import CodeCache

folder, delay, seeds, threads = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
clips = [talk(seed=seed) for seed in range(seeds)]
engine = CountingEngine(folder / "encodes", delay=delay)
if delay >= 1:
    engine.before_encode = lambda: (print("encoding", flush=True), time.sleep(delay))
desk = ReferenceDesk(engine, CodeCache(folder / "studio.db"), folder / "locks")
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(threads) as callers:
    for reference in callers.map(lambda number: desk.from_clip(clips[number % seeds]), range(seeds * threads)):
        print(reference.key, reference.digest, reference.outcome)
"""


def start(folder: Path, *, delay: float = 0.0, seeds: int = 1, threads: int = 1) -> subprocess.Popen[str]:
    """A process that prepares itself, says so, and asks for its clips when it is sent a line."""
    here = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": f"{here}{os.pathsep}{here.parent}"}
    arguments = [sys.executable, "-W", "error", "-c", ASK, folder, str(delay), str(seeds), str(threads)]
    process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def answers(process: subprocess.Popen[str]) -> list[list[str]]:
    """Key, digest and outcome of every request."""
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return [line.split() for line in printed.splitlines() if line != "encoding"]


def desk(folder: Path) -> ReferenceDesk:
    return ReferenceDesk(CountingEngine(folder / "encodes"), CodeCache(folder / "studio.db"), folder / "locks")


@pytest.mark.parametrize(("seeds", "threads"), [(4, 8)])
def test_processes_cost_one_encode_a_clip_and_get_one_value(tmp_path: Path, seeds: int, threads: int) -> None:
    with ThreadPoolExecutor(3) as starting:
        processes = list(starting.map(lambda _: start(tmp_path, delay=0.2, seeds=seeds, threads=threads), range(3)))
    for process in processes:
        go(process)
    results = [answer for process in processes for answer in answers(process)]
    assert len(results) == 3 * seeds * threads
    assert (tmp_path / "encodes").stat().st_size == seeds
    assert len({(key, digest) for key, digest, _ in results}) == seeds
    assert [outcome for _, _, outcome in results].count("fill") == seeds
    counters = CodeCache(tmp_path / "studio.db").counters()
    assert counters["fills"] == counters["misses"] == counters["entries"] == seeds
    assert counters["merged"] + counters["hits_disk"] + counters["hits_memory"] == len(results) - seeds


def test_a_killed_holder_of_the_lock_holds_up_nobody(tmp_path: Path) -> None:
    holder = start(tmp_path, delay=60)
    go(holder)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "encoding\n"
    waiting = ThreadPoolExecutor(1)
    waiter = waiting.submit(desk(tmp_path).from_clip, talk())
    time.sleep(0.5)
    assert not waiter.done()
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert waiter.result(20).outcome == "fill"
    waiting.shutdown()
    with connection(tmp_path / "studio.db") as db:
        assert db["codes"].count == 1


def test_what_was_stored_before_a_kill_is_there_after_it(tmp_path: Path) -> None:
    first = start(tmp_path)
    go(first)
    [[key, digest, outcome]] = answers(first)
    victim = start(tmp_path, delay=60, seeds=2)
    go(victim)
    assert victim.stdout is not None
    while victim.stdout.readline() != "encoding\n":
        pass
    victim.kill()
    victim.communicate()
    again = desk(tmp_path).from_clip(talk())
    assert outcome == "fill"
    assert (again.outcome, again.key, again.digest) == ("hit", key, digest)
    with connection(tmp_path / "studio.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
