"""`takes`: what was spoken: look at it, write it in another format, speak it again, mark it, remove it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.named_files import check_place, writing
from studio.commands.session import Session, print_record, session_of
from studio.commands.speak import finish

if TYPE_CHECKING:
    from studio.store.take_bound import TakesBound
    from studio.store.takes import Take, TakeLibrary

group = typer.Typer(help="The takes that were spoken.", rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print one object a take, each on one line.")]
Which = Annotated[str, typer.Argument(help="Id of the take; `takes list` shows them.")]


@group.command("list")
def list_takes(
    context: typer.Context,
    search: Annotated[str, typer.Option(help="Words in text, voice or note.")] = "",
    favourites: Annotated[bool, typer.Option("--favourites", help="Only these.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 50,
    as_json: Json = False,
) -> None:
    """Show the takes, the newest first."""
    for take in library(session_of(context)).list(search=search, favourites=favourites, limit=limit):
        show_line(take, as_json=as_json)


@group.command("show")
def show(context: typer.Context, take: Which, as_json: Json = False) -> None:
    """Show how a take was made."""
    takes = library(session_of(context))
    full = record(takes.get(take)) | {"file": str(takes.path(take))}
    if as_json:
        print_record(full)
        return
    for name, value in full.items():
        if value not in (None, "", {}):
            print(f"{name:20} {value}")


@group.command("export")
def export(
    context: typer.Context,
    take: Which,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write: .wav, .flac, .mp3 or .ogg.")],
    as_json: Json = False,
) -> None:
    """Write a take's sound into a file, in the format of its ending."""
    from studio.audio.take_formats import check_format, convert

    check_format(output.suffix)
    check_place(output)
    takes = library(session_of(context))
    found = takes.get(take)
    with writing(output) as unfinished:
        convert(takes.path(found.id), unfinished)
    if as_json:
        print_record({"id": found.id, "output": str(output), "bytes": output.stat().st_size})
    else:
        print(f"{output}: {found.duration:.1f} s, {output.stat().st_size:,} bytes")


@group.command("again")
def again(context: typer.Context, take: Which, as_json: Json = False) -> None:
    """Speak a take once more from its own codes, options and seed: the same samples, in a new take."""
    session = session_of(context)
    found = library(session).get(take)
    studio = session.load(found.engine)
    repeated = finish(studio.again(found), studio)
    same = repeated.pcm_digest == found.pcm_digest
    if as_json:
        print_record(record(repeated) | {"same": same})
        return
    show_line(repeated, as_json=False)
    print("The samples are the same." if same else "The samples differ from those of the first take.")


@group.command("favourite")
def favourite(
    context: typer.Context,
    take: Which,
    off: Annotated[bool, typer.Option("--off", help="Make it an ordinary take again.")] = False,
    as_json: Json = False,
) -> None:
    """Mark a take, so that it stays when old takes have to go."""
    show_line(library(session_of(context)).mark(take, favourite=not off), as_json=as_json)


@group.command("note")
def note(
    context: typer.Context,
    take: Which,
    text: Annotated[str, typer.Argument(help="Anything to remember; blank takes the note away.")],
    as_json: Json = False,
) -> None:
    """Keep a note with a take."""
    show_line(library(session_of(context)).annotate(take, text), as_json=as_json)


@group.command("remove")
def remove(context: typer.Context, take: Which, as_json: Json = False) -> None:
    """Remove a take and its file."""
    takes = library(session_of(context))
    found = takes.get(take)
    takes.remove(found.id)
    show_line(found, as_json=as_json)


@group.command("bound")
def bound(
    context: typer.Context,
    megabytes: Annotated[int | None, typer.Option("--mb", min=0, help="The bound to look at.")] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Remove now what would have to go.")] = False,
    as_json: Json = False,
) -> None:
    """Show how much disk the takes use and which would have to go; nothing goes without --confirm."""
    session = session_of(context)
    limit = bound_of(session, megabytes)
    warning = limit.look()
    removed = limit.confirm(warning) if confirm else []
    if as_json:
        print_record(
            {
                "bytes": warning.num_bytes,
                "bound": warning.bound,
                "over_bound": warning.over_bound,
                "due": [*warning.announced, *warning.due],
                "due_bytes": warning.due_bytes,
                "removed": [take.id for take in removed],
            }
        )
        return
    print(f"{len(removed)} takes were removed." if confirm else str(warning))


def keep_to_bound(session: Session, say: Callable[[str], None]) -> None:
    """Removes what an earlier run announced, announces what is to go in a later one, and says both."""
    limit = bound_of(session, None)
    removed = limit.enforce()
    if removed:
        say(f"{len(removed)} takes were removed, as was said before: the takes were over their bound.")
    warning = limit.announce()
    if warning.over_bound:
        say(str(warning))


def bound_of(session: Session, megabytes: int | None) -> "TakesBound":
    from studio.store.take_bound import TakesBound

    allowed = session.settings.takes_mb if megabytes is None else megabytes
    return TakesBound(session.settings.database, library(session), bound=allowed * 2**20)


def library(session: Session) -> "TakeLibrary":
    """The takes, without a voice model."""
    from studio.store.takes import TakeLibrary

    return TakeLibrary(session.settings.database, session.settings.takes_dir)


def show_line(take: "Take", *, as_json: bool) -> None:
    if as_json:
        print_record(record(take))
        return
    marks = "".join(f", {word}" for word in ("favourite", "partial", "missing") if getattr(take, word))
    print(f"{take.id}  {take.voice_name or 'a clip'}  ({take.duration:.1f} s{marks})  {take.script[:60]!r}")


def record(take: "Take") -> dict[str, Any]:
    left_out = ("codes", "options", "duration")
    record = {name: getattr(take, name) for name in take.__dataclass_fields__ if name not in left_out}
    return record | {"options": dict(take.options), "duration_s": round(take.duration, 6)}
