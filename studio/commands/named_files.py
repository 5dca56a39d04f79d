"""Files that are named on the command line: clips that come in and sound that goes out."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from studio.errors import MissingClip, SettingError


def check_clip(path: Path) -> None:
    """Refuses a missing clip before the voice model is loaded; what is in it is checked by who reads it."""
    if not path.is_file():
        raise MissingClip(str(path))


def check_output(path: Path) -> None:
    """Refuses, before anything is spoken, a file that cannot be written at the end."""
    if path.suffix.lower() not in (".wav", ".flac"):
        raise SettingError("--output", str(path), "name a file that ends in .wav or .flac.")
    check_place(path)


def check_place(path: Path) -> None:
    """Refuses, before any work, a file that cannot be written at the end, whatever it is called."""
    if path.is_dir():
        raise SettingError("--output", str(path), "it is a folder; name a file in it.")
    if not path.parent.is_dir():
        raise SettingError("--output", str(path), f"there is no folder {str(path.parent)!r}; make it first.")


@contextmanager
def writing(output: Path) -> Iterator[Path]:
    """A file beside `output` that takes its place once it is whole, and leaves nothing where it does not get so far."""
    unfinished = output.with_name(f".{output.stem}.unfinished{output.suffix}")
    try:
        yield unfinished
        unfinished.replace(output)
    except OSError as error:
        raise SettingError("--output", str(output), f"{error.strerror}; choose another place.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def save_copy(take: Path, output: Path) -> None:
    """Writes a take's 16-bit WAV under another name, as FLAC where the name says so; whole or not at all."""
    from studio.audio import files

    with writing(output) as unfinished:
        if output.suffix.lower() == ".flac":
            files.write(unfinished, files.read(take, name=take.name, max_duration=math.inf), "PCM_16")
        else:
            unfinished.write_bytes(take.read_bytes())
