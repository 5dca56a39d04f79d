"""What holds for every test: no test touches the user's data, and in CI a skipped test is a failure."""

import os
import shutil
import signal
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

if TYPE_CHECKING:
    import command_line

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.fixture(autouse=True)
def own_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the studio keeps its data in this test; a subprocess inherits it."""
    data_dir = tmp_path / "data"
    monkeypatch.setenv("STUDIO_DATA_DIR", str(data_dir))
    for name in ("STUDIO_DEVICE", "STUDIO_LANES", "STUDIO_CACHE_MB", "STUDIO_HUB"):
        monkeypatch.delenv(name, raising=False)
    return data_dir


@pytest.fixture
def studio(
    own_data_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> "command_line.CommandLine":
    """The command line on an empty data folder, the real voice model loaded once for all tests."""
    import command_line  # noqa: PLC0415 - it imports torch, which most tests do not need

    command_line.load_once(monkeypatch)
    return command_line.CommandLine(capsys, own_data_dir)


@pytest.fixture(scope="session")
def filled_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder in which the built-in voices have their codes."""
    import command_line  # noqa: PLC0415

    data_dir = tmp_path_factory.mktemp("library")
    command_line.fill(data_dir)
    return data_dir


@pytest.fixture
def library(studio: "command_line.CommandLine", filled_library: Path) -> "command_line.CommandLine":
    """The command line on a library with the built-in voices in it."""
    shutil.copytree(filled_library, studio.data_dir)
    return studio


def pytest_configure() -> None:
    """Ctrl-C works in the programs that tests start, also where a shell in the background had it ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return failed_where_skipped((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return failed_where_skipped((yield))


def failed_where_skipped(report: Report) -> Report:
    if report.skipped and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"Skipped, which CI does not allow: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Names every test that was skipped, and why."""
    for report in terminalreporter.getreports("skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        terminalreporter.write_line(f"not run: {report.nodeid} ({reason})")
