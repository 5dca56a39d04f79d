"""Runs the lab in processes of its own, one for each setting, so that a running studio keeps its threads and dtypes."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from studio.engine.probe import ProbeSetting
from studio.errors import StudioError
from studio.invariance.child import line
from studio.invariance.record import LabEnvironment, LabRun, NoProgress, Progress, Record
from studio.invariance.request import LabRequest, split
from studio.settings import Settings

_WAIT = 10.0


class LabProcessEnded(RuntimeError):
    """A process of the lab ended before it had said everything: it broke, or somebody ended it."""


@dataclass(frozen=True)
class LabProcesses:
    """How a process of the lab is started."""

    settings: Settings
    started: Callable[[subprocess.Popen[str]], None] = lambda _: None
    """Told of every process, so that somebody else can end it."""

    def command(self, *arguments: str) -> list[str]:
        settings = self.settings
        options = ["--data-dir", str(settings.data_dir), "--device", settings.device, "--lanes", str(settings.lanes)]
        return [sys.executable, "-m", "studio", *options, "lab", *arguments]


def run_lab(
    request: LabRequest,
    settings: tuple[ProbeSetting, ...],
    processes: LabProcesses,
    progress: Progress | None = None,
    found: Callable[[Record], None] = lambda _: None,
    begun: Callable[[LabEnvironment], None] = lambda _: None,
) -> LabRun:
    """Every experiment of `request` under every setting; `begun` is told where it is run, `found` each record as it
    comes.

    Raises LabStopped where `progress` does, with the process ended, StudioError for what the user can cure, and
    LabProcessEnded.
    """
    environment: LabEnvironment | None = None
    records: list[Record] = []
    for setting, names in split(request.experiments, settings):
        own = replace(request, setting=setting, experiments=names)
        for message in _said(processes, own, progress or NoProgress()):
            if "environment" in message:
                environment = environment or LabEnvironment(**message["environment"])
                begun(environment)
            else:
                records.append(_proved(Record.from_json(message["record"]), processes))
                found(records[-1])
    if environment is None:
        raise ValueError("no experiment was asked for")
    return LabRun(environment=environment, records=tuple(records))


def _said(processes: LabProcesses, request: LabRequest, progress: Progress) -> Iterator[dict[str, Any]]:
    """What a process says beside its progress, until it ends; it is ended where nobody listens any more."""
    command = processes.command("--child")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8")  # noqa: S603
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(line(request.to_json()))
        process.stdin.close()
        processes.started(process)
        for said in process.stdout:
            message = json.loads(said)
            if "error" in message:
                raise StudioError(message["error"])
            if "progress" in message:
                progress.report(**message["progress"])
            else:
                yield message
        if process.wait():
            raise LabProcessEnded(f"the lab's process ended with status {process.returncode}")
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(_WAIT)
        process.stdout.close()


def _proved(record: Record, processes: LabProcesses) -> Record:
    """A kept case is run from its file in a fresh process, and the record says what came of it."""
    file = record.figures.get("file")
    if record.experiment != "search" or file is None:
        return record
    done = subprocess.run(  # noqa: S603
        processes.command("reproduce", file, "--json", "-"), capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 1):
        raise LabProcessEnded(f"the kept case could not be run again: {done.stderr.strip()}")
    again = json.loads(done.stdout)
    word = "Reproduced" if again["reproduced"] else "Not reproduced"
    said = f"{record.sentence} {word} from its file in a fresh process ({again['differ']} of {again['codes']} codes)."
    return replace(record, figures=record.figures | {"reproduced": again}, sentence=said)
