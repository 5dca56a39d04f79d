"""Sends generated inputs through the reference desk in child processes, and counts what becomes of them.

    python tests/clip_fuzz.py FIRST LAST [FOLDER]

A child reports every input in a line and has a limit of memory (what it has after its imports and MEMORY more) and of
processor time (SECONDS an input). One that dies or says nothing for PATIENCE seconds is counted, its input kept in the
folder, and another goes on behind it. Inputs are files for half of the seeds and bytes for the others.
"""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clip_mutations import generated

MEMORY = 2**30
SECONDS = 10
PATIENCE = 600.0
CHILD = Path(__file__).with_name("clip_fuzz_child.py")


@dataclass
class Outcomes:
    """Counts by outcome: "used", a ClipError's name, "traceback", "hang" or "crash"; and what went wrong, by seed."""

    counts: Counter[str] = field(default_factory=Counter)
    faults: dict[int, str] = field(default_factory=dict)
    seconds: float = 0.0
    slowest: float = 0.0
    """Processor time of the slowest input, in seconds."""
    baseline: int = 0
    """Resident bytes of a child after its imports."""
    peak: int = 0
    """The most resident bytes of a child."""

    def add(self, seed: int, outcome: str, reason: str, folder: Path) -> None:
        self.counts[outcome] += 1
        if outcome in ("traceback", "hang", "crash"):
            self.faults[seed] = reason
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"input-{seed}").write_bytes(generated(seed))

    def __str__(self) -> str:
        counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.most_common())
        return (
            f"{self.counts.total():,} inputs in {self.seconds:.0f} s: {counts}; slowest {self.slowest:.2f} s of "
            f"processor time; peak memory {self.peak / 2**20:.0f} MiB, {self.baseline / 2**20:.0f} MiB before the first"
        )


def fuzz(first: int, last: int, folder: Path) -> Outcomes:
    """What becomes of the inputs `first` up to, not including, `last`; inputs with faults are kept in `folder`."""
    outcomes, started, seed = Outcomes(), time.monotonic(), first
    while seed < last:
        seed = _run_child(seed, last, outcomes, folder)
    outcomes.seconds = time.monotonic() - started
    return outcomes


def _run_child(first: int, last: int, outcomes: Outcomes, folder: Path) -> int:
    """The seed to go on with."""
    command = [sys.executable, str(CHILD), str(first), str(last), str(MEMORY), str(SECONDS)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    seed = first
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, errors="replace"
    ) as child:
        lines: queue.Queue[str | None] = queue.Queue()
        errors: list[str] = []
        threading.Thread(target=_pass_on, args=(child.stdout, lines), daemon=True).start()
        threading.Thread(target=lambda: errors.append(child.stderr.read() if child.stderr else ""), daemon=True).start()
        while seed < last:
            try:
                line = lines.get(timeout=PATIENCE)
            except queue.Empty:
                child.kill()
                outcomes.add(seed, "hang", f"silent for {PATIENCE:g} s", folder)
                return seed + 1
            if line is None:
                break
            seed = _note(json.loads(line), seed, outcomes, folder)
        child.wait()
    if seed < last:
        outcomes.add(seed, *_death(child.returncode, "".join(errors)), folder)
        seed += 1
    return seed


def _pass_on(stream: Any, lines: "queue.Queue[str | None]") -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _note(report: dict[str, Any], seed: int, outcomes: Outcomes, folder: Path) -> int:
    outcomes.peak = max(outcomes.peak, report["memory"])
    if "seed" not in report:
        outcomes.baseline = report["memory"]
        return seed
    assert report["seed"] == seed, "a child reports each input once, in order"
    outcomes.slowest = max(outcomes.slowest, report["seconds"])
    outcomes.add(seed, report["outcome"], report["reason"], folder)
    return seed + 1


def _death(returncode: int, errors: str) -> tuple[str, str]:
    """SIGXCPU says that the processor time was used up; whatever else ends a child is a crash."""
    outcome = "hang" if returncode == -24 else "crash"
    return outcome, f"exit status {returncode}: {errors[-2000:]}"


if __name__ == "__main__":
    result = fuzz(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3] if len(sys.argv) > 3 else "fuzz-inputs"))
    for fault in result.faults.items():
        sys.stdout.write(f"seed {fault[0]}: {fault[1]}\n")
    sys.stdout.write(f"{result}\n")
    sys.exit(1 if result.faults else 0)
