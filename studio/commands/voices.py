"""`voices`: add a clip to the library, look at what is there, change it, remove what is not wanted."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands import voice_clips, voice_files
from studio.commands.named_files import check_clip
from studio.commands.session import print_record, session_of
from studio.errors import SettingError

if TYPE_CHECKING:
    from studio.store.voices import Voice

group = typer.Typer(help="The library of saved voices.", rich_markup_mode=None)
group.add_typer(voice_clips.group, name="clips")
group.command("export")(voice_files.export)
group.command("import")(voice_files.import_)
group.command("verify")(voice_files.verify)
group.command("refill")(voice_files.refill)

Json = Annotated[bool, typer.Option("--json", help="Print one object a voice, each on one line.")]
Which = Annotated[str, typer.Argument(help="Id or name of the voice.")]
Start = Annotated[float | None, typer.Option(help="Use the clip from this second on.")]
End = Annotated[float | None, typer.Option(help="Use the clip up to this second.")]
Tag = Annotated[list[str] | None, typer.Option("--tag", help="A word to find it by; may be given several times.")]
Text = Annotated[str | None, typer.Option()]


@group.command("add")
def add(
    context: typer.Context,
    clip: Annotated[Path, typer.Argument(help="A recording of one person speaking, 3 to 10 s.")],
    name: Annotated[str, typer.Option(help="What the voice is to be called.")],
    transcript: Annotated[str, typer.Option(help="What is said in the clip; kept with the voice.")] = "",
    notes: Annotated[str, typer.Option(help="Anything to remember.")] = "",
    tag: Tag = None,
    language: Annotated[str, typer.Option(help="What it speaks.")] = "",
    consent: Annotated[str, typer.Option(help="Who allowed its use, and how.")] = "",
    colour: Annotated[str, typer.Option(help="The colour of its picture, #rrggbb.")] = "",
    start: Start = None,
    end: End = None,
    transcribe: Annotated[bool, typer.Option("--transcribe", help="Let Whisper write down what is said.")] = False,
    as_json: Json = False,
) -> None:
    """Save a voice; its codes are made now, once."""
    from studio.store.voice_records import VoiceDetails, checked

    check_clip(clip)
    if transcribe and transcript:
        raise SettingError("--transcribe", "used with --transcript", "choose one of them.")
    if transcribe:
        from studio.audio.transcribe import Transcriber
        from studio.casting import write_down

        transcript = write_down(Transcriber(session_of(context).settings.asr_dir), clip, span(start, end))
    details = VoiceDetails(
        name=name,
        transcript=transcript,
        notes=notes,
        tags=tuple(tag or ()),
        language=language,
        consent=consent,
        colour=colour,
        clip_name=clip.name,
        trim=span(start, end),
    )
    checked(details)  # says what is wrong before a model is loaded
    synthesizer = session_of(context).open_library()
    added = synthesizer.add_voice(clip, details)
    if transcript and not synthesizer.engine.uses_transcript:
        print(f"The transcript is kept; the engine {synthesizer.engine.name!r} does not use it.", file=sys.stderr)
    show_line(added.voice, cache=added.reference.outcome, as_json=as_json)


@group.command("list")
def list_voices(
    context: typer.Context,
    search: Annotated[str, typer.Option(help="Words in name, tags, notes or transcripts.")] = "",
    sort: Annotated[str | None, typer.Option(help="name, created, last_used or times_used.")] = None,
    as_json: Json = False,
) -> None:
    """Show every voice, the built-in ones first where no order is asked for."""
    for voice in session_of(context).open_library().voices.list(search=search, order=sort):
        show_line(voice, cache=held(voice), as_json=as_json)


@group.command("show")
def show(context: typer.Context, voice: Which, as_json: Json = False) -> None:
    """Show everything about a voice and its clips."""
    library = session_of(context).open_library().voices
    found = library.get(voice)
    clips = [voice_clips.record(clip) for clip in library.clips.list(found.id)]
    full = record(found, held(found)) | {"clips": clips}
    if as_json:
        print_record(full)
        return
    for name, value in full.items():
        if name != "clips" and value not in (None, "", []):
            print(f"{name:20} {value}")
    for clip in clips:
        voice_clips.tell(clip)


@group.command("edit")
def edit(
    context: typer.Context,
    voice: Which,
    name: Text = None,
    transcript: Annotated[str | None, typer.Option(help="What is said in its reference clip.")] = None,
    notes: Text = None,
    tag: Tag = None,
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Take all tags away.")] = False,
    language: Text = None,
    consent: Text = None,
    colour: Text = None,
    description: Text = None,
    as_json: Json = False,
) -> None:
    """Change what is said about a voice; its codes stay as they are. `voices clips trim` changes what is heard."""
    from studio.store.voices import VoiceChanges

    changes = VoiceChanges(
        name=name,
        transcript=transcript,
        notes=notes,
        tags=() if no_tags else tuple(tag) if tag else None,
        language=language,
        consent=consent,
        colour=colour,
        description=description,
    )
    if all(value is None for value in asdict(changes).values()):
        raise typer.TyperException("Say what is to change, for example by --name or --notes")
    edited = session_of(context).open_library().voices.edit(voice, changes)
    show_line(edited, cache=held(edited), as_json=as_json)


@group.command("duplicate")
def duplicate(
    context: typer.Context,
    voice: Which,
    name: Annotated[str, typer.Option(help="What the new voice is to be called.")],
    as_json: Json = False,
) -> None:
    """Make a second voice of the same clips and codes, which may be changed on its own."""
    made = session_of(context).open_library().voices.duplicate(voice, name)
    show_line(made, cache=held(made), as_json=as_json)


@group.command("remove")
def remove(context: typer.Context, voice: Which, as_json: Json = False) -> None:
    """Remove a voice, its clips and the codes no other voice has; takes made with it stay."""
    removed = session_of(context).open_library().voices.remove(voice)
    show_line(removed, cache=held(removed), as_json=as_json)


def span(start: float | None, end: float | None) -> tuple[float, float] | None:
    """Seconds from and to; None for the whole clip."""
    if start is None and end is None:
        return None
    if end is None:
        raise SettingError("--end", None, "give the second at which the part ends, too.")
    return start or 0.0, end


def held(voice: "Voice") -> str:
    """What speaking with it would be now."""
    return "hit" if voice.filled else "fill"


def show_line(voice: "Voice", *, cache: str, as_json: bool) -> None:
    if as_json:
        print_record(record(voice, cache))
        return
    kind = "built in" if voice.builtin else f"used {voice.times_used} times"
    tags = "".join(f" #{tag}" for tag in voice.tags)
    check = "  transcript to be checked" if voice.transcript_unchecked else ""
    print(f"{voice.id}  {voice.name}  ({voice.duration:.1f} s, {kind}){tags}{check}")


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
        "transcript_unchecked": voice.transcript_unchecked,
        "description": voice.description,
        "notes": voice.notes,
        "tags": list(voice.tags),
        "language": voice.language,
        "consent": voice.consent,
        "colour": voice.colour,
        "created": voice.created,
        "last_used": voice.last_used,
        "num_clips": voice.num_clips,
        "num_frames": voice.num_frames,
        "bytes": voice.num_bytes,
        "filled_on": voice.provenance.device if voice.provenance else None,
        "trim": voice.trim,
    }
