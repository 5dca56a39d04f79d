"""`backup` and `restore`: the whole library in one file, and back."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from studio.commands.named_files import check_place
from studio.commands.session import Json, print_record, session_of
from studio.errors import ArchiveError


def backup(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, a .zip.")],
    with_takes: Annotated[bool, typer.Option("--with-takes", help="The sound of the takes, too.")] = False,
    as_json: Json = False,
) -> None:
    """Write the whole library into one file, also while the studio runs."""
    from studio.store.backup import back_up

    check_place(output)
    done = back_up(session_of(context).settings, output, take_sound=with_takes)
    if as_json:
        print_record(asdict(done) | {"path": str(done.path), "missing": list(done.missing)})
        return
    sound = f"{done.takes_with_sound} with" if with_takes else "without"
    print(f"{output}: {done.num_voices} voices, {done.num_takes} takes, {sound} their sound, {done.num_bytes:,} bytes")
    for member in done.missing:
        print(f"The file of {member} is not in the data folder, so it is not in the backup.", file=sys.stderr)


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(help="A file that `backup` wrote.")],
    as_json: Json = False,
) -> None:
    """Put a backup into the data folder; the library that is there is set aside whole. Close the studio first."""
    from studio.store.restore import restore as put_back

    if not file.is_file():
        raise ArchiveError(str(file), "there is no such file")
    done = put_back(session_of(context).settings, file)
    if as_json:
        aside = None if done.set_aside is None else str(done.set_aside)
        print_record(asdict(done) | {"set_aside": aside, "missing": list(done.missing)})
        return
    print(f"{done.num_voices} voices and {done.num_takes} takes are back, {done.takes_with_sound} with their sound.")
    if done.set_aside is not None:
        print(f"The library that was here before is in {done.set_aside}")
    for member in done.missing:
        print(f"The backup was made without {member}, whose file was gone.", file=sys.stderr)
