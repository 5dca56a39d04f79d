"""One model as the page shows it: what it is, what it asks for, and what of it is on this machine."""

from collections.abc import Sequence
from typing import Any

from studio.engine.interface import Engine
from studio.engine.model_catalogue import MemoryNeed, ModelEntry
from studio.engine.model_errors import size
from studio.engine.model_manifest import LOCAL, Manifest
from studio.engine.model_store import Holding
from studio.engine_room import EMBEDDED, title_of
from studio.settings import assets_dir

_DEVICES = {"cpu": "the processor", "cuda": "an NVIDIA card"}


def engine_sheet(engine: Engine) -> dict[str, Any]:
    """What the page must know of the engine that speaks, to say so and to play it."""
    return {
        "name": engine.name,
        "title": title_of(engine.name),
        "device": engine.device,
        "sample_rate": engine.sample_rate,
        "channels": engine.channels,
        "sound": _sound(engine.sample_rate, engine.channels),
    }


def embedded_sheet(engine: Engine) -> dict[str, Any]:
    """The engine that comes with the studio."""
    num_bytes = sum(path.stat().st_size for path in (assets_dir() / "model").iterdir())
    return {
        "name": engine.name,
        "title": EMBEDDED,
        "languages": ["en"],
        "state": "here",
        "embedded": True,
        "facts": [
            ("sound", _sound(engine.sample_rate, engine.channels)),
            ("licence", "Apache-2.0"),
            ("size", f"{size(num_bytes)}, comes with the studio"),
            ("runs on", "the processor; stays loaded"),
        ],
    }


def model_sheet(entry: ModelEntry, holdings: tuple[Holding, ...], *, paths: bool) -> dict[str, Any]:
    """As JSON can hold it; `paths` where whoever asks may know where folders of this machine lie."""
    return {
        "name": entry.name,
        "title": entry.title,
        "languages": list(entry.languages),
        "state": state_of(holdings),
        "embedded": False,
        "borrowed": is_borrowed(holdings),
        "parts": [repository.name.split("/")[1] for repository in entry.repositories],
        "size": size(entry.about_bytes),
        "kept": size(sum(holding.num_bytes for holding in holdings)),
        "facts": [
            ("sound", _sound(entry.sample_rate, entry.channels)),
            ("licence", entry.licence),
            ("size", _size(entry, holdings)),
            *(("folder", source) for source in _folders(holdings) if paths),
            ("memory", f"about {_memory(entry.memory)}"),
            ("runs on", "the processor will do" if entry.runs_on_cpu else "a graphics card; too slow on a processor"),
        ],
    }


def fetched(title: str, manifests: Sequence[Manifest]) -> str:
    """What a download came to, and what its files were held against."""
    files = [file for manifest in manifests for file in manifest.files]
    by_size = sum(file.check == "hub-size" for file in files)
    checked = f"{by_size} of {len(files)} files checked by their size alone" if by_size else "every file checked"
    return f"{title} is here: {size(sum(file.num_bytes for file in files))}, {checked}."


def state_of(holdings: tuple[Holding, ...]) -> str:
    """Whether all of a model is on this machine, some of it, or nothing."""
    if all(holding.manifest is not None for holding in holdings):
        return "here"
    return "partly" if any(holding.num_bytes for holding in holdings) else "absent"


def is_borrowed(holdings: tuple[Holding, ...]) -> bool:
    """Whether its files lie in somebody's own folder."""
    return any(holding.manifest is not None and holding.manifest.revision == LOCAL for holding in holdings)


def _size(entry: ModelEntry, holdings: tuple[Holding, ...]) -> str:
    if is_borrowed(holdings):
        num_bytes = sum(holding.manifest.num_bytes for holding in holdings if holding.manifest is not None)
        return f"{size(num_bytes)}, in a folder of yours"
    kept = size(sum(holding.num_bytes for holding in holdings))
    about = f"about {size(entry.about_bytes)} to download"
    return {"here": f"{kept}, on this machine", "partly": f"{about}, {kept} of it are here", "absent": about}[
        state_of(holdings)
    ]


def _folders(holdings: tuple[Holding, ...]) -> list[str]:
    return [
        holding.manifest.source
        for holding in holdings
        if holding.manifest is not None and holding.manifest.revision == LOCAL
    ]


def _memory(needs: Sequence[MemoryNeed]) -> str:
    """How much on which device; devices that need the same are named together."""
    devices: dict[tuple[int, str], list[str]] = {}
    for need in needs:
        devices.setdefault((need.num_bytes, need.dtype), []).append(_DEVICES[need.device])
    return "; ".join(
        f"{size(num_bytes)} on {' or '.join(names)} ({dtype})" for (num_bytes, dtype), names in devices.items()
    )


def _sound(sample_rate: int, channels: int) -> str:
    return f"{sample_rate / 1000:g} kHz, {'mono' if channels == 1 else 'stereo'}"
