"""`bench --moss` and `bench --moss-gpu`: how fast the MOSS models speak on this machine, with random weights of their
real size, so that nothing is downloaded. Times do not depend on what the weights are; what is said means nothing."""

import sys
from dataclasses import asdict
from typing import Any

from studio.errors import SettingError

_RUNS = 3
_FRAMES = {"nano": 60, "local": 4}
"""In each run: a few seconds of work."""
_TOY_FRAMES = 4


def measure_moss_models(name: str, *, bits: int | None, toy: bool) -> dict[str, Any]:
    """The fast loop, with weights packed to `bits` where it says so, and the plain one on the CPU, in one run."""
    if name not in _FRAMES:
        raise SettingError("moss", name, f"choose one of {', '.join(_FRAMES)}.")
    if bits is not None and (bits not in (8, 16) or name != "nano"):
        raise SettingError("bits", bits, "choose 16 or 8, and the model nano.")
    from studio.commands.bench import peak_memory, spread
    from studio.engine.moss_bench import measure_moss
    from studio.engine.packed_weights import WeightBits

    packed = None if bits is None else WeightBits(bits)
    frames = _TOY_FRAMES if toy else _FRAMES[name]
    figures = asdict(measure_moss(f"toy-{name}" if toy else name, runs=_RUNS, frames=frames, bits=packed))
    fast, naive = figures["realtime_speed"], figures["naive_realtime_speed"]
    decoder = {f"decoder_{chunk}_frames_ms": spread(times) for chunk, times in figures.pop("decoder_ms").items()}
    measured = {key: spread(value) if isinstance(value, list) else value for key, value in figures.items()}
    ratio = {"fast_to_naive": spread(one / other for one, other in zip(fast, naive, strict=True))}
    return measured | ratio | decoder | {"peak_memory_mb": peak_memory()}


def measure_moss_device(*, toy: bool) -> dict[str, Any]:
    """Everything `device_bench` measures, on the GPU; the toys also run on a CPU. Tells on stderr how far it is."""
    from studio.engine.device_bench import bench_device, measure_device

    device = bench_device(toy=toy)
    record: dict[str, Any] = {}
    for part, figures in measure_device(device, toy=toy):
        record[part] = figures
        print(f"{part}: {figures.get('failed', 'done')}", file=sys.stderr, flush=True)
    return record
