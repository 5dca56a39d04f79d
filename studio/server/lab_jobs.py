"""The invariance lab as the page uses it: one run at a time, and what the latest that found something has found."""

import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from studio.engine_room import EngineRoom, title_of
from studio.errors import NotFound, SettingError, StudioError
from studio.invariance.experiments import EXPERIMENTS, ON_REQUEST, chosen
from studio.invariance.record import LabRun
from studio.invariance.request import LabRequest, every_setting, kept_path
from studio.server.answers import file_stem
from studio.server.lab_job import LabJob
from studio.settings import Settings

SHORT = (
    "repeat-solo",
    "repeat-batch",
    "solo-batch",
    "neighbour",
    "padding",
    "trace",
    "margins",
    "audible",
    "settings",
    "cost",
    "cache",
)
"""What one click runs, in its quick size: every figure of the page in under a minute on two cores."""
_DTYPES, _THREADS = ("float32", "bfloat16"), (1, 2)
_MOST_VOICES = 20


class LabRunning(StudioError):
    def __init__(self) -> None:
        super().__init__("The lab is at work already. Wait until it is done, or stop it.")


class NotFoundInLab(NotFound):
    def __init__(self) -> None:
        super().__init__("The lab has found nothing yet that could be handed out. Let it run first.")


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What a person asks the lab for."""

    experiments: tuple[str, ...] = ()
    """Names; none means the whole set."""
    voices: tuple[str, ...] = ()
    """Ids of voices whose clips are used; none means the clips that come with the studio."""
    quick: bool = False
    every_setting: bool = False

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> "Wanted":
        """Raises SettingError for a field that is unknown or of another kind."""
        known = {field.name: field.type is bool for field in fields(cls)}
        for name, value in content.items():
            if name not in known:
                raise SettingError("the request", name, f"only {', '.join(known)} are known.")
            if known[name] and not isinstance(value, bool):
                raise SettingError(name, value, "send true or false.")
            if not known[name] and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
                raise SettingError(name, value, "send a list of names.")
        own: dict[str, Any] = {name: value if known[name] else tuple(value) for name, value in content.items()}
        return cls(**own)


class LabJobs:
    """Starts runs on whatever engine is loaded then, and keeps the results while the studio runs."""

    def __init__(self, room: EngineRoom, settings: Settings) -> None:
        self._room, self._settings = room, settings
        self._voices = room.embedded.voices
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        """Of what is written to be heard; made by the first run."""
        self._lock = threading.Lock()
        self._number = 0
        self._job: LabJob | None = None
        self._before: LabJob | None = None
        """The one before, whose results stay until this one has some."""

    def start(self, wanted: Wanted) -> None:
        """Raises LabRunning, SettingError, UnknownVoice, and StorageError for a clip that cannot be read."""
        chosen(wanted.experiments)
        if len(wanted.voices) > _MOST_VOICES:
            raise SettingError("voices", len(wanted.voices), f"choose at most {_MOST_VOICES}.")
        with self._lock:
            if self._job is not None and self._job.running:
                raise LabRunning
            self._number += 1
            self._folder = self._folder or tempfile.TemporaryDirectory(
                prefix="solo-studio-lab-", ignore_cleanup_errors=True
            )
            folder = Path(self._folder.name) / str(self._number)
            request = LabRequest(
                engine=self._room.current.engine.name,
                experiments=wanted.experiments,
                dtypes=_DTYPES,
                clips=tuple(self._clips(wanted.voices, folder / "clips")),
                quick=wanted.quick,
                sounds=kept_path(folder / "sounds"),
                smallest=kept_path(self._smallest),
            )
            settings = every_setting(_DTYPES, _THREADS) if wanted.every_setting else every_setting(_DTYPES[:1], (1,))
            self._before = self._job if self._job is not None and self._job.found else self._before
            self._job = LabJob(self._number, request, settings, folder / "sounds")
            self._job.start(self._settings)

    def stop(self) -> None:
        if self._job is not None:
            self._job.stop()

    @property
    def found(self) -> LabRun:
        """What the latest run with a result has found. Raises NotFoundInLab."""
        kept = self._kept
        if kept is None or kept.found is None:
            raise NotFoundInLab
        return kept.found

    def sound(self, name: str) -> Path:
        """A sound that the results name. Raises NotFoundInLab."""
        kept = self._kept
        clips = [clip for record in (kept.records if kept else ()) for clip in _heard(record.figures)]
        if kept is None or name not in {name for clip in clips for name in clip["sounds"].values()}:
            raise NotFoundInLab
        return kept.sounds / name

    def case(self) -> Path:
        """The smallest failing case that the search of these results has kept. Raises NotFoundInLab."""
        if not any(record.figures.get("file") for record in self.found.records) or not self._smallest.is_file():
            raise NotFoundInLab
        return self._smallest

    def sheet(self) -> dict[str, Any]:
        """What can be run, how far the run is, and which results there are."""
        kept, job = self._kept, self._job
        voices = [{"id": voice.id, "name": voice.name} for voice in self._voices.list() if not voice.builtin]
        return {
            "engine": title_of(self._room.current.engine.name),
            "experiments": [
                {
                    "name": each.name,
                    "question": each.question,
                    "short": each.name in SHORT,
                    "on_request": each.name in ON_REQUEST,
                }
                for each in EXPERIMENTS
            ],
            "voices": voices,
            "job": job and job.status(),
            "results": None if kept is None else f"{kept.number}/{len(kept.records)}",
        }

    def close(self) -> None:
        """Ends what runs, and forgets what it wrote to be heard."""
        if self._job is not None:
            self._job.close()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def _smallest(self) -> Path:
        return self._settings.data_dir / "lab" / "smallest.json"

    @property
    def _kept(self) -> LabJob | None:
        return self._job if self._job is not None and self._job.found else self._before

    def _clips(self, voices: tuple[str, ...], folder: Path) -> Iterator[str]:
        """The clips of voices as files that are named as a person calls them."""
        for number, identifier in enumerate(voices, start=1):
            voice = self._voices.get_by_id(identifier)
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{file_stem(voice.name)}-{number}"
            path.write_bytes(self._voices.clip_bytes(voice))
            yield str(path)


def _heard(figures: dict[str, Any]) -> list[dict[str, Any]]:
    return [clip for clip in figures.get("clips", ()) if isinstance(clip.get("sounds"), dict)]
