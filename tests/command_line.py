"""The command line within this process, the voice model loaded once for all tests."""

import functools
import json
import shlex
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from studio.__main__ import assemble
from studio.commands.application import run
from studio.engine import catalogue
from studio.settings import Settings


@dataclass(frozen=True)
class Answer:
    """What a command left behind in a terminal."""

    status: int
    stdout: str
    stderr: str

    @property
    def record(self) -> dict[str, Any]:
        """The one object on the one line."""
        assert self.status == 0, self.stderr
        (line,) = self.stdout.splitlines()
        return json.loads(line)

    @property
    def records(self) -> list[dict[str, Any]]:
        assert self.status == 0, self.stderr
        return [json.loads(line) for line in self.stdout.splitlines()]


class CommandLine:
    """Runs commands as a person types them, in one data folder."""

    def __init__(self, capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
        self._capsys = capsys
        self.data_dir = data_dir

    def __call__(self, *arguments: str | Path) -> Answer:
        self._capsys.readouterr()
        status = run([str(argument) for argument in arguments], assemble)
        said = self._capsys.readouterr()
        return Answer(status, said.out, said.err)

    def typed(self, line: str) -> Answer:
        """A line as the README prints it, `python -m studio ...`."""
        python, flag, module, *arguments = shlex.split(line)
        assert (python, flag, module) == ("python", "-m", "studio")
        return self(*arguments)

    def rows(self) -> dict[str, int]:
        """How many of everything the library holds."""
        tables = ("voices", "clips", "clip_codes", "codes", "sources", "takes")
        database = self.data_dir / "studio.db"
        if not database.exists():
            return dict.fromkeys(tables, 0)
        with sqlite3.connect(database) as connection:
            counts = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables}  # noqa: S608
        connection.close()
        return counts

    def files(self) -> set[Path]:
        """Clips and takes on disk."""
        return {
            path for folder in ("clips", "takes") for path in (self.data_dir / folder).glob("**/*") if path.is_file()
        }


_load = catalogue.load_engine
_loaded = functools.cache(_load)


def fill(data_dir: Path) -> None:
    """Makes a library with the built-in voices in it."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        load_once(monkeypatch)
        assemble(Settings(data_dir=data_dir), "embedded").fill_builtins()


def load_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets every command of a test run share the embedded engine that the first of them loaded."""

    def load_engine(name: str, settings: Settings) -> Any:
        if name != "embedded":
            return _load(name, settings)
        return _loaded(name, Settings(data_dir=Path("of no matter to an engine"), device=settings.device))

    monkeypatch.setattr(catalogue, "load_engine", load_engine)
