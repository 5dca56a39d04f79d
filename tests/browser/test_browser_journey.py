"""The journeys of a person through the page, in a real browser with the real voice model."""

import base64
import hashlib
import io
from pathlib import Path

import numpy as np
import soundfile
from conftest import Started
from counting_engine import encoded_file, talk
from driving import StudioPage
from playwright.sync_api import BrowserContext

SCRIPT = "The harbour was quiet before sunrise. Then the gulls began."
LONG = " ".join(["The quick brown fox jumps over the lazy dog, and nobody minds."] * 20)
_DROP = """([selector, name, content]) => {
  const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
  const files = new DataTransfer();
  files.items.add(new File([bytes], name, { type: "audio/wav" }));
  const target = document.querySelector(selector);
  for (const kind of ["dragenter", "dragover", "drop"])
    target.dispatchEvent(new DragEvent(kind, { dataTransfer: files, bubbles: true, cancelable: true }));
}"""


def samples_of_take(page: StudioPage, take: str) -> np.ndarray:
    answer = page.page.request.get(f"{page.url}studio/takes/{take}/audio")
    return soundfile.read(io.BytesIO(answer.body()), dtype="int16", always_2d=True)[0]


def assert_heard_exactly(page: StudioPage, stats: dict) -> None:
    """What the page received is what the server sent, what was played to the end, and what the take holds."""
    status = stats["status"]
    samples = samples_of_take(page, status["take"])
    assert stats["sha256"] == status["sha256"] == hashlib.sha256(samples.astype("<i2").tobytes()).hexdigest()
    assert stats["bytes"] == status["bytes"] == samples.nbytes
    assert stats["playedSamples"] == len(samples)


def test_open_pick_speak_hear_stop_drop_and_speak_again(studio_page):
    page = studio_page
    page.choose("Robin")
    page.write(SCRIPT)
    stats = page.speak()
    assert (stats["status"]["state"], stats["status"]["cache"]) == ("done", "hit")
    assert_heard_exactly(page, stats)
    assert stats["firstAudioMs"] > 0
    assert stats["underruns"] == 0 or stats["status"]["realtime_speed"] < 2
    assert page.outcome[0].startswith("codes from cache, ")
    assert f"seed {stats['status']['seed']}" in page.outcome
    take = page.page.locator("#takes li").first
    assert "Robin" in take.inner_text()
    assert SCRIPT in take.inner_text()

    page.write(LONG)
    page.start()
    page.wait_heard(0.3)
    page.page.click("#stop")
    stats = page.finish()
    assert stats["status"]["state"] == "stopped"
    assert 1000 * stats["status"]["ended_at"] - stats["stopClicked"] < 200
    page.page.wait_for_selector("#takes li .partial")

    clip = base64.b64encode(encoded_file(talk(4.0, seed=3))).decode()
    page.page.evaluate(_DROP, ["#clip button.upload-container", "my clip.wav", clip])
    page.page.wait_for_selector("#clip [data-testid^=waveform] audio, #clip .waveform-container", state="attached")
    page.page.fill("#voice-name input, #voice-name textarea", "Dropped")
    page.page.click("#add-voice")
    page.page.wait_for_selector("#voices li:has-text('Dropped') input:checked", state="attached")
    assert "Dropped" in page.toast()
    page.write(SCRIPT)
    stats = page.speak()
    assert_heard_exactly(page, stats)
    assert "Dropped" in page.page.locator("#takes li").first.inner_text()

    assert page.hosts == {"127.0.0.1"}
    assert page.errors == []


def test_the_choice_of_a_voice_survives_a_reload(studio_page):
    studio_page.choose("Nathan")
    studio_page.page.wait_for_timeout(500)
    studio_page.page.reload()
    studio_page.ready()
    assert studio_page.chosen == "nathan"


def test_a_reload_in_mid_sentence_stops_the_model_and_finds_the_take(studio_page):
    studio_page.write(LONG)
    studio_page.start()
    studio_page.wait_heard(0.2)
    studio_page.page.reload()
    studio_page.ready()
    studio_page.page.wait_for_timeout(500)
    studio_page.page.reload()
    studio_page.ready()
    assert "partial" in studio_page.page.locator("#takes li").first.inner_text()


def test_six_tabs_work(running: Started, browser: BrowserContext):
    tabs = [StudioPage(browser.new_page(), running.url).open() for _ in range(6)]
    for tab in (tabs[0], tabs[5]):
        tab.page.bring_to_front()
        tab.choose("Robin")
        tab.write("Yes, you may!")
        assert_heard_exactly(tab, tab.speak())


def test_the_keyboard_is_enough(studio_page):
    page = studio_page.page
    studio_page.choose("Nathan")
    page.keyboard.press("ArrowDown")
    assert studio_page.chosen == "clara"
    studio_page.write(LONG)
    page.keyboard.press("Control+Enter")
    studio_page.wait_heard(0.1)
    assert page.evaluate("document.activeElement.closest('#script') !== null")
    page.keyboard.press("Escape")
    assert studio_page.finish()["status"]["state"] == "stopped"


def test_without_an_audio_worklet_the_same_samples_are_heard(running: Started, browser: BrowserContext):
    browser.add_init_script("Object.defineProperty(BaseAudioContext.prototype, 'audioWorklet', { get() {} })")
    page = StudioPage(browser.pages[0], running.url).open()
    page.write(SCRIPT)
    stats = page.speak()
    assert_heard_exactly(page, stats)
    assert stats["firstAudioMs"] > 0


def test_a_take_downloads_under_a_safe_name_and_goes_when_removed(studio_page, tmp_path: Path):
    studio_page.write("Yes, you may!")
    take = studio_page.speak()["status"]["take"]
    row = studio_page.page.locator("#takes li").first
    row.get_by_text("Download").click()
    with studio_page.page.expect_download() as download:
        row.get_by_role("link", name="wav").click()
    assert download.value.suggested_filename.endswith(f"yes-you-may-{take[:8]}.wav")
    row.get_by_role("button", name="Remove").click()
    studio_page.page.click("dialog button[value=yes]")
    studio_page.page.wait_for_selector(f"#takes li >> [data-remove='{take}']", state="detached")
    assert studio_page.page.request.get(f"{studio_page.url}studio/takes/{take}/audio").status == 404
