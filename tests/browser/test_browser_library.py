"""The library on the page: a clip is examined, becomes a voice, is looked after, travels, and its takes are kept."""

from pathlib import Path

from counting_engine import encoded_file, talk
from driving import StudioPage

LONG_CLIP = encoded_file(talk(14.0, seed=21))


def make_voice(page: StudioPage, clip: bytes, name: str) -> None:
    """With what the desk proposes, where it proposes something."""
    page.page.set_input_files("#clip input[type=file]", {"name": "a.wav", "mimeType": "audio/wav", "buffer": clip})
    page.page.wait_for_selector("#findings li")
    proposal = page.page.locator("#findings button").first
    if proposal.count():
        proposal.click()
        page.page.wait_for_function("document.querySelector('#trim-end input').value !== ''")
    page.page.fill("#voice-name input, #voice-name textarea", name)
    page.page.click("#add-voice")
    page.page.wait_for_selector(f"#voices li:has-text('{name}') input:checked", state="attached")


def open_sheet(page: StudioPage, name: str) -> None:
    page.page.locator("#voices li", has_text=name).get_by_role("button", name=f"Details of {name}").click()
    page.page.wait_for_selector("dialog.sheet[open]")


def said(page: StudioPage, act: str) -> str:
    """What the sheet says once an act of it is done."""
    page.page.click(f"dialog.sheet [data-act={act}]")
    page.page.wait_for_function(
        "!('busy' in document.querySelector('dialog.sheet').dataset) && document.querySelector('.notice').textContent"
    )
    return page.page.inner_text("dialog.sheet .notice")


def fact(page: StudioPage, term: str) -> str:
    return page.page.locator("dialog.sheet dt", has_text=term).first.evaluate("node => node.nextSibling.textContent")


def test_a_clip_is_examined_before_it_is_a_voice(studio_page):
    studio_page.page.set_input_files(
        "#clip input[type=file]", {"name": "a.wav", "mimeType": "audio/wav", "buffer": LONG_CLIP}
    )
    studio_page.page.wait_for_selector("#findings li")
    findings = studio_page.page.inner_text("#findings")
    assert "length 14.0 s" in findings
    assert "3 to 10 s are best" in findings
    assert studio_page.errors == []


def test_a_voice_is_made_looked_after_and_travels(studio_page, tmp_path: Path):
    page = studio_page.page
    make_voice(studio_page, LONG_CLIP, "Wanda")
    open_sheet(studio_page, "Wanda")
    digest = fact(studio_page, "digest")
    assert len(digest) == 64
    page.fill("dialog [name=tags]", "calm, winter")
    page.fill("dialog [name=transcript]", "What is said.")
    assert said(studio_page, "save") == "Saved."
    assert "codes are those that an encode gives here" in said(studio_page, "verify")
    with page.expect_download() as download:
        page.click("dialog [data-export]")
    bundle = tmp_path / "wanda.zip"
    download.value.save_as(bundle)
    page.fill("dialog [name=start]", "0")
    page.fill("dialog [name=end]", "4")
    assert said(studio_page, "trim") == "4.00 s are used now."
    assert fact(studio_page, "digest") != digest
    assert page.is_visible("dialog .doubt")
    page.click("dialog .close")

    page.locator("#voice-search textarea, #voice-search input").press_sequentially("winter")
    page.wait_for_function("document.querySelectorAll('#voices li').length === 1")
    page.fill("#voice-search textarea, #voice-search input", "")
    page.wait_for_function("document.querySelectorAll('#voices li').length > 1")

    open_sheet(studio_page, "Wanda")
    page.click("dialog.sheet [data-act=remove]")
    page.click("dialog.ask button[value=yes]")
    page.wait_for_selector("#voices li:has-text('Wanda')", state="detached")
    page.set_input_files("[data-import]", bundle)
    page.wait_for_selector("#voices li:has-text('Wanda')")
    open_sheet(studio_page, "Wanda")
    assert fact(studio_page, "digest") == digest
    assert page.input_value("dialog [name=transcript]") == "What is said."
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog.sheet", state="detached")
    assert studio_page.errors == []


def test_a_take_is_marked_found_noted_and_spoken_again(studio_page):
    page = studio_page.page
    studio_page.write("Yes, you may!")
    first = studio_page.speak()
    row = page.locator("#takes li").first
    row.locator(".star").click()
    page.wait_for_selector("#takes li .star[aria-pressed=true]")
    page.locator("#takes li .note").first.fill("keeper")
    page.locator("#takes li .note").first.press("Tab")
    page.locator("#takes li [data-again]").first.click()
    page.wait_for_function("window.studioPlayer.state !== 'idle'")
    again = studio_page.finish()
    assert again["sha256"] == first["sha256"]
    assert studio_page.outcome[0] == "codes kept with the first take"
    page.locator("#take-search textarea, #take-search input").press_sequentially("keeper")
    page.wait_for_function("document.querySelectorAll('#takes li').length === 1")
    assert page.locator("#takes li .note").input_value() == "keeper"
    assert studio_page.errors == []


def test_the_totals_of_the_cache_show_what_was_saved(studio_page):
    studio_page.write("Yes, you may!")
    before = studio_page.page.inner_text("#totals .totals div:first-child dd")
    studio_page.speak()
    studio_page.page.wait_for_function(
        "before => document.querySelector('#totals .totals div:first-child dd').textContent !== before", arg=before
    )
