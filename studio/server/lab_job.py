"""One run of the invariance lab: in processes of its own, watched from a thread, its records kept as they come.

A run belongs to the studio, not to a page: whoever asks sees how far it is, also after a reload.
"""

import os
import subprocess
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from studio.engine.probe import ProbeSetting
from studio.errors import StudioError
from studio.invariance.experiments import BY_NAME
from studio.invariance.record import VERDICTS, LabEnvironment, LabRun, LabStopped, Record
from studio.invariance.request import LabRequest, split
from studio.invariance.runner import LabProcessEnded, LabProcesses, run_lab
from studio.settings import Settings

BROKEN = "Something broke in the lab's own process. The terminal the studio runs in says what; what was found is kept."
STOPPED = "Stopped. What was found until then is kept."
_YIELDS = 10
"""Steps by which the lab's processes are less urgent than the studio, where the system knows such steps."""
_PATIENCE = 10.0


@dataclass(frozen=True)
class Now:
    """How far the experiment is that runs."""

    experiment: str
    done: int
    total: int
    doing: str


class LabJob:
    """A run from its beginning until the next one. Implements `Progress`."""

    def __init__(self, number: int, request: LabRequest, settings: tuple[ProbeSetting, ...], sounds: Path) -> None:
        self.number = number
        self.state: Literal["running", "done", "stopped", "failed"] = "running"
        self.said = ""
        """What came of it, once it is over."""
        self.sounds = sounds
        self.records: tuple[Record, ...] = ()
        self._request, self._settings = request, settings
        self._plan = [name for _, names in split(request.experiments, settings) for name in names]
        self._environment: LabEnvironment | None = None
        self._now: Now | None = None
        self._share = 0.0
        self._stop = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread: threading.Thread | None = None
        self._started = self._ended = time.monotonic()

    @property
    def running(self) -> bool:
        return self.state == "running"

    @property
    def found(self) -> LabRun | None:
        """What it has found so far; None before its first record."""
        where, records = self._environment, self.records
        return LabRun(environment=where, records=records) if where is not None and records else None

    def start(self, settings: Settings) -> None:
        self._thread = threading.Thread(target=self._run, args=(settings,), name="invariance lab", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends its process, whatever that is doing; the job says so when it has."""
        self._stop.set()
        if self._process is not None:
            self._process.terminate()

    def close(self) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join(_PATIENCE)

    def report(self, experiment: str, done: int, total: int, doing: str) -> None:
        """Notes how far an experiment is; LabStopped where the run is to end."""
        if self._stop.is_set():
            raise LabStopped
        self._now = Now(experiment, done, total, doing)
        part = 0.9 * done / total if total else 0.0  # an experiment may go through several such rounds
        self._share = max(self._share, (len(self.records) + part) / len(self._plan))

    def status(self) -> dict[str, Any]:
        """As JSON can hold it."""
        place = min(len(self.records), len(self._plan) - 1)
        now = self._now if self._now and self._now.experiment == self._plan[place] else None
        return {
            "state": self.state,
            "said": self.said,
            "stopping": self.running and self._stop.is_set(),
            "share": self._share,
            "number": place + 1,
            "of": len(self._plan),
            "experiment": self._plan[place],
            "question": BY_NAME[self._plan[place]].question,
            "doing": f"{now.doing}, {now.done} of {now.total}" if now else "",
            "seconds": (time.monotonic() if self.running else self._ended) - self._started,
        }

    def _run(self, settings: Settings) -> None:
        outcome: Literal["done", "stopped", "failed"] = "failed"
        said = BROKEN
        try:
            processes = LabProcesses(settings, self._watch)
            run_lab(self._request, self._settings, processes, self, self._keep, self._begin)
            outcome, said = "done", ""
        except LabStopped:
            outcome, said = "stopped", STOPPED
        except LabProcessEnded:
            if self._stop.is_set():
                outcome, said = "stopped", STOPPED
        except StudioError as error:
            said = str(error)
        finally:
            self._ended = time.monotonic()
            self.said = said or self._summary()
            self.state = outcome

    def _summary(self) -> str:
        counts = [(verdict, sum(each.verdict == verdict for each in self.records)) for verdict in VERDICTS]
        told = ", ".join(f"{count} × {verdict}" for verdict, count in counts if count)
        many = len(self.records)
        return f"{many} experiment{'s' if many > 1 else ''} in {self._ended - self._started:.0f} s: {told}."

    def _begin(self, environment: LabEnvironment) -> None:
        self._environment = environment

    def _keep(self, record: Record) -> None:
        """Without the folder of a kept case, which says nothing to whoever gets the report."""
        file = record.figures.get("file")
        if file is not None:
            record = replace(record, figures=record.figures | {"file": Path(file).name})
        self.records = (*self.records, record)

    def _watch(self, process: subprocess.Popen[str]) -> None:
        """Makes a process give way to speech, and ends it where the run is to end."""
        self._process = process
        if hasattr(os, "setpriority") and process.poll() is None:
            os.setpriority(os.PRIO_PROCESS, process.pid, os.getpriority(os.PRIO_PROCESS, 0) + _YIELDS)
        if self._stop.is_set():
            process.terminate()
