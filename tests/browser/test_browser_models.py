"""A model's way through the page: downloaded with every fault, loaded, spoken with in stereo, and let go again."""

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Started, started
from counting_engine import encoded_file, talk
from driving import SPEAKING, StudioPage
from moss_studio import publish_nano, write_model
from playwright.sync_api import BrowserContext, Locator
from test_browser_journey import _DROP, assert_heard_exactly
from toy_hub import ToyHub, serving
from toy_moss import RATE, nano_files

from studio.engine.model_catalogue import MOSS_NANO

WEIGHTS = "pytorch_model.bin"
HELD_UP = re.compile(rf"{re.escape(WEIGHTS)}\s*3\d %")
"""A good third of the weights has come."""
SENTENCE = "The ferry leaves at noon."


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyHub]:
    with serving(ToyHub()) as hub:
        publish_nano(hub, nano_files(goes_on=2.0))
        monkeypatch.setenv("STUDIO_HUB", hub.url)
        yield hub


@pytest.fixture
def fresh(hub: ToyHub, tmp_path: Path, filled_library: Path) -> Iterator[Started]:
    """A studio of its own, which gets models from the toy hub."""
    data_dir = tmp_path / "data"
    shutil.copytree(filled_library, data_dir)
    with started(data_dir, "--port", "7950") as studio:
        yield studio


@pytest.fixture
def page(fresh: Started, browser: BrowserContext) -> StudioPage:
    return StudioPage(browser.pages[0], fresh.url).open()


def open_models(page: StudioPage) -> Locator:
    """The dialog, and in it the model that is downloaded here."""
    page.page.click("#top [data-models]")
    nano = page.page.locator("dialog.models li[data-name=moss-nano]")
    nano.wait_for()
    return nano


def press(nano: Locator, act: str) -> None:
    nano.locator(f"[data-act={act}]").click()


def ended(nano: Locator, state: str) -> str:
    """What a job says once it is over."""
    nano.page.wait_for_selector(f"dialog.models li[data-name=moss-nano][data-job={state}]", timeout=SPEAKING)
    return nano.locator(".said").inner_text()


def notice(page: StudioPage, words: str) -> str:
    found = page.page.locator("dialog.models .notice", has_text=words)
    found.wait_for(timeout=SPEAKING)
    return found.inner_text()


def what_speaks(page: StudioPage) -> str:
    return page.page.inner_text("#top .where")


def test_from_the_catalogue_over_the_hub_to_a_voice_a_take_and_back(page: StudioPage, hub: ToyHub, fresh: Started):
    assert what_speaks(page) == "The embedded voice on cpu, 24 kHz, mono"
    page.choose("Nathan")
    page.write(SENTENCE)
    embedded = page.speak()
    assert "embedded on cpu" in page.outcome

    nano = open_models(page)
    assert "about 323.0 MB to download" in nano.inner_text()
    hub.stall[WEIGHTS] = 100_000
    press(nano, "download")
    nano.locator(".files li", has_text=HELD_UP).wait_for()
    page.page.reload()  # the download belongs to the studio, not to the page
    page.ready()
    page.page.wait_for_function("document.querySelector('#top [data-models]').textContent.includes('%')")
    nano = open_models(page)
    nano.locator(".files li", has_text=HELD_UP).wait_for()
    press(nano, "stop")
    assert "What has arrived is kept" in ended(nano, "stopped")

    hub.stall.clear()
    hub.requests.clear()
    hub.breaks[WEIGHTS] = [50_000]
    hub.corrupt = {WEIGHTS}
    press(nano, "download")
    assert "is not the file that was promised" in ended(nano, "failed")
    first, second = hub.bodies(WEIGHTS)
    assert (first.start, second.start) == (100_000, 150_000)

    hub.corrupt = set()
    press(nano, "download")
    assert "MOSS-TTS Nano is here" in ended(nano, "done")
    press(nano, "check")
    page.page.wait_for_function(
        "document.querySelector('[data-name=moss-nano] .said').textContent.includes('as they were')"
    )

    press(nano, "use")
    assert ended(nano, "done")
    page.page.wait_for_selector("li[data-name=moss-nano].chosen", timeout=SPEAKING)
    page.page.keyboard.press("Escape")
    page.page.wait_for_selector("dialog.models", state="detached")
    assert what_speaks(page) == "MOSS-TTS Nano on cpu, 48 kHz, stereo"
    page.page.wait_for_selector("#voices li:has-text('not encoded yet')")

    clip = base64.b64encode(encoded_file(talk(4.0, seed=3))).decode()
    page.page.evaluate(_DROP, ["#clip button.upload-container", "my clip.wav", clip])
    page.page.wait_for_selector("#findings li")
    page.page.fill("#voice-name input, #voice-name textarea", "Dropped")
    page.page.click("#add-voice")
    page.page.wait_for_selector("#voices li:has-text('Dropped') input:checked", state="attached", timeout=SPEAKING)
    page.write(SENTENCE)
    page.page.fill("#seed input, #seed textarea", "4")
    stats = page.speak()
    assert (stats["status"]["state"], stats["status"]["engine"]) == ("done", "moss-nano")
    assert (stats["sampleRate"], stats["channels"]) == (RATE, 2)
    assert_heard_exactly(page, stats)
    assert "moss-nano on cpu" in page.outcome
    assert "moss-nano on cpu" in page.page.locator("#takes li .figures").first.inner_text()
    page.choose("Clara")
    assert page.speak()["status"]["cache"] == "fill"
    assert page.speak()["status"]["cache"] == "hit"

    nano = open_models(page)
    press(nano, "unload")
    assert re.fullmatch(
        r"MOSS-TTS Nano is unloaded: [\d.]+ [kM]B of memory are free again\. The embedded voice speaks now\.",
        notice(page, "is unloaded"),
    )
    page.page.click("dialog.models .close")
    assert what_speaks(page).startswith("The embedded voice")
    page.page.fill("#seed input, #seed textarea", str(embedded["status"]["seed"]))
    page.choose("Nathan")
    again = page.speak()
    assert_heard_exactly(page, again)
    assert (again["sampleRate"], again["channels"]) == (24_000, 1)
    assert again["status"]["seed"] == embedded["status"]["seed"]
    assert again["sha256"] == embedded["sha256"]
    page.page.locator("#takes li", has_text="moss-nano on cpu").first.locator("[data-again]").click()
    assert "Load that voice model first" in page.toast()
    assert page.hosts == {"127.0.0.1"}
    assert page.errors == []


