"""`models`: which speech models there are, and bringing them here, checking them and removing them."""

import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.golden import golden
from studio.commands.session import Json, Session, print_record, session_of
from studio.errors import SettingError
from studio.settings import Settings

if TYPE_CHECKING:
    from studio.engine.model_catalogue import ModelEntry
    from studio.engine.model_manifest import Manifest
    from studio.engine.model_store import Holding, ModelStore

group = typer.Typer(help="The speech models that can be downloaded.", rich_markup_mode=None)

Name = Annotated[str, typer.Argument(help="A name that `models list` shows.")]


@group.command("list")
def list_models(context: typer.Context, as_json: Json = False) -> None:
    """Show every model we know, and what of it is on this machine."""
    from studio.engine.model_catalogue import MODELS

    store = open_store(session_of(context))
    for entry in MODELS:
        holdings = store.holdings(entry)
        if as_json:
            print_record(record(entry, holdings))
        else:
            print(line(entry, holdings))


@group.command("get")
def get(
    context: typer.Context,
    name: Name,
    folder: Annotated[Path | None, typer.Option("--from", help="Use a folder that has the files, in place.")] = None,
    mirror: Annotated[str | None, typer.Option(help="Address of another hub; also STUDIO_HUB.")] = None,
    as_json: Json = False,
) -> None:
    """Download a model, going on where an earlier download stopped; what is there already is not asked for."""
    from studio.engine.model_catalogue import find_model
    from studio.engine.model_download import download_model
    from studio.engine.model_folder import adopt_folder

    if folder is not None and mirror is not None:
        raise SettingError("--mirror", mirror, "with --from nothing is downloaded; give one of the two.")
    entry = find_model(name)
    session = session_of(context)
    store = open_store(session)
    if folder is not None:
        manifests = adopt_folder(store, entry, folder, progress=Meter())
    else:
        hub = from_mirror(session.settings, mirror).hub
        manifests = download_model(entry, store, hub, progress=Meter())
    if as_json:
        print_record({"name": entry.name, "repositories": [stored(manifest) for manifest in manifests]})
        return
    for manifest in manifests:
        print(f"{manifest.repository} is here: {len(manifest.files)} files, {manifest.num_bytes:,} bytes")
        print(f"  from {manifest.source}, {said_of_checks(manifest)}")


@group.command("check")
def check(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Read every file of a model again and compare; nothing is changed. Status 1 where a file is damaged."""
    from studio.engine.model_catalogue import find_model

    session = session_of(context)
    entry = find_model(name)
    findings = open_store(session).check(entry, session.settings.hub, progress=Meter())
    damaged = [finding for finding in findings if finding.fault is not None]
    if as_json:
        files = [dataclasses.asdict(finding) for finding in findings]
        print_record({"name": entry.name, "damaged": len(damaged), "files": files})
    else:
        for finding in findings:
            print(f"{finding.file}: {finding.fault or 'as it was'}")
        if damaged:
            print(f"`models remove {name}` and then `models get {name}` brings it anew.")
    if damaged:
        raise typer.Exit(1)


@group.command("remove")
def remove(context: typer.Context, name: Name, as_json: Json = False) -> None:
    """Remove a model and what is left of stopped downloads of it; a folder of your own is only forgotten."""
    from studio.engine.model_catalogue import find_model

    entry = find_model(name)
    freed = open_store(session_of(context)).remove(entry)
    if as_json:
        print_record({"name": entry.name, "freed_bytes": freed})
    else:
        print(f"{entry.title} is removed; {freed:,} bytes are free again.")


group.command("golden")(golden)


def open_store(session: Session) -> "ModelStore":
    from studio.engine.model_store import ModelStore

    return ModelStore(session.settings.models_dir)


def from_mirror(settings: Settings, mirror: str | None) -> Settings:
    """Raises SettingError where the mirror is no address to download from."""
    return settings if mirror is None else dataclasses.replace(settings, hub=mirror.rstrip("/"))


def state(holdings: "tuple[Holding, ...]") -> str:
    if all(holding.manifest is not None for holding in holdings):
        return "here"
    return "partly" if any(holding.num_bytes for holding in holdings) else "absent"


def line(entry: "ModelEntry", holdings: "tuple[Holding, ...]") -> str:
    from studio.engine.model_errors import size

    there = sum(holding.num_bytes for holding in holdings)
    what = f"{entry.title}, {entry.sample_rate / 1000:g} kHz, {len(entry.languages)} languages, {entry.licence}"
    least = min(entry.memory, key=lambda need: need.num_bytes)
    return (
        f"{entry.name:12} {state(holdings):7} {size(there):>9} of about {size(entry.about_bytes)}: {what}; "
        f"memory from {size(least.num_bytes)}{'' if entry.runs_on_cpu else ', wants a graphics card'}"
    )


def record(entry: "ModelEntry", holdings: "tuple[Holding, ...]") -> dict[str, Any]:
    return {
        "name": entry.name,
        "title": entry.title,
        "state": state(holdings),
        "bytes": sum(holding.num_bytes for holding in holdings),
        "about_bytes": entry.about_bytes,
        "licence": entry.licence,
        "languages": list(entry.languages),
        "sample_rate": entry.sample_rate,
        "channels": entry.channels,
        "runs_on_cpu": entry.runs_on_cpu,
        "memory": [dataclasses.asdict(need) for need in entry.memory],
        "repositories": [
            {"repository": holding.repository, "bytes": holding.num_bytes}
            | {"revision": holding.manifest and holding.manifest.revision}
            for holding in holdings
        ],
    }


def stored(manifest: "Manifest") -> dict[str, Any]:
    return dataclasses.asdict(manifest) | {"bytes": manifest.num_bytes}


def said_of_checks(manifest: "Manifest") -> str:
    """What the files were held against, in words; the weakest check first."""
    words = {
        "none": "{} not known to the catalogue",
        "hub-size": "{} checked by size alone, for want of a digest",
        "hub-git-sha1": "{} checked against the hub's git SHA-1",
        "hub-sha256": "{} checked against the hub's SHA-256",
        "catalogue": "{} checked against the catalogue's SHA-256",
    }
    counts = {check: sum(file.check == check for file in manifest.files) for check in words}
    return ", ".join(words[check].format(count) for check, count in counts.items() if count)


class Meter:
    """Shows on standard error how far a file is: a line that is written over in a terminal, else nothing."""

    def __init__(self) -> None:
        self._shown = 0.0

    def __call__(self, file: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not sys.stderr.isatty() or (done < total and now - self._shown < 0.2):
            return
        self._shown = now
        share = done / total if total else 1.0
        print(
            f"\r{file}: {share:4.0%} of {total:,} bytes", end="\n" if done == total else "", file=sys.stderr, flush=True
        )
