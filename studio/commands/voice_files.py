"""`voices export`, `import`, `verify` and `refill`: a voice in a file, and a voice's codes against its clip."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from studio.commands.named_files import check_place, writing
from studio.commands.session import Json, print_record, session_of

if TYPE_CHECKING:
    from studio.bundle_import import Imported

Which = Annotated[str, typer.Argument(help="Id or name of the voice.")]


def export(
    context: typer.Context,
    voice: Which,
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write, a .zip.")],
    as_json: Json = False,
) -> None:
    """Write a voice with its clips and codes into one file."""
    from studio.voice_bundle import write_bundle

    check_place(output)
    library = session_of(context).open_library().voices
    with writing(output) as unfinished, unfinished.open("wb") as file:
        exported = write_bundle(library, library.get(voice), file)
    if as_json:
        print_record(
            {
                "id": exported.voice.id,
                "name": exported.voice.name,
                "output": str(output),
                "bytes": output.stat().st_size,
                "clips": exported.num_clips,
                "unfilled": list(exported.unfilled),
            }
        )
        return
    print(f"{output}: {exported.voice.name}, {exported.num_clips} clips, {output.stat().st_size:,} bytes")
    for name in exported.unfilled:
        print(f"The codes of {name!r} are not made yet, so they are not in it.", file=sys.stderr)


def import_(
    context: typer.Context,
    bundle: Annotated[Path, typer.Argument(help="A file that `voices export` wrote.")],
    as_json: Json = False,
) -> None:
    """Take a voice in from a file; its codes come with it, and those that are here stay."""
    from studio.bundle_import import import_voice

    studio = session_of(context).open_library()
    imported = import_voice(studio.engine, studio.voices, bundle)
    if as_json:
        print_record(
            {
                "id": imported.voice.id,
                "name": imported.voice.name,
                "key": imported.voice.key,
                "codes_digest": imported.voice.codes_digest,
                "already_there": imported.already_there,
                "name_in_bundle": imported.name_in_bundle,
                "differences": [asdict(each) for each in imported.differences],
                "to_fill": list(imported.to_fill),
            }
        )
        return
    tell(imported)


def tell(imported: "Imported") -> None:
    """What a person has to know, most of it only where it is not as usual."""
    state = "was here already; nothing was changed" if imported.already_there else "is in the library"
    print(f"{imported.voice.id}  {imported.voice.name}  {state}")
    if imported.voice.name != imported.name_in_bundle:
        print(f"The name {imported.name_in_bundle!r} was taken.")
    for each in imported.differences:
        print(
            f"The file has other codes for {each.clip!r} ({each.digest_in_bundle[:6]}) than this library "
            f"({each.digest_here[:6]}). Those of this library stay."
        )
    for name in imported.to_fill:
        print(f"The file has no codes of {name!r} for this voice model; they are made at its first use.")


def verify(context: typer.Context, voice: Which, as_json: Json = False) -> None:
    """Encode a voice's clip again and compare; nothing is changed. Status 1 where codes differ or are damaged."""
    from studio.reference_verify import verify_voice

    studio = session_of(context).open_library()
    found = verify_voice(studio.desk, studio.voices, studio.voices.get(voice))
    if as_json:
        print_record(asdict(found) | {"passed": found.passed})
    elif found.not_checkable:
        print(f"{found.name}: not checkable: {found.not_checkable}")
    else:
        where = f"; filled elsewhere ({'; '.join(found.elsewhere)})" if found.elsewhere else ""
        print(f"{found.name}: {found.differing} of {found.num_codes} codes would differ{where}")
    if found.damaged or found.differing:
        raise typer.Exit(1)


def refill(context: typer.Context, voice: Which, as_json: Json = False) -> None:
    """Encode a voice's clip again and put the codes in the place of those it has."""
    from studio.reference_verify import refill_voice

    studio = session_of(context).open_library()
    done = refill_voice(studio.desk, studio.voices, studio.voices.get(voice))
    if as_json:
        print_record(asdict(done) | {"changed": done.changed})
        return
    change = f"changed from {str(done.digest_before)[:6]}" if done.changed else "the same as before"
    print(f"{done.name}: {done.num_frames} frames, digest {done.digest[:6]}, {change}, in {done.encode_ms:.0f} ms")
