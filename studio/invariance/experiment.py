"""How an experiment is run on the bench, and how what it found becomes a record."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from studio.invariance.lab import Lab
from studio.invariance.record import NoProgress, Progress, Record, Verdict
from studio.invariance.tally import Tally, share

T = TypeVar("T")


@dataclass(frozen=True)
class Steps:
    """Tells how far an experiment is."""

    progress: Progress
    experiment: str

    def __call__(self, items: Sequence[T], doing: str) -> Iterator[T]:
        for done, item in enumerate(items):
            self.progress.report(self.experiment, done, len(items), doing)
            yield item
        self.progress.report(self.experiment, len(items), len(items), doing)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What an experiment found, before it is a record."""

    figures: dict[str, Any]
    verdict: Verdict
    sentence: str
    setting: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """A question to the bench."""

    name: str
    question: str
    run: Callable[[Lab, Steps], Found]
    once: bool = False
    """Whether it is asked under the canonical setting only, because it sets what it needs itself."""


def perform(experiment: Experiment, lab: Lab, progress: Progress | None = None) -> Record:
    """Runs one experiment; LabStopped where `progress` says so."""
    started = time.perf_counter()
    found = experiment.run(lab, Steps(progress or NoProgress(), experiment.name))
    return Record(
        experiment=experiment.name,
        question=experiment.question,
        setting={
            "dtype": lab.probe.setting.dtype,
            "threads": lab.probe.setting.num_threads,
            "device": lab.probe.device,
            "seed": lab.seed,
            "clips": [source.name for source in lab.sources],
        }
        | found.setting,
        figures=found.figures,
        verdict=found.verdict,
        sentence=found.sentence,
        seconds=time.perf_counter() - started,
    )


def judged(tally: Tally, lab: Lab, *, otherwise: Verdict, question: str, figures: dict[str, Any]) -> Found:
    """holds where nothing differs, `otherwise` where something does, not checkable where it is noise that differs.

    `question` goes on after "0 of 400 codes" in the sentence.
    """
    if tally.unsteady:
        return unsteady(tally, figures)
    verdict: Verdict = otherwise if tally.differ else "holds"
    part = f" ({share(tally.rate)})" if tally.differ else ""
    return Found(figures=figures, verdict=verdict, sentence=f"{tally.counted}{part} {question}, {lab.here}.")


def unsteady(tally: Tally, figures: dict[str, Any]) -> Found:
    return Found(
        figures=figures,
        verdict="not checkable",
        sentence=f"{tally.unsteady} of {len(tally.comparisons)} comparisons differ when the very same is run again; "
        "as long as repeated runs differ, nothing can be said about this.",
    )


def missing(what: str) -> Found:
    """There is nothing to ask."""
    return Found(figures={}, verdict="not checkable", sentence=f"Not asked here: {what}.")
