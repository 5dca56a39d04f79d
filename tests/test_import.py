"""Importing the studio is quick and does nothing, and its parts know only what they may know."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent
HEAVY = {"torch", "gradio", "sqlite_utils", "gruut", "av", "pandas", "fastapi"}
MODULES = sorted(
    ".".join(path.relative_to(CHECKOUT).with_suffix("").parts).removesuffix(".__init__")
    for path in (CHECKOUT / "studio").rglob("*.py")
    if "training" not in path.parts
)


def python(code: str, *arguments: str) -> str:
    """What a new Python, started in the checkout, prints."""
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout


@pytest.mark.parametrize("module", ["studio", "studio.settings", "studio.__main__", "studio.commands.application"])
def test_a_quick_module_imports_nothing_heavy(module: str) -> None:
    loaded = python(f"import sys, {module}; print(*sys.modules)").split()
    assert HEAVY.isdisjoint(loaded)


def test_help_loads_no_model(own_data_dir: Path) -> None:
    code = "import sys; from studio.__main__ import main; assert main(sys.argv[1:]) == 0; print(*sys.modules)"
    for arguments in ([], ["speak"], ["voices"], ["voices", "add"], ["ui"]):
        assert HEAVY.isdisjoint(python(code, *arguments, "--help").split())
    assert not own_data_dir.exists()


def test_nothing_happens_on_import(own_data_dir: Path) -> None:
    """No folder is made, no logging set up, no thread started, no thread count set."""
    code = (
        "import importlib, logging, sys, threading, torch\n"
        "before = torch.get_num_threads(), torch.get_num_interop_threads()\n"
        "for name in sys.argv[1:]: importlib.import_module(name)\n"
        "assert (torch.get_num_threads(), torch.get_num_interop_threads()) == before\n"
        "ours = [thread.name for thread in threading.enumerate() if 'lane' in thread.name]\n"
        "assert not ours and not logging.getLogger('studio').handlers, ours"
    )
    python(code, *MODULES)
    assert not own_data_dir.exists()


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr


def test_ruff_finds_nothing() -> None:
    run(sys.executable, "-m", "ruff", "check", "--output-format", "concise")
    run(sys.executable, "-m", "ruff", "format", "--check")


def test_pyright_finds_nothing() -> None:
    run(sys.executable, "-m", "pyright", "--pythonpath", sys.executable)


def test_imports_point_down() -> None:
    run(sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache")


def test_files_stay_short_and_finished() -> None:
    for path in sorted((CHECKOUT / "studio").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert text.count("\n") <= 250, f"{path.name} has more than 250 lines"
        assert not {"TODO", "FIXME", "NotImplementedError"} & set(text.replace(":", " ").split()), path.name
