"""The process that does a run: it loads the engine, asks the experiments and says what it finds, line by line.

It may set thread counts and dtypes as it likes, for nothing else lives in it.
"""

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from studio.audio import files
from studio.audio.transcribe import Transcriber
from studio.audio.waveform import Waveform
from studio.engine.interface import Engine
from studio.engine.probe import ProbeFactory
from studio.engine.probe_loading import load_examined
from studio.errors import NoTranscriber
from studio.invariance.clips import LabClip
from studio.invariance.environment import lab_environment
from studio.invariance.experiment import perform
from studio.invariance.experiments import chosen
from studio.invariance.lab import FULL, QUICK, Lab, StudioParts
from studio.invariance.promise import DeskPromise
from studio.invariance.request import LabRequest
from studio.reference_verify import Verification
from studio.settings import Settings, assets_dir

Say = Callable[[dict[str, Any]], None]
Library = Callable[[], Iterator[Verification]]


class SaidProgress:
    """Implements `Progress` by saying it."""

    def __init__(self, say: Say) -> None:
        self._say = say

    def report(self, experiment: str, done: int, total: int, doing: str) -> None:
        self._say({"progress": {"experiment": experiment, "done": done, "total": total, "doing": doing}})


def answer(request: LabRequest, settings: Settings, say: Say, library: Library | None = None) -> None:
    """Says the environment, then every record; StudioError where a clip or the engine cannot be used."""
    engine, probes = load_examined(request.engine, settings)
    with tempfile.TemporaryDirectory() as folder:
        lab = _bench(request, settings, (engine, probes), Path(folder), library)
        say({"environment": vars(lab_environment(engine, lab.sources, request.seed))})
        for experiment in chosen(request.experiments):
            say({"record": perform(experiment, lab, SaidProgress(say)).to_json()})


def line(message: dict[str, Any]) -> str:
    """One message as it goes through a pipe."""
    return json.dumps(message) + "\n"


def _bench(
    request: LabRequest,
    settings: Settings,
    examined: tuple[Engine, ProbeFactory],
    folder: Path,
    library: Library | None,
) -> Lab:
    engine, probes = examined
    return Lab(
        probe=probes(request.setting),
        probes=probes,
        sources=load_clips(engine, request.clips),
        seed=request.seed,
        size=QUICK if request.quick else FULL,
        dtypes=request.dtypes,
        parts=StudioParts(
            engine=engine,
            promise=lambda: DeskPromise(engine, folder),
            library=library,
            transcribe=_recogniser(settings),
            sounds=None if request.sounds is None else Path(request.sounds),
            smallest=None if request.smallest is None else Path(request.smallest),
        ),
    )


def load_clips(engine: Engine, paths: tuple[str, ...]) -> list[LabClip]:
    """The user's clips, prepared; the built-in voices where there is none, and beside a single one, as neighbours."""
    given = [_prepared(engine, Path(path), Path(path).name) for path in paths]
    if len(given) > 1:
        return given
    return given + [_prepared(engine, path, path.stem) for path in sorted((assets_dir() / "voices").glob("*.flac"))]


def _prepared(engine: Engine, path: Path, name: str) -> LabClip:
    samples, hop = engine.prepare(files.read(path, name=name)).samples, engine.codec.hop_length
    return LabClip(name, samples[:, : samples.shape[1] // hop * hop])


def _recogniser(settings: Settings) -> Callable[[Waveform], str] | None:
    transcriber = Transcriber(settings.asr_dir)
    try:
        transcriber.check()
    except NoTranscriber:
        return None
    return transcriber.transcribe
