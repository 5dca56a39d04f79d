"""The invariance lab in a browser: one click proves it, a whole run is stopped, and the report is read offline."""

import re
from pathlib import Path

import pytest
from driving import StudioPage
from playwright.sync_api import BrowserContext, Locator

PROVING = 1_200_000
"""Milliseconds that a proof may last on a busy machine; on two free cores it takes less than a minute."""


def open_lab(page: StudioPage) -> Locator:
    page.page.click("#top [data-lab]")
    lab = page.page.locator("dialog.lab")
    lab.locator(".experiments li").first.wait_for(state="attached")
    return lab


def press(lab: Locator, act: str) -> None:
    lab.locator(f"[data-act={act}]").click()


def ended(lab: Locator, state: str) -> str:
    """What a run says once it is over."""
    lab.page.wait_for_selector(f"dialog.lab .job[data-state={state}]", timeout=PROVING)
    return lab.locator(".said").inner_text()


def choose(lab: Locator, *names: str) -> None:
    lab.locator(".choose > summary").click()
    press(lab, "none")
    for name in names:
        lab.locator(f"[name=experiment][value={name}]").check()


@pytest.mark.timeout(1500)
def test_one_click_proves_it_the_page_keeps_it_and_the_report_opens_offline(
    studio_page: StudioPage, browser: BrowserContext, tmp_path: Path
) -> None:
    page = studio_page.page
    lab = open_lab(studio_page)
    assert "encodes every clip alone" in lab.inner_text()
    assert "Nothing has been run yet" in lab.inner_text()
    assert not lab.locator(".results").is_visible()
    press(lab, "prove")
    page.wait_for_function("document.querySelector('dialog.lab progress')?.value > 0", timeout=PROVING)
    assert re.match(r"Experiment \d+ of 11: ", lab.locator(".said").inner_text())
    assert lab.locator(".aloud[role=status]").inner_text().startswith("Experiment")
    page.keyboard.press("Escape")
    page.wait_for_function("/%/.test(document.querySelector('#top [data-lab]').textContent)")
    studio_page.write("The ferry leaves at noon.")
    assert studio_page.speak()["status"]["state"] == "done", "the studio speaks while the lab is at work"
    page.reload()
    studio_page.ready()
    lab = open_lab(studio_page)
    assert "11 experiments in " in ended(lab, "done")

    heads = lab.locator(".headline dd").all_inner_texts()
    assert heads[0] == "1 value per clip"
    assert re.search(r"value", heads[1])
    records = page.evaluate("fetch('./studio/lab/records').then((answer) => answer.json())")["experiments"]
    assert lab.locator("article").count() == len(records) == 11
    maps = next(record for record in records if record["experiment"] == "solo-batch")["figures"]["heat_maps"]
    shown = lab.locator("[data-map]")
    for option in range(2):
        shown.select_option(index=option)
        codes = maps[int(shown.input_value())]["counts"]
        assert lab.locator("rect.cell").count() == sum(map(len, codes))
        assert lab.locator("rect.apart").count() == sum(count > 0 for row in codes for count in row)
    assert lab.locator("article svg[role=img][aria-label]").count() == lab.locator("article svg").count() >= 3
    lab.locator("[data-hear]").first.click()
    page.wait_for_function("document.querySelector('[data-hear]').getAttribute('aria-pressed') === 'true'")
    lab.locator(".place summary").click()
    assert "torch version" in lab.locator(".place").inner_text()

    with page.expect_download() as download:
        lab.locator("[data-get=html]").click()
    report = tmp_path / "report.html"
    download.value.save_as(report)
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", report.read_text("utf-8"))
    with page.expect_download() as download:
        lab.locator("[data-get=json]").click()
    assert download.value.suggested_filename.endswith(".json")
    assert studio_page.hosts == {"127.0.0.1"}
    assert studio_page.errors == []

    reader = browser.new_page()
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(request.url))
    reader.goto(report.as_uri())
    assert reader.locator("section").count() == 11
    assert asked == [report.as_uri()]


def test_a_whole_run_is_stopped_and_another_can_begin(studio_page: StudioPage) -> None:
    page = studio_page.page
    lab = open_lab(studio_page)
    press(lab, "whole")
    lab.locator("[data-act=stop]").wait_for()
    assert re.match(r"Experiment 1 of 19: ", lab.locator(".said").inner_text())
    assert lab.locator("[data-act=prove]").is_disabled()
    lab.locator("[data-act=stop]").focus()
    page.keyboard.press("Enter")
    assert ended(lab, "stopped") == "Stopped. What was found until then is kept."
    assert page.evaluate("document.activeElement.dataset.act") == "prove"
    choose(lab, "sampling")
    press(lab, "chosen")
    assert ended(lab, "done").startswith("1 experiment in ")
    assert "draws are equal" in lab.locator("article[data-experiment=sampling]").inner_text()
    assert studio_page.errors == []


def test_a_choice_of_nothing_is_said(studio_page: StudioPage) -> None:
    lab = open_lab(studio_page)
    choose(lab)
    press(lab, "chosen")
    lab.locator(".notice", has_text="Choose at least one experiment.").wait_for()
    assert studio_page.errors == []


def test_on_a_narrow_page_nothing_is_wider_than_the_dialog(studio_page: StudioPage) -> None:
    studio_page.page.set_viewport_size({"width": 390, "height": 844})
    lab = open_lab(studio_page)
    lab.locator(".choose > summary").click()
    assert lab.evaluate("(dialog) => dialog.scrollWidth <= dialog.clientWidth")
