"""Drives the page in Chromium as a person would, and asks it what it measured. Knows nothing of the studio's code."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage, Page, Request, sync_playwright

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
]
SPEAKING = 120_000
"""Milliseconds that a take may last on a busy machine."""


class StudioPage:
    """One tab with the studio in it."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.hosts: set[str] = set()
        self.errors: list[str] = []
        page.on("request", self._note_request)
        page.on("console", self._note_message)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _note_request(self, request: Request) -> None:
        address = urlsplit(request.url)
        if address.scheme not in ("data", "blob"):
            self.hosts.add(address.hostname or "")

    def _note_message(self, message: ConsoleMessage) -> None:
        refused = "the server responded with a status of 4" in message.text  # the browser's own note on a mistake
        if message.type == "error" and not refused:
            self.errors.append(message.text)

    def open(self) -> "StudioPage":
        self.page.goto(self.url)
        return self.ready()

    def ready(self) -> "StudioPage":
        self.page.wait_for_selector("#voices [data-loaded] li")
        self.page.wait_for_selector("html[data-player=ready]")
        return self

    def choose(self, voice: str) -> None:
        self.page.locator("#voices li", has_text=voice).first.locator("label").click()

    @property
    def chosen(self) -> str | None:
        return self.page.evaluate("document.querySelector('#voices input:checked')?.value ?? null")

    def write(self, script: str) -> None:
        self.page.fill("#script textarea", script)

    def start(self) -> None:
        self.page.click("#speak")
        self.page.wait_for_function("window.studioPlayer.state !== 'idle'")

    def finish(self) -> dict[str, Any]:
        """Waits until all is made and heard; returns what the player measured."""
        self.page.wait_for_function("window.studioPlayer.state === 'idle'", timeout=SPEAKING)
        return self.stats

    def speak(self) -> dict[str, Any]:
        self.start()
        return self.finish()

    @property
    def stats(self) -> dict[str, Any]:
        return self.page.evaluate("window.studioPlayer.stats")

    def wait_heard(self, seconds: float) -> None:
        self.page.wait_for_function(f"window.studioPlayer.stats.played > {seconds}", timeout=SPEAKING)

    @property
    def outcome(self) -> list[str]:
        return self.page.locator("#stage .outcome span").all_inner_texts()

    def toast(self) -> str:
        """The sentence of the message that shows."""
        message = self.page.locator("#toasts .toast p, [data-testid=toast-text]").first
        message.wait_for()
        return message.inner_text()


@contextmanager
def chromium(profile: Path, **options: Any) -> Iterator[BrowserContext]:
    """A browser with a fresh profile and a false microphone."""
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            profile, executable_path=CHROMIUM, headless=False, args=FLAGS, permissions=["microphone"], **options
        )
        try:
            yield context
        finally:
            context.close()
