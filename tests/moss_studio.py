"""Toy MOSS models where the studio looks for models: on a toy hub, in a folder, or loaded as an engine."""

from dataclasses import replace
from pathlib import Path

from toy_hub import ToyHub
from toy_moss import Files, codec_files, local_files, nano_files, write_files

from studio.engine.model_catalogue import MOSS_LOCAL, MOSS_NANO, ModelEntry
from studio.engine.model_folder import adopt_folder
from studio.engine.model_store import ModelStore
from studio.engine.moss_engine import MossEngine
from studio.engine.moss_loading import load_moss
from studio.settings import Settings

TOY_NANO = MOSS_NANO
TOY_LOCAL = replace(MOSS_LOCAL, memory=MOSS_NANO.memory, runs_on_cpu=True)
"""As the catalogue has it, for machines that a real one would not fit into."""


def publish_nano(hub: ToyHub, speech: Files | None = None) -> None:
    """Both parts, under the commits that the catalogue pins."""
    for repository, files in zip(MOSS_NANO.repositories, (speech or nano_files(), codec_files()), strict=True):
        hub.publish(repository.name, files, commit=repository.revision)


def write_model(folder: Path, entry: ModelEntry, speech: Files | None = None, codec: Files | None = None) -> Path:
    """Both parts below a folder, as a person keeps them."""
    if speech is None:
        speech = nano_files() if entry.name == "moss-nano" else local_files()
    for repository, files in zip(entry.repositories, (speech, codec or codec_files()), strict=True):
        write_files(folder / repository.name.split("/")[1], files)
    return folder


def toy_engine(
    folder: Path, entry: ModelEntry, speech: Files | None = None, codec: Files | None = None, *, lanes: int = 1
) -> MossEngine:
    """The engine of a toy model that lies below `folder`."""
    settings = Settings(data_dir=folder / "data", lanes=lanes)
    adopt_folder(ModelStore(settings.models_dir), entry, write_model(folder / "model", entry, speech, codec))
    return load_moss(entry, settings)
