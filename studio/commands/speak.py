"""`speak`: a text in a voice, into a file."""

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.named_files import check_clip, check_output, save_copy
from studio.commands.session import DEFAULT_ENGINE, print_record, session_of
from studio.errors import SettingError
from studio.text.script import utterances

if TYPE_CHECKING:
    from studio.engine.sampling import SamplingOptions
    from studio.store.takes import Take
    from studio.synthesis import Speech, Synthesizer

STOP_SECONDS = 10.0
"""A process that ends while a step of the model runs is aborted by the C++ runtime; the last step is waited for."""


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
    if reference:
        check_clip(reference)
    options = options_of(seed, speed)
    utterances(text)  # says what is wrong with the text before a model is loaded

    session = session_of(context)
    synthesizer = session.load(engine) if reference else session.open_library(engine)
    if transcript and not synthesizer.engine.uses_transcript:
        print(f"The engine {engine!r} does not use a transcript, so it was left aside.", file=sys.stderr)
    saved = synthesizer.voices.get(voice) if voice is not None else None
    clip_name = reference.name if reference else ""
    speech = synthesizer.speak(text, voice=saved, clip=reference, options=options, clip_name=clip_name)
    take = finish(speech, synthesizer)
    save_copy(synthesizer.takes.path(take.id), output)
    tell(take, output, as_json=as_json)


def options_of(seed: str, speed: float) -> "SamplingOptions":
    """A blank seed draws one of 2^32."""
    from studio.engine.sampling import SamplingOptions

    if not seed.strip():
        return SamplingOptions(seed=secrets.randbits(32), speed=speed)
    try:
        return SamplingOptions(seed=int(seed), speed=speed)
    except ValueError as error:
        raise SettingError("--seed", seed, "give a whole number, or leave it out for a random one.") from error


def finish(speech: "Speech", synthesizer: "Synthesizer") -> "Take":
    """Lets it speak to its end; Ctrl-C keeps what was spoken in the library, and says where."""
    try:
        with speech:
            for _ in speech:
                pass
    except KeyboardInterrupt:
        print(f"Stopped. {kept(speech, synthesizer)}", file=sys.stderr)
        raise typer.Exit(130) from None
    finally:
        speech.stopped.wait(STOP_SECONDS)
    assert speech.take is not None, "a whole take has sound"
    return speech.take


def kept(speech: "Speech", synthesizer: "Synthesizer") -> str:
    if speech.take is None:
        return "Nothing was spoken yet."
    return f"The {speech.take.duration:.1f} s that were spoken are in {synthesizer.takes.path(speech.take.id)}"


def tell(take: "Take", output: Path, *, as_json: bool) -> None:
    if as_json:
        print_record(record(take, output))
        return
    print(f"{output}: {take.duration:.1f} s by {take.engine} on {take.device}, seed {take.seed}")
    cached, encoded = f"codes from cache, {take.lookup_ms:.1f} ms", f"encoded now, {take.encode_ms:.0f} ms"
    codes = cached if take.cache == "hit" else encoded
    print(
        f"{codes}; first audio after {take.first_audio_ms or 0:.0f} ms; {take.realtime_speed or 0:.1f} times real time"
    )


def record(take: "Take", output: Path) -> dict[str, Any]:
    return {
        "key": take.key,
        "codes_digest": take.codes_digest,
        "cache": take.cache,
        "encode_ms": rounded(take.encode_ms),
        "first_audio_ms": rounded(take.first_audio_ms),
        "duration_s": round(take.duration, 6),
        "realtime_speed": rounded(take.realtime_speed),
        "seed": take.seed,
        "engine": take.engine,
        "device": take.device,
        "output": str(output),
    }


def rounded(figure: float | None) -> float | None:
    """To a thousandth; None stays None: a take that is silent all through has no first audio."""
    return None if figure is None else round(figure, 3)
