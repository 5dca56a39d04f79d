"""The models a person can choose: got, checked, removed, loaded and let go, each by its name in the catalogue."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from studio.engine.model_catalogue import MODELS, ModelEntry
from studio.engine.model_download import download_model
from studio.engine.model_errors import ModelDamaged, ModelLoaded, size
from studio.engine.model_folder import adopt_folder
from studio.engine.model_store import ModelStore
from studio.engine.model_transport import Patience
from studio.engine_room import EMBEDDED, EngineRoom, title_of
from studio.errors import SettingError, StudioError, UnknownModel
from studio.server.jobs import SpeechJobs
from studio.server.model_jobs import ModelJob, ModelJobs
from studio.server.model_sheet import embedded_sheet, engine_sheet, fetched, model_sheet
from studio.settings import Settings


class ModelShelf:
    """What the page and its routes may do with models. Everything that takes a while is a job."""

    def __init__(
        self,
        room: EngineRoom,
        speeches: SpeechJobs,
        settings: Settings,
        *,
        entries: Sequence[ModelEntry] = MODELS,
        patience: Patience | None = None,
    ) -> None:
        self._room, self._speeches, self._settings = room, speeches, settings
        self._store = ModelStore(settings.models_dir)
        self._entries = {entry.name: entry for entry in entries}
        self._jobs = ModelJobs()
        self._patience = patience
        self._hub = settings.hub

    def sheet(self, *, here: bool) -> dict[str, Any]:
        """The engine that speaks, the one that is being loaded, and every model; `here` where a person at this machine
        asks, who may know its folders."""
        coming, engine = self._room.coming, self._room.current.engine
        models = [embedded_sheet(self._room.embedded.engine)]
        models += [model_sheet(entry, self._store.holdings(entry), paths=here) for entry in self._entries.values()]
        for model in models:
            job = self._jobs.get(model["name"])
            model |= {"loaded": model["name"] == engine.name, "job": job and job.status()}
        return {
            "engine": engine_sheet(engine),
            "coming": coming and title_of(coming),
            "hub": self._hub if here else None,
            "here": here,
            "models": models,
        }

    def download(self, name: str, hub: str | None) -> None:
        """Begins a download, from another hub than the settings' where one is given, or goes on with one.

        Raises UnknownModel, ModelBusy, ModelLoaded, SettingError for a hub that is none.
        """
        entry = self._idle(name)
        self._hub = replace(self._settings, hub=(hub or self._settings.hub).strip().rstrip("/")).hub
        missing = {part.name: part.about_bytes for part in entry.repositories if self._store.find(part) is None}

        def work(job: ModelJob) -> str:
            manifests = download_model(
                entry, self._store, self._hub, progress=job.progress, cancel=job.stop, patience=self._patience
            )
            return fetched(entry.title, manifests)

        self._jobs.start(name, entry.title, ModelJob("download", entry.title, missing), work)

    def adopt(self, name: str, folder: str) -> None:
        """Begins to read a folder of somebody's own, to use it where it lies. Raises as `download`."""
        entry = self._idle(name)
        if not folder.strip():
            raise SettingError("the folder", folder, "type the path of a folder on this machine.")

        def work(job: ModelJob) -> str:
            adopt_folder(self._store, entry, Path(folder.strip()), progress=job.reading)
            return f"{entry.title} is used from your folder. Its files stay there and are never changed."

        self._jobs.start(name, entry.title, ModelJob("folder", entry.title, {}), work)

    def check(self, name: str) -> None:
        """Begins to read every file again. Raises UnknownModel, ModelBusy."""
        entry = self._entry(name)

        def work(job: ModelJob) -> str:
            findings = self._store.check(entry, self._hub, progress=job.reading)
            damaged = [f"{finding.file}: {finding.fault}" for finding in findings if finding.fault is not None]
            if damaged:
                raise ModelDamaged(entry.title, damaged)
            return f"All {len(findings)} files are as they were."

        self._jobs.start(name, entry.title, ModelJob("check", entry.title, {}), work)

    def use(self, name: str) -> None:
        """Begins to load a model, after letting go the one that is loaded. Raises UnknownModel, ModelBusy, and
        EngineInUse or EngineChanging; what goes wrong later is what the job says."""
        entry = self._entry(name)
        self._at_rest()

        def work(_: ModelJob) -> str:
            before = self._room.current.engine.name
            self._store.folders(entry, self._hub)  # before anything else is let go for it
            try:
                self._room.use(name)
            except StudioError as error:
                gone = before != self._room.current.engine.name
                raise StudioError(f"{error} {EMBEDDED} speaks now." if gone else str(error)) from error
            self._jobs.forget(before)
            return f"{entry.title} speaks now."

        self._jobs.start(name, entry.title, ModelJob("load", entry.title, {}), work)

    def unload(self, name: str) -> str:
        """Lets a loaded model go; what that freed, as a sentence. Raises UnknownModel, EngineInUse, EngineChanging."""
        entry = self._entry(name)
        self._at_rest()
        if self._room.current.engine.name != name:
            return f"{entry.title} is not loaded."
        freed = self._room.unload()
        self._jobs.forget(name)
        return f"{entry.title} is unloaded: {size(freed)} of memory are free again. {EMBEDDED} speaks now."

    def remove(self, name: str) -> str:
        """Removes a model's files, or forgets a folder. Raises UnknownModel, ModelBusy, ModelInUse, ModelLoaded."""
        entry = self._idle(name)
        freed = self._store.remove(entry)
        self._jobs.forget(name)
        return f"{entry.title} is removed; {size(freed)} are free again."

    def stop(self, name: str) -> None:
        """Asks the job of a model to stop; it says so when it has."""
        self._jobs.stop(self._entry(name).name)

    def close(self) -> None:
        """Stops what is being downloaded; the next download goes on there."""
        self._jobs.close()

    def _entry(self, name: str) -> ModelEntry:
        if name not in self._entries:
            raise UnknownModel(name, ", ".join(self._entries))
        return self._entries[name]

    def _idle(self, name: str) -> ModelEntry:
        """The model, whose files nobody uses now."""
        entry = self._entry(name)
        self._jobs.check_idle(name, entry.title)
        if name in (self._room.current.engine.name, self._room.coming):
            raise ModelLoaded(entry.title)
        return entry

    def _at_rest(self) -> None:
        """Stops speech that nobody came for, which would keep the engine in use."""
        self._speeches.tidy()
        self._room.check_free()
