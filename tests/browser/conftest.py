"""A studio as a user starts it, and a browser to open it with."""

import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from driving import CHROMIUM, StudioPage, chromium
from playwright.sync_api import BrowserContext


@dataclass(frozen=True)
class Started:
    """A `python -m studio ui` that runs."""

    url: str
    data_dir: Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; on Debian: apt-get install chromium")
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(missing)


@contextmanager
def started(data_dir: Path, *arguments: str) -> Iterator[Started]:
    command = [sys.executable, "-m", "studio", "--data-dir", str(data_dir), "ui", "--no-browser", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(r"is on (http://\S+)", line):
                    yield Started(found[1], data_dir)
                    break
            else:
                raise AssertionError("the studio did not start")
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory, filled_library: Path) -> Iterator[Started]:
    """One studio for all journeys."""
    data_dir = tmp_path_factory.mktemp("page") / "data"
    shutil.copytree(filled_library, data_dir)
    with started(data_dir, "--port", "7930") as studio:
        yield studio


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[BrowserContext]:
    with chromium(tmp_path / "profile") as context:
        yield context


@pytest.fixture
def studio_page(running: Started, browser: BrowserContext) -> StudioPage:
    return StudioPage(browser.pages[0], running.url).open()
