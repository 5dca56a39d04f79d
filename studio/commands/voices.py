"""`voices`: add a clip to the library, list what is there, remove what is not wanted."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.named_files import check_clip
from studio.commands.session import print_record, session_of

if TYPE_CHECKING:
    from studio.store.voices import Voice

group = typer.Typer(help="The library of saved voices.", rich_markup_mode=None)

Json = Annotated[bool, typer.Option("--json", help="Print one object a voice, each on one line.")]


@group.command("add")
def add(
    context: typer.Context,
    clip: Annotated[Path, typer.Argument(help="A recording of one person speaking, 3 to 10 s.")],
    name: Annotated[str, typer.Option(help="What the voice is to be called.")],
    transcript: Annotated[str, typer.Option(help="What is said in the clip; kept with the voice.")] = "",
    as_json: Json = False,
) -> None:
    """Save a voice; its codes are made now, once."""
    from studio.store.voices import VoiceDetails

    check_clip(clip)
    synthesizer = session_of(context).open_library()
    details = VoiceDetails(name=name, transcript=transcript, clip_name=clip.name)
    added = synthesizer.add_voice(clip, details)
    if transcript and not synthesizer.engine.uses_transcript:
        print(f"The transcript is kept; the engine {synthesizer.engine.name!r} does not use it.", file=sys.stderr)
    show(added.voice, cache=added.reference.outcome, as_json=as_json)


@group.command("list")
def list_voices(context: typer.Context, as_json: Json = False) -> None:
    """Show every voice, the built-in ones first."""
    for voice in session_of(context).open_library().voices.list():
        show(voice, cache=held(voice), as_json=as_json)


@group.command("remove")
def remove(
    context: typer.Context,
    voice: Annotated[str, typer.Argument(help="Id or name of the voice.")],
    as_json: Json = False,
) -> None:
    """Remove a voice and its clip; takes made with it stay."""
    removed = session_of(context).open_library().voices.remove(voice)
    show(removed, cache=held(removed), as_json=as_json)


def held(voice: "Voice") -> str:
    """What speaking with it would be now."""
    return "hit" if voice.filled else "fill"


def show(voice: "Voice", *, cache: str, as_json: bool) -> None:
    if as_json:
        print_record(record(voice, cache))
        return
    kind = "built in" if voice.builtin else f"used {voice.times_used} times"
    print(f"{voice.id}  {voice.name}  ({voice.duration:.1f} s, {kind})")


def record(voice: "Voice", cache: str) -> dict[str, Any]:
    return {
        "id": voice.id,
        "name": voice.name,
        "key": voice.key,
        "codes_digest": voice.codes_digest,
        "cache": cache,
        "duration_s": round(voice.duration, 3),
        "builtin": voice.builtin,
        "transcript": voice.transcript,
        "times_used": voice.times_used,
    }
