"""What holds for every test: no test touches the user's data, and in CI a skipped test is a failure."""

import os
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar

import pytest

Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


@pytest.fixture(autouse=True)
def own_data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the studio keeps its data in this test; a subprocess inherits it."""
    data_dir = tmp_path / "data"
    monkeypatch.setenv("STUDIO_DATA_DIR", str(data_dir))
    monkeypatch.delenv("STUDIO_DEVICE", raising=False)
    return data_dir


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
