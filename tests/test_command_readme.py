"""What README.md prints works as printed, and the other files that users meet agree with it."""

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from moss_studio import publish_nano, write_model
from toy_hub import ToyHub, serving
from toy_moss import nano_files

import launch
from studio.engine.model_catalogue import MOSS_NANO
from studio.settings import assets_dir

CHECKOUT = Path(__file__).parent.parent
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) for line in block.splitlines() if line.strip()
]
PINS: dict[str, str] = dict(
    re.findall(r"(?m)^([a-z0-9-]+)==(\d[0-9a-z.]*)$", (CHECKOUT / "constraints.txt").read_text(encoding="utf-8"))
)


@pytest.fixture
def hub() -> Iterator[ToyHub]:
    """Nano at toy size where the public hub would have it."""
    hub = ToyHub()
    publish_nano(hub, nano_files(goes_on=1.0))
    with serving(hub):
        yield hub


def test_every_example_of_the_command_line_works(
    library: CommandLine, hub: ToyHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(assets_dir() / "voices" / "nathan.flac", tmp_path / "clip.wav")  # the content decides, not the name
    write_model(tmp_path / "models", MOSS_NANO)
    monkeypatch.setenv("STUDIO_HUB", hub.url)
    monkeypatch.chdir(tmp_path)
    opened = []
    monkeypatch.setattr("studio.ui.launch.launch", lambda *given: opened.append(given) or Waiting())
    examples = [line for line in COMMANDS if line.startswith("python -m studio")]
    assert len(examples) >= 8
    for line in examples:
        answer = library.typed(line)
        assert answer.status == (130 if " ui" in line else 0), (line, answer.stderr)
        if "--json" in line:
            assert all(json.loads(printed) for printed in answer.stdout.splitlines())
        arguments = shlex.split(line)
        if "-o" in arguments:
            assert Path(arguments[arguments.index("-o") + 1]).stat().st_size > 10_000
    ((_, _, options, _),) = opened
    assert (options.host, options.port, options.password) == ("0.0.0.0", 7999, "a long sentence")  # noqa: S104


class Waiting:
    def wait(self) -> None:
        """Ctrl-C at once."""


def test_the_two_commands_are_there_and_ci_runs_the_readmes_own() -> None:
    assert "python launch.py" in COMMANDS
    (command,) = [line for line in COMMANDS if line.startswith("python -m venv .venv && ")]
    assert command.endswith("-m pytest")
    assert "-c constraints.txt -e" in command
    ci = (CHECKOUT / ".ci" / "run").read_text(encoding="utf-8")
    assert ci.rstrip().endswith("""bash -c "$(grep -m 1 '^python -m venv .venv && ' README.md)\"""")


def test_every_install_command_uses_the_constraints() -> None:
    for name in ("README.md", "pyproject.toml", ".ci/run"):
        for line in (CHECKOUT / name).read_text(encoding="utf-8").splitlines():
            if "pip install" in line:
                assert "-c constraints.txt" in line, (name, line)


def test_every_dependency_is_pinned_within_its_bounds() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *(each for extra in extras.values() for each in extra)]:
        name = re.split(r"[<>=\[]", requirement)[0].lower()
        for operator, bound in re.findall(r"(>=|<)([\d.]+)", requirement):
            fits = launch.numbers(PINS[name]) >= launch.numbers(bound)
            assert fits == (operator == ">="), requirement


def test_torch_is_pinned_without_a_local_suffix() -> None:
    assert PINS["torch"] == "2.13.0"


def test_the_tree_names_every_part() -> None:
    tree = README.split("## Where things are")[1].split("```")[1]
    for part in (CHECKOUT / "studio").iterdir():
        if part.is_dir() and (part / "__init__.py").exists():
            assert f"  {part.name}/ " in tree


def test_the_changelog_has_this_version() -> None:
    version = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"## {version}" in (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")
