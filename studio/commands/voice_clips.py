"""`voices clips`: the recordings of a voice, and which part of which of them it speaks after."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.named_files import check_clip
from studio.commands.session import Json, print_record, session_of
from studio.errors import SettingError

if TYPE_CHECKING:
    from studio.store.voice_records import Clip

group = typer.Typer(help="The clips of a voice.", rich_markup_mode=None)

Which = Annotated[str, typer.Argument(help="Id of the clip; `voices show` lists them.")]


@group.command("add")
def add(
    context: typer.Context,
    voice: Annotated[str, typer.Argument(help="Id or name of the voice.")],
    clip: Annotated[Path, typer.Argument(help="Another recording of the same person.")],
    transcript: Annotated[str, typer.Option(help="What is said in it.")] = "",
    as_json: Json = False,
) -> None:
    """Give a voice one more clip; `choose` makes it the one it speaks after."""
    from studio.casting import add_clip

    check_clip(clip)
    studio = session_of(context).open_library()
    added = add_clip(studio.desk, studio.voices, studio.voices.get(voice), clip, name=clip.name, transcript=transcript)
    show(added.clip, as_json=as_json)


@group.command("choose")
def choose(context: typer.Context, clip: Which, as_json: Json = False) -> None:
    """Make a clip the one its voice speaks after."""
    show(session_of(context).open_library().voices.clips.choose(clip), as_json=as_json)


@group.command("trim")
def trim(
    context: typer.Context,
    clip: Which,
    start: Annotated[float, typer.Option(help="The second to start at.")] = 0.0,
    end: Annotated[float | None, typer.Option(help="The second to end at.")] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Use all of it again.")] = False,
    transcript: Annotated[str | None, typer.Option(help="What is said in that part.")] = None,
    as_json: Json = False,
) -> None:
    """Use another part of a clip; its codes are made now. Without a transcript the present one is to be checked."""
    from studio.casting import trim_clip

    if whole == (end is not None):
        raise SettingError("--end", end, "give either the second at which the part ends, or --whole.")
    studio = session_of(context).open_library()
    part = None if end is None else (start, end)
    trimmed = trim_clip(studio.desk, studio.voices, studio.voices.clips.get(clip), part, transcript=transcript)
    show(trimmed.clip, as_json=as_json)


@group.command("remove")
def remove(context: typer.Context, clip: Which, as_json: Json = False) -> None:
    """Remove a clip that its voice does not speak after, with its file and its codes."""
    show(session_of(context).open_library().voices.clips.remove(clip), as_json=as_json)


def show(clip: "Clip", *, as_json: bool) -> None:
    if as_json:
        print_record(record(clip))
    else:
        tell(record(clip))


def tell(clip: dict[str, Any]) -> None:
    """One line from a record."""
    marks = ["reference"] if clip["is_reference"] else []
    marks += ["transcript to be checked"] if clip["transcript_unchecked"] else []
    about = ", ".join([f"{clip['duration_s']:.1f} s", *marks])
    print(f"{clip['id']}  {clip['name']}  ({about})")


def record(clip: "Clip") -> dict[str, Any]:
    return {
        "id": clip.id,
        "voice": clip.voice_id,
        "name": clip.name,
        "digest": clip.digest,
        "is_reference": clip.is_reference,
        "trim": clip.trim,
        "duration_s": round(clip.duration, 3),
        "transcript": clip.transcript,
        "transcript_unchecked": clip.transcript_unchecked,
        "key": clip.key,
        "codes_digest": clip.codes_digest,
        "filled": clip.filled,
    }
