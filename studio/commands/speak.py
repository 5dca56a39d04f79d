"""`speak`: a text in a voice, into a file."""

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.clips import check_output, read_clip, save_copy
from studio.commands.session import DEFAULT_ENGINE, print_record, session_of
from studio.errors import SettingError

if TYPE_CHECKING:
    from studio.store.takes import Take
    from studio.synthesis import Speech, Synthesizer


def speak(
    context: typer.Context,
    text: Annotated[str, typer.Option(help="What to say; [pause 0.5s] is a silence.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, .wav (16-bit) or .flac.")],
    voice: Annotated[str | None, typer.Option(help="Id or name of a saved voice.")] = None,
    reference: Annotated[Path | None, typer.Option(help="A clip to clone instead.")] = None,
    transcript: Annotated[str, typer.Option(help="What is said in the clip, for engines that use it.")] = "",
    speed: Annotated[float, typer.Option(help="0.5 to 2; 2 is twice as fast.")] = 1.0,
    seed: Annotated[str, typer.Option(help="A whole number below 2^32; the same seed gives the same take.")] = "",
    engine: Annotated[str, typer.Option(help="The engine that speaks.")] = DEFAULT_ENGINE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one object on one line.")] = False,
) -> None:
    """Speak a text after a saved voice or a clip."""
    if (voice is None) == (reference is None):
        raise typer.TyperException("Say whose voice it is to be by one of --voice and --reference")
    check_output(output)
    chosen_seed = seed_of(seed)
    clip = read_clip(reference) if reference else None

    synthesizer = session_of(context).open(engine)
    if transcript and not synthesizer.engine.uses_transcript:
        print(f"The engine {engine!r} does not use a transcript; it was left aside.", file=sys.stderr)
    speech = begin(synthesizer, text, voice=voice, clip=clip, seed=chosen_seed, speed=speed)
    take = finish(speech, synthesizer)
    save_copy(synthesizer.takes.path(take.id), output)
    tell(take, output, as_json=as_json)


def seed_of(text: str) -> int:
    """Blank draws one of 2^32."""
    if not text.strip():
        return secrets.randbits(32)
    try:
        return int(text)
    except ValueError as error:
        raise SettingError("--seed", text, "give a whole number, or leave it out for a random one.") from error


def begin(
    synthesizer: "Synthesizer", text: str, *, voice: str | None, clip: bytes | None, seed: int, speed: float
) -> "Speech":
    from studio.engine.sampling import SamplingOptions

    options = SamplingOptions(seed=seed, speed=speed)
    saved = None if voice is None else synthesizer.voices.get(voice)
    return synthesizer.speak(text, voice=saved, clip=clip, options=options)


def finish(speech: "Speech", synthesizer: "Synthesizer") -> "Take":
    """Lets it speak to its end; Ctrl-C keeps what was spoken in the library, and says where."""
    try:
        for _ in speech:
            pass
    except KeyboardInterrupt:
        speech.close()
        if speech.take is None:
            print("Stopped before anything was spoken.", file=sys.stderr)
        else:
            kept = synthesizer.takes.path(speech.take.id)
            print(f"Stopped. The {speech.take.duration:.1f} s that were spoken are in {kept}", file=sys.stderr)
        raise typer.Exit(130) from None
    assert speech.take is not None
    return speech.take


def tell(take: "Take", output: Path, *, as_json: bool) -> None:
    if as_json:
        print_record(record(take, output))
        return
    print(f"{output}: {take.duration:.1f} s by {take.engine} on {take.device}, seed {take.seed}")
    cached, encoded = f"codes from cache, {take.lookup_ms:.1f} ms", f"encoded now, {take.encode_ms:.0f} ms"
    codes = cached if take.cache == "hit" else encoded
    print(f"{codes}; first audio after {take.first_audio_ms:.0f} ms; {take.realtime_speed:.1f} times real time")


def record(take: "Take", output: Path) -> dict[str, Any]:
    return {
        "key": take.key,
        "codes_digest": take.codes_digest,
        "cache": take.cache,
        "encode_ms": take.encode_ms,
        "first_audio_ms": take.first_audio_ms,
        "duration_s": take.duration,
        "realtime_speed": take.realtime_speed,
        "seed": take.seed,
        "engine": take.engine,
        "device": take.device,
        "output": str(output),
    }
