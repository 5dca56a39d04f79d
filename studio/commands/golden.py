"""`models golden`: what a model computes for inputs that are always the same, written down or held against a file."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from studio.commands.session import Json, print_record, session_of


def golden(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="A name that `models list` shows.")],
    write: Annotated[Path | None, typer.Option(help="Compute everything and write this file (safetensors).")] = None,
    check: Annotated[Path | None, typer.Option(help="Compute everything and compare it with this file.")] = None,
    as_json: Json = False,
) -> None:
    """Compare what a model computes on two machines, or with the published code. Status 1 where something differs."""
    from studio.engine.golden_check import check_golden, read_golden, write_golden
    from studio.engine.golden_record import golden_record
    from studio.engine.model_catalogue import find_model
    from studio.engine.moss_loading import load_moss

    if (write is None) == (check is None):
        raise typer.TyperException("Give one of --write and --check")
    entry, settings = find_model(name), session_of(context).settings
    expected = None if check is None else read_golden(check)
    engine = load_moss(entry, settings)
    if write is not None:
        record = golden_record(engine)
        write_golden(record, write)
        if as_json:
            print_record({"file": str(write), "arrays": sorted(record.arrays)} | record.made)
        else:
            print(
                f"{write}: {len(record.arrays)} arrays of {entry.title} on {engine.device}, revision {engine.revision}"
            )
        return
    assert expected is not None
    findings = check_golden(engine, expected)
    if as_json:
        print_record({"name": name, "findings": [dataclasses.asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            print(f"{'ok     ' if finding.fits else 'DIFFERS'} {finding.item}: {finding.said}")
    if not all(finding.fits for finding in findings):
        raise typer.Exit(1)
