"""What a run of the lab is asked for, as it goes to the process that does it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from studio.engine.probe import CANONICAL, ProbeSetting
from studio.invariance.experiments import chosen


@dataclass(frozen=True, kw_only=True)
class LabRequest:
    """One process: some experiments under one setting."""

    engine: str
    experiments: tuple[str, ...]
    setting: ProbeSetting = CANONICAL
    dtypes: tuple[str, ...] = ("float32", "bfloat16")
    """For the experiments that go through several."""
    clips: tuple[str, ...] = ()
    """Files of the user; none means the built-in voices."""
    seed: int = 0
    quick: bool = False
    sounds: str | None = None
    smallest: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "LabRequest":
        own: dict[str, Any] = {name: tuple(fields[name]) for name in ("experiments", "dtypes", "clips")}
        own["setting"] = ProbeSetting(**fields["setting"])
        return cls(**{**fields, **own})


def every_setting(dtypes: tuple[str, ...], threads: tuple[int, ...]) -> tuple[ProbeSetting, ...]:
    """All of them, the canonical one first where it is among them."""
    return tuple(ProbeSetting(dtype=dtype, num_threads=count) for dtype in dtypes for count in threads)


def split(names: tuple[str, ...], settings: tuple[ProbeSetting, ...]) -> Iterator[tuple[ProbeSetting, tuple[str, ...]]]:
    """Which experiments run under which setting: those that set what they need themselves under the first only."""
    experiments = chosen(names)
    for place, setting in enumerate(settings):
        here = tuple(experiment.name for experiment in experiments if place == 0 or not experiment.once)
        if here:
            yield setting, here


def kept_path(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())
