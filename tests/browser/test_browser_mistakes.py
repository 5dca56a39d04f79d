"""What the page says when something is wrong, and what it keeps to itself."""

import shutil
from pathlib import Path

import httpx
import pytest
from conftest import Started, started
from counting_engine import encoded_file, talk
from driving import StudioPage
from playwright.sync_api import BrowserContext

HOSTILE = """<img src=x onerror="window.hacked=1"> ${window.hacked=2} {{value}} ` ' " \\"""


def add_voice(page: StudioPage, clip: bytes, file_name: str, name: str) -> None:
    page.page.set_input_files("#clip input[type=file]", {"name": file_name, "mimeType": "audio/wav", "buffer": clip})
    page.page.wait_for_function("document.querySelector('#clip button.upload-container') === null")
    page.page.fill("#voice-name input, #voice-name textarea", name)
    page.page.click("#add-voice")


@pytest.mark.parametrize(
    ("script", "words"),
    [("   ", "nothing to speak"), ("\u4f60\u597d\uff0c\u4e16\u754c", "English"), ("[pause soon]", "pause")],
)
def test_a_text_that_cannot_be_spoken_is_a_message_and_no_take(studio_page, script, words):
    before = studio_page.page.locator("#takes li").count()
    studio_page.write(script)
    studio_page.page.click("#speak")
    assert words in studio_page.toast()
    assert studio_page.page.locator("#takes li").count() == before
    assert studio_page.page.is_enabled("#speak")


def test_a_seed_that_is_no_number_is_a_message(studio_page):
    studio_page.page.fill("#seed input, #seed textarea", "lucky")
    studio_page.page.click("#speak")
    assert "seed" in studio_page.toast()


def test_a_text_file_named_wav_is_a_message_and_no_voice(studio_page, running: Started):
    add_voice(studio_page, b"This is no sound at all. " * 400, "speech.wav", "Nobody")
    assert "speech.wav" in studio_page.toast()
    assert studio_page.page.locator("#voices li:has-text('Nobody')").count() == 0
    assert all(b"no sound at all" not in clip.read_bytes() for clip in (running.data_dir / "clips").iterdir())


def test_silence_is_a_message(studio_page):
    silence = talk(2.0).samples * 0
    add_voice(studio_page, encoded_file(type(talk(2.0))(silence, 24_000)), "silence.wav", "Nobody")
    assert "silent" in studio_page.toast()


def test_no_clip_and_no_name_are_messages(studio_page):
    studio_page.page.click("#add-voice")
    assert "There is no clip yet" in studio_page.toast()


def test_a_hostile_name_is_shown_as_it_is_typed_and_the_voice_can_be_removed(studio_page):
    page = studio_page.page
    add_voice(studio_page, encoded_file(talk(3.0, seed=9)), "clip.wav", HOSTILE)
    card = page.locator("#voices li", has_text="onerror")
    card.wait_for()
    assert card.locator(".name").inner_text() == HOSTILE
    assert HOSTILE[:20] in studio_page.toast()
    card.get_by_role("button", name="Remove").click()
    page.click("dialog button[value=no]")
    assert card.count() == 1
    card.get_by_role("button", name="Remove").click()
    assert HOSTILE in page.locator("dialog p").inner_text()
    page.click("dialog button[value=yes]")
    card.wait_for(state="detached")
    assert studio_page.chosen is None
    page.click("#speak")
    assert page.locator("#toasts .toast p").inner_text().startswith("Choose a voice first")
    assert page.evaluate("window.hacked") is None


def test_a_voice_removed_elsewhere_is_said_and_nothing_else_speaks(studio_page, running: Started):
    add_voice(studio_page, encoded_file(talk(3.0, seed=10)), "clip.wav", "Gone soon")
    studio_page.page.wait_for_selector("#voices li:has-text('Gone soon') input:checked", state="attached")
    other = StudioPage(studio_page.page.context.new_page(), running.url).open()
    other.page.locator("#voices li", has_text="Gone soon").get_by_role("button", name="Remove").click()
    other.page.click("dialog button[value=yes]")
    other.page.wait_for_selector("#voices li:has-text('Gone soon')", state="detached")
    studio_page.page.click("#speak")
    assert "There is no voice" in studio_page.page.locator("#toasts .toast p").inner_text()
    studio_page.page.reload()
    studio_page.ready()
    assert studio_page.chosen is None
    assert "removed" in studio_page.toast()


def test_a_password_closes_every_route_until_the_login(tmp_path: Path, filled_library: Path, browser: BrowserContext):
    data_dir = tmp_path / "data"
    shutil.copytree(filled_library, data_dir)
    with started(data_dir, "--port", "7940", "--password", "open sesame") as studio:
        routes = ["studio/page/player.js", "studio/speech/x", "studio/takes/x/audio", "studio/voices/clara/clip"]
        for route in [*routes, "gradio_api/file=x", "gradio_api/info"]:
            assert httpx.get(studio.url + route).status_code == 401, route
        for route in ["studio/speech", "studio/speech/x/stop", "gradio_api/run/predict", "gradio_api/queue/join"]:
            assert httpx.post(studio.url + route, json={}).status_code == 401, route
        page = browser.pages[0]
        page.goto(studio.url)
        page.get_by_label("username").fill("studio")
        page.get_by_label("password").fill("open sesame")
        page.get_by_role("button", name="Login").click()
        inside = StudioPage(page, studio.url).ready()
        inside.write("Yes, you may!")
        assert inside.speak()["status"]["state"] == "done"
