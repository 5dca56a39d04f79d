"""Read the config.json of a released checkpoint: the file, and checks of its fields that name them when they fail."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from studio.errors import CheckpointError

Fields = Mapping[str, Any]
Model = TypeVar("Model")


def read_fields(folder: Path) -> Fields:
    """The fields of `folder/config.json`. Raises CheckpointError where it is missing or damaged."""
    try:
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(str(folder), "config.json is missing") from error
    except ValueError as error:
        raise CheckpointError(str(folder), "config.json is damaged") from error


def described(fields: Fields, describe: Callable[[Fields], Model], *, source: str) -> Model:
    """What `describe` makes of the fields; what it finds missing or unusable becomes a CheckpointError of `source`."""
    try:
        return describe(fields)
    except KeyError as error:
        raise CheckpointError(source, f"config.json does not state {error.args[0]}") from error
    except (ValueError, TypeError, AttributeError) as error:
        raise CheckpointError(source, f"config.json cannot be used: {error}") from error


def size(fields: Fields, name: str) -> int:
    """A whole number above 0, else ValueError."""
    if type(fields[name]) is not int or fields[name] < 1:
        raise ValueError(f"{name} is {fields[name]!r}")
    return fields[name]


def expect(fields: Fields, name: str, value: object) -> None:
    """ValueError where the field has another value than the only one that is computed here."""
    if fields[name] != value:
        raise ValueError(f"{name} is {fields[name]!r}, and only {value!r} is known")
