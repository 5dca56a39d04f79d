"""What an experiment of the invariance lab hands back: plain records that can be saved, drawn and asserted on.

Knows no engine. Everything in a record is plain JSON: numbers, sentences, lists and objects.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

FORMAT = 1
Verdict = Literal["holds", "differs", "broken", "not checkable"]
"""holds: equal, or as promised. differs: other shapes gave other codes, which they may. broken: what must be equal is
not. not checkable: nothing can be said here, and the sentence says why."""
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


class LabStopped(Exception):
    """The person who started the run has stopped it."""


class Progress(Protocol):
    """Who is told how far a run is."""

    def report(self, experiment: str, done: int, total: int, doing: str) -> None:
        """`done` of `total` steps of an experiment; raises LabStopped where the run is to end."""
        ...


class NoProgress:
    """Implements `Progress` for whoever only waits."""

    def report(self, experiment: str, done: int, total: int, doing: str) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Record:
    """One experiment under one setting."""

    experiment: str
    """Its name on the command line."""
    question: str
    setting: dict[str, Any]
    """`dtype`, `threads`, `seed`, the names of the `clips`, and what else decides the figures."""
    figures: dict[str, Any]
    verdict: Verdict
    sentence: str
    """The verdict with its figures, as a person would say it."""
    seconds: float

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise ValueError(f"{self.verdict!r} is no verdict")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "Record":
        """Raises TypeError or ValueError where the fields are not those of a record."""
        return cls(**fields)


@dataclass(frozen=True, kw_only=True)
class LabEnvironment:
    """Where a run was made, and on what."""

    engine: str
    codec_id: str
    codec_digest: str
    """SHA-256 over the codec's configuration and weights."""
    device: str
    processor: str
    """The maker's name of the processor, or of the graphics card that computed."""
    cores: int
    system: str
    python_version: str
    torch_version: str
    cuda_version: str | None
    canonical_dtype: str
    canonical_threads: int
    num_codebooks: int
    codebook_size: int
    frame_rate: float
    clips: dict[str, str]
    """SHA-256 of the prepared samples of each clip, by its name."""
    seed: int


@dataclass(frozen=True, kw_only=True)
class LabRun:
    """All that a run found."""

    environment: LabEnvironment
    records: tuple[Record, ...]

    def to_json(self) -> dict[str, Any]:
        """The object that is saved: `format`, `environment` and `experiments`."""
        experiments = [record.to_json() for record in self.records]
        return {"format": FORMAT, "environment": asdict(self.environment), "experiments": experiments}

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    @property
    def broken(self) -> tuple[Record, ...]:
        return tuple(record for record in self.records if record.verdict == "broken")


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The one that must be said of several: broken, else not checkable, else differs, else holds."""
    said = set(verdicts)
    order: tuple[Verdict, ...] = ("broken", "not checkable", "differs", "holds")
    return next(verdict for verdict in order if verdict in said or verdict == "holds")
