"""The command line: its groups, its global options, and the one place where a mistake becomes a sentence and status 2.

It knows no engine and no store: what it needs is handed in as `assemble`.
"""

import sys
from pathlib import Path
from typing import Annotated

import typer

from studio.commands import backup, bench, cache, lab, models, page, speak, takes, voices
from studio.commands.session import Assemble, Session
from studio.errors import StudioError
from studio.settings import Settings

PROGRAM = "python -m studio"

application = typer.Typer(
    help="Solo Studio: clone a voice from a clip and let it speak, on this machine alone.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
application.command("speak")(speak.speak)
application.command("ui")(page.ui)
application.command("bench")(bench.bench)
application.command("lab")(lab.lab)
application.command("backup")(backup.backup)
application.command("restore")(backup.restore)
application.add_typer(voices.group, name="voices")
application.add_typer(takes.group, name="takes")
application.add_typer(cache.group, name="cache")
application.add_typer(models.group, name="models")


@application.callback()
def session(
    context: typer.Context,
    data_dir: Annotated[Path | None, typer.Option(help="Folder of voices and takes; also STUDIO_DATA_DIR.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda or mps; also STUDIO_DEVICE.")] = None,
    lanes: Annotated[int | None, typer.Option(help="Clips encoded at once, each alone; also STUDIO_LANES.")] = None,
) -> None:
    """Options before the command hold for every command."""
    settings = Settings.from_environment(data_dir=data_dir, device=device, lanes=lanes)
    context.obj = Session(settings=settings, assemble=context.obj)


def run(arguments: list[str] | None, assemble: Assemble) -> int:
    """Runs one command and returns its exit status: 2 for a mistake, 130 after Ctrl-C."""
    try:
        return application(arguments, prog_name=PROGRAM, standalone_mode=False, obj=assemble) or 0
    except StudioError as error:
        return refuse(str(error))
    except typer.TyperException as error:
        message = " ".join(error.format_message().split()).rstrip(".")
        command = getattr(error, "ctx", None)  # the command whose options were misused, where the parser knows it
        return refuse(f"{message}. See: {command.command_path if command else PROGRAM} --help")


def refuse(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2
