"""`lab`: the experiments that show what a batch does to codes, and that the cache's promise holds."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.commands.session import DEFAULT_ENGINE, Session, print_record, session_of
from studio.errors import SettingError, StudioError

if TYPE_CHECKING:
    from studio.invariance.record import LabRun, Record
    from studio.reference_verify import Verification


def lab(
    context: typer.Context,
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Names of experiments, none for all; or `reproduce` and a kept file.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all records to a file; - prints them.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report that opens in any browser, offline.")] = None,
    engine: Annotated[
        str,
        typer.Option(help="Whose codec is examined; also random-nano and random-v2, those sizes with random weights."),
    ] = DEFAULT_ENGINE,
    clip: Annotated[
        list[Path] | None, typer.Option(help="A clip of yours instead of the built-in ones; again for more.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Which cuts are taken, and in which order things arrive.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer clips and one setting: under a minute.")] = False,
    dtype: Annotated[
        list[str] | None, typer.Option(help="float32, bfloat16 or float16, on a card tf32 too; again for more.")
    ] = None,
    threads: Annotated[list[int] | None, typer.Option(min=1, help="Intra-op threads; again for more.")] = None,
    keep: Annotated[Path | None, typer.Option(help="Where the smallest failing case is kept.")] = None,
    sounds: Annotated[Path | None, typer.Option(help="A folder for what can be listened to.")] = None,
    child: Annotated[bool, typer.Option("--child", hidden=True)] = False,
) -> None:
    """Ask whether a clip's codes depend on the batch, the threads and the dtype. Status 1 where a promise is broken."""
    session = session_of(context)
    if child:
        _child(session)
        return
    names = tuple(experiments or ())
    if names[:1] == ("reproduce",):
        reproduce_files(session, names[1:], json_file)
        return
    from studio.invariance.experiments import chosen
    from studio.invariance.request import LabRequest, every_setting, kept_path
    from studio.invariance.runner import LabProcesses, run_lab

    chosen(names)
    request = LabRequest(
        engine=engine,
        experiments=names,
        clips=tuple(str(path.absolute()) for path in clip or ()),
        seed=seed,
        quick=quick,
        dtypes=tuple(dtype or ("float32", "bfloat16")),
        sounds=kept_path(sounds),
        smallest=kept_path(keep or session.settings.data_dir / "lab" / "smallest.json"),
    )
    counts = tuple(threads or ((1,) if quick else (1, 2)))
    settings = every_setting(request.dtypes[:1] if quick and not dtype else request.dtypes, counts)
    run = run_lab(
        request, settings, LabProcesses(session.settings), _Told(), _tell if json_file != Path("-") else _silent
    )
    write(run, json_file, report)
    if run.broken:
        raise typer.Exit(1)


def write(run: "LabRun", json_file: Path | None, report: Path | None) -> None:
    """The files that were asked for."""
    if json_file == Path("-"):
        print_record(run.to_json())
    elif json_file is not None:
        _write(json_file, json.dumps(run.to_json(), indent=1) + "\n")
    if report is not None:
        from studio.invariance.report import report_page

        _write(report, report_page(run))


def reproduce_files(session: Session, names: tuple[str, ...], json_file: Path | None) -> None:
    """Runs kept cases again; status 1 where one does not show here."""
    from studio.engine.probe_loading import load_examined
    from studio.invariance.case import load_case, reproduce

    if not names:
        raise SettingError("The case", "", "give the file that the search has kept.")
    shown: list[bool] = []
    for name in names:
        case = load_case(Path(name))
        _, probes = load_examined(case.engine, session.settings)
        again = reproduce(case, probes)
        shown.append(again["reproduced"])
        if json_file == Path("-"):
            print_record(again)
            continue
        print(told_again(again))
        if json_file is not None:
            _write(json_file, json.dumps(again, indent=1) + "\n")
    if not all(shown):
        raise typer.Exit(1)


def told_again(again: dict[str, Any]) -> str:
    word = "Reproduced" if again["reproduced"] else "Not reproduced here"
    setting, rows, frames = again["setting"], again["rows"], again["frames"]
    other = "" if again["same_codec"] else " The case was kept with another codec than the one that is installed."
    return (
        f"{word}: {again['differ']} of {again['codes']} codes differ between the clip alone and the first of {rows} "
        f"equal rows ({frames} frames, {setting['dtype']}, {setting['num_threads']} threads); {again['kept_differ']} "
        f"did when the case was kept.{other}"
    )


class _Told:
    """Implements `Progress` on the terminal, one line that is written over."""

    def report(self, experiment: str, done: int, total: int, doing: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[K{experiment}: {doing}, {done} of {total}", end="", file=sys.stderr, flush=True)


def _tell(record: "Record") -> None:
    clear = "\r\x1b[K" if sys.stderr.isatty() else ""
    where = f"{record.setting['dtype']}, {record.setting['threads']} thr."
    print(f"{clear}{record.experiment:12} {where:17} {record.verdict:13} {record.sentence}", flush=True)


def _silent(record: "Record") -> None: ...


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SettingError("The file", str(path), "choose one in a folder that can be written.") from error


def _child(session: Session) -> None:
    """The process behind a run: a request on its standard input, a message on every line of its output."""
    from studio.invariance.child import answer, line
    from studio.invariance.request import LabRequest

    def say(message: dict[str, Any]) -> None:
        print(line(message), end="", flush=True)

    request = LabRequest.from_json(json.loads(sys.stdin.readline()))

    def library() -> "Iterator[Verification]":
        from studio.reference_verify import verify_cache

        synthesizer = session.load(request.engine)
        return verify_cache(synthesizer.desk, synthesizer.voices)

    try:
        answer(request, session.settings, say, library)
    except StudioError as error:
        say({"error": str(error)})
