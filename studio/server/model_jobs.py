"""Work on one model that takes a while, in a thread of its own: a download, files that are read, an engine that loads.

A job belongs to the studio, not to a page: whoever asks sees how far it is, also after a reload.
"""

import threading
from collections.abc import Callable
from typing import Any, Literal

from studio.engine.model_errors import DownloadStopped, ModelBusy, ReadingStopped, size
from studio.errors import StudioError

Kind = Literal["download", "folder", "check", "load"]
BROKEN = "Something broke inside the studio. The terminal it runs in says what; try once more."
_PATIENCE = 10.0
"""Seconds that closing waits for a job; a stopped download ends within one, a model that loads may take longer."""


class ModelJob:
    """One piece of work, from its beginning until the next one on the same model."""

    def __init__(self, kind: Kind, name: str, expected: dict[str, int]) -> None:
        """`expected`: repository to bytes, what its files count for until they are known one by one."""
        self.kind: Kind = kind
        self.state: Literal["running", "done", "stopped", "failed"] = "running"
        self.said: str | None = None
        """What came of it, once it is over."""
        self.stop = threading.Event()
        self._name = name
        self._expected = expected
        self._files: dict[str, tuple[int, int]] = {}

    @property
    def running(self) -> bool:
        return self.state == "running"

    def progress(self, file: str, done: int, total: int) -> None:
        """Notes how far a file is."""
        self._files[file] = (done, total)

    def reading(self, file: str, done: int, total: int) -> None:
        """As `progress`, where nothing but this call can stop the work: raises ReadingStopped."""
        if self.stop.is_set():
            raise ReadingStopped(self._name)
        self.progress(file, done, total)

    def run(self, work: Callable[["ModelJob"], str]) -> None:
        """Does the work, which returns what came of it."""
        outcome: Literal["done", "stopped", "failed"] = "failed"
        said = BROKEN
        try:
            said = work(self)
            outcome = "done"
        except (DownloadStopped, ReadingStopped) as error:
            said, outcome = str(error), "stopped"
        except StudioError as error:
            said = str(error)
        finally:
            self.said, self.state = said, outcome

    def status(self) -> dict[str, Any]:
        """As JSON can hold it."""
        files = dict(self._files)
        begun = {file.rpartition("/")[0] for file in files}
        done = sum(done for done, _ in files.values())
        total = sum(total for _, total in files.values())
        total += sum(num_bytes for repository, num_bytes in self._expected.items() if repository not in begun)
        return {
            "kind": self.kind,
            "state": self.state,
            "said": self.said,
            "share": done / total if total else None,
            "figures": f"{size(done)} of {size(total)}" if total else "",
            "files": [
                {"name": file, "share": done / total if total else 1.0, "figures": f"{size(done)} of {size(total)}"}
                for file, (done, total) in files.items()
            ],
        }


class ModelJobs:
    """The latest job of each model; one at a time."""

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[ModelJob, threading.Thread]] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> ModelJob | None:
        found = self._jobs.get(name)
        return None if found is None else found[0]

    def check_idle(self, name: str, title: str) -> None:
        """Raises ModelBusy where a job of this model is under way."""
        job = self.get(name)
        if job is not None and job.running:
            raise ModelBusy(title)

    def start(self, name: str, title: str, job: ModelJob, work: Callable[[ModelJob], str]) -> None:
        """Begins a job in the place of the one before. Raises ModelBusy."""
        thread = threading.Thread(target=job.run, args=(work,), name=f"{job.kind} {name}", daemon=True)
        with self._lock:
            self.check_idle(name, title)
            self._jobs[name] = job, thread
            thread.start()

    def stop(self, name: str) -> None:
        """Asks the job of a model, if there is one, to stop."""
        job = self.get(name)
        if job is not None:
            job.stop.set()

    def forget(self, name: str) -> None:
        """Where what it said holds no longer."""
        with self._lock:
            self._jobs.pop(name, None)

    def close(self) -> None:
        """Stops everything and waits for it."""
        jobs = list(self._jobs.values())
        for job, _ in jobs:
            job.stop.set()
        for _, thread in jobs:
            thread.join(_PATIENCE)
