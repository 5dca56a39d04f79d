"""Read the weight files of a released checkpoint folder, and fill a module with them to the last tensor.

Knows file layouts and the accounting of names, nothing of any model. Every failure is a CheckpointError (which is a
WeightsError) that names the folder, what is wrong with it and the cure; nothing is filled half.
"""

import json
import pickle
import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from studio.errors import CheckpointError

_NORM_SPELLINGS = (
    (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
    (".weight_g", ".weight_v"),
)
"""A weight-normalised weight is stored as a length for each output channel and a direction: both names, new and old."""
_DAMAGE = (
    pickle.UnpicklingError,
    RuntimeError,
    EOFError,
    OSError,
    ValueError,
    LookupError,
    AssertionError,
    struct.error,
)
"""What the reader of pickles raises on damaged bytes, found by damaging some."""
_NAMED = 3
"""How many names an error gives before it only counts."""


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """All tensors of a folder in the released layout, on the CPU, in the dtype they are stored in.

    Taken are, the first that is there: `model.safetensors`, `model.safetensors.index.json` with the shards it names,
    `pytorch_model.bin` (read without running any code of it), `pytorch_model.bin.index.json` with its shards. Tensors
    of a safetensors file are mapped, not read: those that nobody uses cost no memory.

    Raises CheckpointError where there is none of these, a file is missing or damaged, an index names a file outside the
    folder, or an index and its shards do not hold the same tensors.
    """
    for stem, read in (("model.safetensors", _read_safetensors), ("pytorch_model.bin", _read_pickle)):
        if (folder / stem).is_file():
            return read(folder / stem)
        if (folder / f"{stem}.index.json").is_file():
            return _read_shards(folder / f"{stem}.index.json", read)
    raise CheckpointError(
        str(folder), "it holds neither model.safetensors nor pytorch_model.bin, nor an index of either"
    )


def load_strictly(
    module: nn.Module, tensors: Mapping[str, Tensor], *, source: str, ignored: Collection[str] = ()
) -> None:
    """Fills every parameter and persistent buffer of `module` with the tensor of its name, exactly once.

    `module` may be on the meta device: tensors are assigned, not copied, and only cast where the module has another
    dtype or is on another device already. So the module says which dtype it wants, and memory is not held twice.
    Tensors named in `ignored` need not be there and may be.

    Raises CheckpointError, with `module` untouched, where a tensor is missing, has no place, or has another shape; the
    first few are named and all are counted. `source` names the checkpoint in the sentence.
    """
    wanted = module.state_dict(keep_vars=True)
    assert len({id(tensor) for tensor in wanted.values()}) == len(wanted), "a tied tensor has one name in our modules"
    assert wanted.keys().isdisjoint(ignored), "what the module wants cannot be ignored"
    shared = wanted.keys() & tensors.keys()
    faults = {
        "missing": wanted.keys() - shared,
        "unknown": tensors.keys() - shared - set(ignored),
        "of another shape": [name for name in shared if wanted[name].shape != tensors[name].shape],
    }
    _refuse(source, faults)
    module.load_state_dict({name: _fitted(tensors[name], place) for name, place in wanted.items()}, assign=True)
    kept = module.state_dict().keys()
    derived = [name for name, buffer in module.named_buffers() if name not in kept and buffer.is_meta]
    assert not derived, f"no file fills the derived buffers {derived}: make them on a real device"


def parameter_total(module: nn.Module) -> int:
    """How many numbers the module's parameters hold; a tied parameter counts once."""
    return sum(parameter.numel() for parameter in module.parameters())


def tensor_bytes(module: nn.Module) -> int:
    """Bytes of the module's parameters, buffers and packed weights; what two places share counts once."""
    packed = sum(getattr(part, "packed_bytes", 0) for part in module.modules())
    return packed + sum(tensor.numel() * tensor.element_size() for tensor in {*module.parameters(), *module.buffers()})


def fold_weight_norms(tensors: Mapping[str, Tensor], *, source: str) -> dict[str, Tensor]:
    """The same tensors with every weight-normalised weight as one plain float32 `weight`.

    The weight is length times direction over the direction's Euclidean norm, one norm for each output channel (the
    first axis). Both spellings count: `weight_g` and `weight_v`, `parametrizations.weight.original0` and `original1`.

    Raises CheckpointError where one half is missing, the halves do not fit, or the plain weight is there as well.
    """
    folded = dict(tensors)
    for length_end, direction_end in _NORM_SPELLINGS:
        for owner in {
            name.removesuffix(end) for end in (length_end, direction_end) for name in tensors if name.endswith(end)
        }:
            length, direction = folded.pop(owner + length_end, None), folded.pop(owner + direction_end, None)
            if length is None or direction is None or f"{owner}.weight" in folded:
                raise CheckpointError(source, f"the normalised weight of {owner} is not stored as one pair")
            if not direction.dim() or length.shape != (len(direction), *[1] * (direction.dim() - 1)):
                raise CheckpointError(source, f"the normalised weight of {owner} has a length of another shape")
            folded[f"{owner}.weight"] = _unit(direction.float()) * length.float()
    return folded


def drop_tied(tensors: Mapping[str, Tensor], ties: Mapping[str, str], *, source: str) -> dict[str, Tensor]:
    """The same tensors without the duplicates: `ties` gives for the name of each duplicate the name that stays.

    A duplicate that is absent is no fault. Raises CheckpointError where one is there and is not equal to what stays,
    bit for bit: then the checkpoint is not the tied model it says it is.
    """
    kept = dict(tensors)
    for duplicate, original in ties.items():
        if duplicate not in kept or original not in kept:
            continue
        if not torch.equal(kept.pop(duplicate), kept[original]):
            raise CheckpointError(source, f"{duplicate} should equal {original} and does not")
    return kept


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(str(path.parent), f"{path.name} is damaged") from error


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise CheckpointError(str(path.parent), f"{path.name} is damaged, or holds more than tensors") from error
    if not isinstance(content, dict) or not all(
        isinstance(name, str) and isinstance(value, Tensor) for name, value in content.items()
    ):
        raise CheckpointError(str(path.parent), f"{path.name} holds more than tensors")
    return dict(content)


def _read_shards(index: Path, read: Callable[[Path], dict[str, Tensor]]) -> dict[str, Tensor]:
    places = _read_index(index)
    tensors: dict[str, Tensor] = {}
    for name in sorted(set(places.values())):
        if not (index.parent / name).is_file():
            raise CheckpointError(str(index.parent), f"{name} is missing")
        shard = read(index.parent / name)
        if shard.keys() != {key for key, place in places.items() if place == name}:
            raise CheckpointError(str(index.parent), f"{name} does not hold what {index.name} says")
        tensors |= shard
    return tensors


def _read_index(index: Path) -> dict[str, str]:
    """Tensor names to file names; these come from outside, so anything but a plain name is refused."""
    try:
        places = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError(str(index.parent), f"{index.name} is damaged") from error
    if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()):
        raise CheckpointError(str(index.parent), f"{index.name} is damaged")
    for name in places.values():
        if name in ("", ".", "..") or any(mark in name for mark in "/\\:\0"):
            raise CheckpointError(str(index.parent), f"{index.name} names {name!r}, which is not a file of this folder")
    return places


def _fitted(tensor: Tensor, place: Tensor) -> Tensor:
    return tensor.to(dtype=place.dtype, device=None if place.is_meta else place.device)


def _unit(direction: Tensor) -> Tensor:
    return direction / direction.flatten(1).norm(dim=1).view(-1, *[1] * (direction.dim() - 1))


def _refuse(source: str, faults: Mapping[str, Iterable[str]]) -> None:
    parts = []
    for fault, names in faults.items():
        first = sorted(names)
        if first:
            more = f" and {len(first) - _NAMED} more" if len(first) > _NAMED else ""
            parts.append(f"{len(first)} tensors are {fault}: {', '.join(first[:_NAMED])}{more}")
    if parts:
        raise CheckpointError(source, "; ".join(parts))