def test_a_model_in_a_folder_is_used_removed_only_after_a_question_and_a_busy_engine_stays(
    page: StudioPage, tmp_path: Path
):
    own = write_model(tmp_path / "own", MOSS_NANO)
    nano = open_models(page)
    nano.locator(".own summary").click()
    nano.locator("[name=folder]").fill(str(tmp_path / "nowhere"))
    nano.locator("[name=folder]").press("Enter")
    assert "there is no such folder" in ended(nano, "failed")
    nano.locator("[name=folder]").fill(str(own))
    press(nano, "folder")
    assert "is used from your folder" in ended(nano, "done")

    page.page.evaluate("window.studioPage.speak('The harbour was quiet before sunrise. '.repeat(9), 1, '')")
    page.wait_heard(0.1)
    press(nano, "use")
    assert "The embedded voice is at work" in notice(page, "at work")
    page.page.evaluate("window.studioPlayer.stop()")
    page.finish()

    press(nano, "remove")
    page.page.click("dialog.ask button[value=no]")
    assert "Forget the folder" in nano.inner_text()
    press(nano, "remove")
    page.page.click("dialog.ask button[value=yes]")
    notice(page, "is removed")
    assert (own / "MOSS-TTS-Nano" / WEIGHTS).is_file()
    assert page.errors == []


def test_the_dialog_needs_no_mouse_and_says_aloud_what_happens(page: StudioPage, hub: ToyHub):
    page.page.focus("#top [data-models]")
    page.page.keyboard.press("Enter")
    nano = page.page.locator("dialog.models li[data-name=moss-nano]")
    nano.locator("[data-act=download]").focus()
    hub.pace = 0.02
    page.page.keyboard.press("Enter")
    page.page.wait_for_function("document.activeElement.dataset.act === 'stop'")
    assert nano.locator("progress").get_attribute("aria-label") == "Downloading MOSS-TTS Nano"
    assert nano.locator(".aloud[role=status]").inner_text().startswith("Downloading MOSS-TTS Nano")
    page.page.keyboard.press("Enter")
    ended(nano, "stopped")
    page.page.keyboard.press("Escape")
    page.page.wait_for_selector("dialog.models", state="detached")
    assert page.page.evaluate("document.activeElement.matches('#top [data-models]')")


def test_another_tab_learns_which_engine_speaks_before_it_hears_anything(
    page: StudioPage, browser: BrowserContext, tmp_path: Path, fresh: Started
):
    other = StudioPage(browser.new_page(), fresh.url).open()
    nano = open_models(other)
    nano.locator(".own summary").click()
    nano.locator("[name=folder]").fill(str(write_model(tmp_path / "own", MOSS_NANO, nano_files(goes_on=2.0))))
    press(nano, "folder")
    ended(nano, "done")
    press(nano, "use")
    other.page.wait_for_selector("li[data-name=moss-nano].chosen", timeout=SPEAKING)
    assert what_speaks(page).startswith("The embedded voice")
    page.write(SENTENCE)
    page.page.click("#speak")
    assert "MOSS-TTS Nano speaks now" in page.toast()
    page.page.wait_for_function("document.querySelector('#top .where').textContent.startsWith('MOSS')")
    page.page.fill("#seed input, #seed textarea", "4")
    stats = page.speak()
    assert (stats["status"]["engine"], stats["channels"]) == ("moss-nano", 2)
    assert_heard_exactly(page, stats)
