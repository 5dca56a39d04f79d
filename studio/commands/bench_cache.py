"""`bench --cache`: how long a hit takes, from memory and from disk, with few and with many entries."""

import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from studio.store.code_cache import CodeCache

ENTRIES = (10, 1_000, 100_000)
SHAPE = (4, 100)
"""Codes of 8 s of the embedded voice."""
LOOKUPS = 5_000
_BATCH = 10_000


def measure_cache(entries: tuple[int, ...] = ENTRIES, lookups: int = LOOKUPS) -> list[dict[str, Any]]:
    """One record a number of entries; times in milliseconds, of all looks and of those that nobody interrupted."""
    records = []
    for count in entries:
        with tempfile.TemporaryDirectory() as folder:
            records.append(_measure(Path(folder) / "studio.db", count, lookups))
    return records


def _measure(database: Path, count: int, lookups: int) -> dict[str, Any]:
    import numpy as np

    from studio.store.code_cache import CodeCache

    keys = _fill(database, count)
    rng = np.random.default_rng(0)
    asked = [keys[index] for index in rng.integers(0, count, lookups)]
    cache = CodeCache(database)
    for key in asked:  # warms the page cache
        assert cache.look(key) is not None
    disk = _times(lambda key: cache.look(key), asked)
    few = asked[: min(lookups, 1000)]
    for key in few:
        cache.get(key)
    memory = _times(lambda key: cache.get(key), (few * (lookups // len(few) + 1))[:lookups])
    _check_memory(cache, lookups)
    cache.close()
    size = database.stat().st_size
    return {
        "entries": count,
        **{f"memory_{name}": value for name, value in memory.items()},
        **{f"disk_{name}": value for name, value in disk.items()},
        "bytes_per_entry": size / count,
        "codes_bytes_per_entry": 2 * SHAPE[0] * SHAPE[1],
        "database_mb": size / 1e6,
    }


def _check_memory(cache: "CodeCache", lookups: int) -> None:
    """That what was measured as memory came from there."""
    assert cache.counters()["hits_memory"] >= lookups


def _fill(database: Path, count: int) -> list[str]:
    """Writes so many sound entries with codes of their own, and returns their keys."""
    import numpy as np

    from studio.store import code_rows
    from studio.store.database import transaction

    provenance = code_rows.Provenance(
        device="cpu",
        torch_version="2.13.0+cpu",
        cuda_version=None,
        num_threads=1,
        encode_seconds=0.2,
        filled=time.time(),
        codec_id="solo-harmonic",
        recipe="mono-mean,dc-removed,sinc6-24k,peak-0.6-max-30db,floor-1920/1",
    )
    rng = np.random.default_rng(1)
    keys = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(count)]
    for start in range(0, count, _BATCH):
        with transaction(database) as db:
            for key in keys[start : start + _BATCH]:
                codes = rng.integers(0, 1024, SHAPE)
                code_rows.fill(db, code_rows.CachedCodes.of(key, codes, provenance), "c" * 64)
    return keys


def _times(look: Callable[[str], object], keys: list[str]) -> dict[str, float | None]:
    """Milliseconds of one look by the clock: of all, and of those in which no other program took the processor."""
    import numpy as np

    wall, undisturbed = [], []
    for key in keys:
        before, started = _preemptions(), time.perf_counter()
        look(key)
        wall.append(time.perf_counter() - started)
        if before is not None and _preemptions() == before:
            undisturbed.append(wall[-1])
    figures: dict[str, float | None] = {}
    for name, values in (("", wall), ("undisturbed_", undisturbed)):
        for share in (50, 99):
            figures[f"{name}p{share}_ms"] = float(np.percentile(values, share)) * 1000 if values else None
    return figures | {"disturbed": len(wall) - len(undisturbed) if undisturbed else None}


def _preemptions() -> int | None:
    """How often this thread lost the processor to another; None where the system does not say."""
    try:
        import resource
    except ImportError:
        return None
    which = getattr(resource, "RUSAGE_THREAD", None)
    return None if which is None else resource.getrusage(which).ru_nivcsw


def tell_cache(records: list[dict[str, Any]]) -> None:
    for record in records:
        size = f"{record['bytes_per_entry']:,.0f} bytes each on disk, codes {record['codes_bytes_per_entry']:,} of them"
        print(f"{record['entries']:,} entries: {size}; database {record['database_mb']:.1f} MB")
        for place in ("memory", "disk"):
            p50, p99 = record[f"{place}_p50_ms"], record[f"{place}_p99_ms"]
            print(f"  hit from {place:6}  p50 {p50:.4f}  p99 {p99:.4f} ms", end="")
            if record[f"{place}_disturbed"] is None:
                print()
                continue
            p50, p99 = record[f"{place}_undisturbed_p50_ms"], record[f"{place}_undisturbed_p99_ms"]
            print(f"; without {record[f'{place}_disturbed']} that others interrupted: p50 {p50:.4f}  p99 {p99:.4f} ms")
