"""Keep a golden record in a file, and hold what is computed here against one from elsewhere. The file is safetensors:
arrays and a few words about where they come from, and never code."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from studio.engine.golden_record import GoldenRecord, golden_record
from studio.engine.moss_engine import MossEngine
from studio.errors import SettingError, StorageError

FORMAT = "1"
PLACE = ("device", "dtype", "torch", "cuda", "threads", "machine")
"""What may differ between two machines with the same model."""
_SHARE_OF_CODES = 0.02
_SAMPLES = 1e-4
_LOGITS = {"float32": 1e-4, "bfloat16": 0.05}
"""Parts of the largest logit: by how much others may differ in that dtype."""


@dataclass(frozen=True)
class GoldenFinding:
    """One line of a comparison."""

    item: str
    said: str
    fits: bool


def write_golden(record: GoldenRecord, path: Path) -> None:
    """Raises StorageError where the file cannot be written."""
    arrays = {name: np.ascontiguousarray(array) for name, array in record.arrays.items()}
    try:
        save_file(arrays, path, metadata=record.made | {"format": FORMAT})
    except (OSError, SafetensorError) as error:
        raise StorageError(str(path.parent), str(error)) from error


def read_golden(path: Path) -> GoldenRecord:
    """Raises SettingError where the file is not there, or is none that `write_golden` made."""
    try:
        with safe_open(path, framework="numpy") as file:
            made = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dictionary
    except (OSError, SafetensorError) as error:
        raise SettingError("--check", str(path), f"it cannot be read ({error}).") from error
    if made.pop("format", None) != FORMAT:
        raise SettingError("--check", str(path), "it is no file that `models golden --write` makes.")
    return GoldenRecord(arrays=arrays, made=made)


def check_golden(engine: MossEngine, expected: GoldenRecord) -> list[GoldenFinding]:
    """What is computed here for the clip of `expected`, held against it item by item.

    In the same place (device, dtype, versions) codes must be equal. Elsewhere up to 2 % of them may differ, because a
    last bit near a boundary decides a code.
    """
    here = golden_record(engine, expected.arrays.get("clip"))
    findings = [
        GoldenFinding(
            word, f"{expected.made.get(word)}, here {here.made[word]}", expected.made.get(word) == here.made[word]
        )
        for word in ("model", "revision", "codec_digest")
    ]
    differing = [word for word in PLACE if expected.made.get(word) != here.made[word]]
    said = ", ".join(f"{word} {expected.made.get(word)!r}, here {here.made[word]!r}" for word in differing)
    findings.append(GoldenFinding("place", said or "the same", fits=True))
    for name, array in here.arrays.items():
        findings.append(_compare(name, array, expected, dtype=here.made["dtype"], same_place=not differing))
    unknown = sorted(expected.arrays.keys() - here.arrays.keys())
    return findings + [GoldenFinding(name, "nothing here has this name", fits=False) for name in unknown]


def _compare(name: str, array: np.ndarray, expected: GoldenRecord, *, dtype: str, same_place: bool) -> GoldenFinding:
    wanted = expected.arrays.get(name)
    if wanted is None:
        return GoldenFinding(name, "missing from the file", fits=False)
    if (wanted.shape, wanted.dtype) != (array.shape, array.dtype):
        shapes = f"{wanted.dtype} {wanted.shape}, here {array.dtype} {array.shape}"
        return GoldenFinding(name, shapes, fits=False)
    if array.dtype.kind == "i":
        differ = int((array != wanted).sum())
        allowed = _SHARE_OF_CODES if name == "codes" and not same_place else 0.0
        return GoldenFinding(name, f"{differ} of {array.size} differ", fits=differ <= allowed * array.size)
    largest = float(np.abs(array - wanted).max())
    coarsest = max((dtype, expected.made.get("dtype", dtype)), key=lambda one: _LOGITS.get(one, 0.0))
    limit = _SAMPLES if name == "decoded" else _LOGITS.get(coarsest, 0.0) * float(np.abs(wanted).max())
    return GoldenFinding(name, f"differs by {largest:.2e} at most, {limit:.2e} are allowed", fits=largest <= limit)
