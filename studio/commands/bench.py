"""`bench`: how fast this machine speaks, encodes and finds codes again: medians, in one run, in its own library."""

import statistics
import tempfile
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.bench_cache import measure_cache, tell_cache
from studio.commands.bench_moss import measure_moss_device, measure_moss_models
from studio.commands.session import Session, print_record, session_of

if TYPE_CHECKING:
    from studio.reference import Reference, ReferenceDesk
    from studio.store.takes import Take
    from studio.synthesis import Synthesizer

SENTENCE = "The ferry leaves at noon, and the captain never waits for anyone."
Figures = dict[str, float]


def bench(
    context: typer.Context,
    runs: Annotated[int, typer.Option(min=1, help="How often each thing is measured.")] = 20,
    cache: Annotated[bool, typer.Option("--cache", help="Only cache hits, with up to 100,000 entries.")] = False,
    moss: Annotated[str | None, typer.Option(help="Only a MOSS model's size, random weights: nano or local.")] = None,
    moss_gpu: Annotated[bool, typer.Option("--moss-gpu", help="Only the MOSS models' sizes on the GPU.")] = False,
    bits: Annotated[int | None, typer.Option(help="With --moss nano: weights packed to 16 or 8 bits.")] = None,
    toy: Annotated[bool, typer.Option("--toy", help="The MOSS models at toy size, to see that it runs.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object on one line.")] = False,
) -> None:
    """Measure speed and memory. Close other programs first: what else runs is measured too."""
    if moss_gpu:
        print_record(measure_moss_device(toy=toy))
        return
    if moss is not None:
        show(measure_moss_models(moss, bits=bits, toy=toy), as_json)
        return
    if cache:
        records = measure_cache()
        if as_json:
            print_record({"cache": records})
        else:
            tell_cache(records)
        return
    session = session_of(context)
    with tempfile.TemporaryDirectory() as folder:
        own = replace(session, settings=replace(session.settings, data_dir=Path(folder)))
        figures = measure(own, runs)
    show(figures, as_json)


def show(figures: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_record(figures)
    else:
        tell(figures)


def measure(session: Session, runs: int) -> dict[str, Any]:
    """Every figure by name; times in milliseconds, each as median, lowest and highest."""
    started = time.perf_counter()
    synthesizer = session.open_library()
    first_start = 1000 * (time.perf_counter() - started)
    takes = [speak(synthesizer, seed) for seed in range(runs)]
    fills = encode(synthesizer, runs)
    encode_ms, disk_ms = spread(fill.encode_ms for fill in fills), spread(hits_on_disk(synthesizer, session, runs))
    return {
        "engine": synthesizer.engine.name,
        "device": synthesizer.engine.device,
        "runs": runs,
        "first_start_ms": first_start,
        "realtime_speed": spread(take.realtime_speed or 0.0 for take in takes),
        "first_audio_ms": spread(take.first_audio_ms or 0.0 for take in takes),
        "encode_ms": encode_ms,
        "encode_ms_per_second": spread(fill.encode_ms / fill.duration for fill in fills),
        "hit_memory_ms": spread(look_up(synthesizer, synthesizer.desk) for _ in range(runs)),
        "hit_disk_ms": disk_ms,
        "encode_to_hit": encode_ms["median"] / disk_ms["median"],
        "peak_memory_mb": peak_memory(),
    }


def speak(synthesizer: "Synthesizer", seed: int) -> "Take":
    """One take, the voices in turn."""
    from studio.engine.sampling import SamplingOptions

    voices = synthesizer.voices.list()
    voice = voices[seed % len(voices)]
    with synthesizer.speak(SENTENCE, voice=voice, clip=None, options=SamplingOptions(seed=seed)) as speech:
        for _ in speech:
            pass
    assert speech.take is not None
    return speech.take


def encode(synthesizer: "Synthesizer", runs: int) -> list["Reference"]:
    """Fills of as many keys: the first voice's clip, each time trimmed a little further."""
    voice = synthesizer.voices.list()[0]
    clip = synthesizer.voices.clip_bytes(voice)
    return [
        synthesizer.desk.from_file(clip, voice.name, trim=(0.01 * (run + 1), voice.duration)) for run in range(runs)
    ]


def look_up(synthesizer: "Synthesizer", desk: "ReferenceDesk") -> float:
    """Milliseconds from a saved voice's key to its codes."""
    return desk.from_voice(synthesizer.voices.list()[0], synthesizer.voices).lookup_ms


def hits_on_disk(synthesizer: "Synthesizer", session: Session, runs: int) -> list[float]:
    """The same for caches that hold nothing in memory yet."""
    from studio.reference import ReferenceDesk
    from studio.store.code_cache import CodeCache

    settings = session.settings
    caches = [CodeCache(settings.database) for _ in range(runs)]
    return [look_up(synthesizer, ReferenceDesk(synthesizer.engine, cache, settings.locks_dir)) for cache in caches]


def spread(values: Iterable[float]) -> Figures:
    known = list(values)
    return {"median": statistics.median(known), "min": min(known), "max": max(known)}


def peak_memory() -> float | None:
    """The most memory this process ever held, in megabytes; None where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    import sys

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size / 1e6 if sys.platform == "darwin" else size * 1024 / 1e6


def tell(figures: dict[str, Any]) -> None:
    for name, value in figures.items():
        if isinstance(value, dict):
            print(f"{name:22} {value['median']:10.2f}   ({value['min']:.2f} to {value['max']:.2f})")
        elif isinstance(value, float):
            print(f"{name:22} {value:10.2f}")
        else:
            print(f"{name:22} {value!s:>10}")
