"""What the global options decide, and how a command gets the parts it works with."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from studio.settings import Settings

if TYPE_CHECKING:
    from studio.synthesis import Synthesizer

Assemble = Callable[[Settings, str], "Synthesizer"]
"""Settings and the name of an engine to the parts put together, the engine loaded."""

DEFAULT_ENGINE = "embedded"

Json = Annotated[bool, typer.Option("--json", help="Print one object on one line.")]


@dataclass(frozen=True, kw_only=True)
class Session:
    """One run of the command line."""

    settings: Settings
    assemble: Assemble

    def load(self, engine: str = DEFAULT_ENGINE) -> "Synthesizer":
        """Loads the engine; writes nothing, but where the database is damaged."""
        self.mend()
        return self.assemble(self.settings, engine)

    def mend(self) -> None:
        """Sets a damaged database aside and builds a new one, and says so; else nothing."""
        from studio.store.recovery import recover

        recovery = recover(self.settings)
        if recovery is not None:
            print(recovery.sentence, file=sys.stderr)

    def open_library(self, engine: str = DEFAULT_ENGINE) -> "Synthesizer":
        """Loads the engine and sees to it that the built-in voices are in the library."""
        synthesizer = self.load(engine)
        synthesizer.fill_builtins()
        return synthesizer


def session_of(context: typer.Context) -> Session:
    return context.obj


def print_record(record: dict[str, Any]) -> None:
    """One object on one line, in ASCII, so that every terminal and pipe can carry it."""
    print(json.dumps(record))
