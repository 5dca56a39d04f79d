"""The invariance lab over HTTP: a run is started, watched, stopped, refused and kept, and handed out as files."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_studio import no_other, toy_synthesizer
from starlette.applications import Starlette
from starlette.testclient import TestClient

from studio.engine_room import EngineRoom
from studio.server.jobs import SpeechJobs
from studio.server.lab_jobs import SHORT, LabJobs
from studio.server.model_shelf import ModelShelf
from studio.server.routes import studio_routes
from studio.settings import Settings, assets_dir

BRIEF = {"experiments": ["solo-batch", "audible", "sampling"], "voices": ["clara"], "quick": True}


class Studio:
    """The routes of a studio, asked as the lab's dialog asks; the lab's own process loads the real voice model."""

    def __init__(self, settings: Settings) -> None:
        room = EngineRoom(toy_synthesizer(settings), no_other)
        jobs = SpeechJobs()
        self.lab = LabJobs(room, settings)
        self._routes = {
            "room": room,
            "jobs": jobs,
            "shelf": ModelShelf(room, jobs, settings),
            "lab": self.lab,
            "page_dir": assets_dir(),
        }
        self.page = self.visitor(entered=True)

    def visitor(self, *, entered: bool) -> TestClient:
        routes = studio_routes(**self._routes, may_enter=lambda _: entered)
        return TestClient(Starlette(routes=routes))

    def sheet(self) -> dict[str, Any]:
        return self.page.get("/studio/lab").json()

    def start(self, **wanted: Any) -> Any:
        return self.page.post("/studio/lab/start", json=wanted)

    def ended(self) -> dict[str, Any]:
        """The run once it is over."""
        while (job := self.sheet()["job"])["state"] == "running":
            time.sleep(0.05)
        return job


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    studio = Studio(Settings(data_dir=tmp_path))
    yield studio
    studio.lab.close()


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    """A studio in which a brief run has ended well."""
    studio = Studio(Settings(data_dir=tmp_path_factory.mktemp("proved")))
    answer = studio.start(**BRIEF)
    assert answer.status_code == 200, answer.text
    job = answer.json()["job"]
    assert (job["state"], job["number"], job["of"], job["experiment"]) == ("running", 1, 3, "solo-batch")
    job = studio.ended()
    assert job["state"] == "done", job["said"]
    yield studio
    studio.lab.close()


def test_before_anything_was_run_there_is_a_choice_and_nothing_to_hand_out(studio: Studio) -> None:
    sheet = studio.sheet()
    assert (sheet["engine"], sheet["job"], sheet["results"]) == ("The embedded voice", None, None)
    assert {each["name"] for each in sheet["experiments"] if each["short"]} == set(SHORT)
    assert [each["name"] for each in sheet["experiments"] if each["on_request"]] == ["library"]
    for path in ("records", "report", "report?as=json", "report?as=case", "sounds/x.wav"):
        refused = studio.page.get(f"/studio/lab/{path}")
        assert refused.status_code == 404
        assert "nothing" in refused.json()["error"]


def test_a_run_ends_with_a_headline_and_records_that_stay(proved: Studio) -> None:
    assert proved.sheet()["results"] == "1/3"
    found = proved.page.get("/studio/lab/records").json()
    assert [record["experiment"] for record in found["experiments"]] == BRIEF["experiments"]
    assert [(each["dtype"], each["threads"]) for each in found["headlines"]] == [("float32", 1)]
    assert "value" in found["headlines"][0]["batched"]
    assert found["title"] == "The embedded voice"
    assert "clara-1" in found["environment"]["clips"], "the clip of the voice that was chosen, and its neighbours"


def test_the_report_is_one_file_without_anything_from_elsewhere(proved: Studio) -> None:
    page = proved.page.get("/studio/lab/report")
    assert page.headers["content-disposition"].startswith('attachment; filename="invariance-lab-')
    assert page.headers["content-disposition"].endswith('.html"')
    for foreign in ("src=", 'href="http', "url(", "@import"):
        assert foreign not in page.text
    records = json.loads(proved.page.get("/studio/lab/report?as=json").text)
    assert records["experiments"] == proved.page.get("/studio/lab/records").json()["experiments"]
    assert proved.page.get("/studio/lab/report?as=pdf").status_code == 400


def test_both_sounds_of_a_clip_can_be_heard_by_name_and_nothing_else_can(proved: Studio) -> None:
    _, audible, _ = proved.page.get("/studio/lab/records").json()["experiments"]
    for sound in audible["figures"]["clips"][0]["sounds"].values():
        part = proved.page.get(f"/studio/lab/sounds/{sound}", headers={"Range": "bytes=0-3"})
        assert (part.status_code, part.content, part.headers["content-type"]) == (206, b"RIFF", "audio/wav")
    assert proved.page.get("/studio/lab/sounds/..%2Fclips%2Fclara-1").status_code == 404
    assert proved.page.get("/studio/lab/sounds/other.wav").status_code == 404


def test_a_run_that_is_stopped_ends_its_process_and_leaves_the_results_before(proved: Studio) -> None:
    assert proved.start(experiments=["search"]).status_code == 200
    refused = proved.start(experiments=["search"])
    assert "at work already" in refused.json()["error"]
    job = proved.page.post("/studio/lab/stop").json()["job"]
    assert job["stopping"] or job["state"] == "stopped"
    job = proved.ended()
    assert (job["state"], job["said"]) == ("stopped", "Stopped. What was found until then is kept.")
    assert proved.sheet()["results"] == "1/3"


def test_what_cannot_be_run_is_a_sentence_and_nothing_starts(studio: Studio) -> None:
    for wanted, word in (
        ({"experiments": ["nonsense"]}, "choose from repeat-solo"),
        ({"experiments": "sampling"}, "send a list of names"),
        ({"quick": "yes"}, "send true or false"),
        ({"threads": 64}, "only experiments"),
        ({"voices": ["nobody"]}, "no voice"),
        ({"voices": ["clara"] * 21}, "at most 20"),
    ):
        refused = studio.start(**wanted)
        assert refused.status_code in (400, 404)
        assert word in refused.json()["error"]
    assert studio.sheet()["job"] is None


def test_what_the_process_refuses_is_what_the_run_says(tmp_path: Path) -> None:
    studio = Studio(Settings(data_dir=tmp_path, device="mps"))
    studio.start(experiments=["sampling"])
    job = studio.ended()
    studio.lab.close()
    assert job["state"] == "failed"
    assert "mps" in job["said"]


def test_a_process_that_breaks_is_a_failed_run(studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_CACHE_MB", "many")
    studio.start(experiments=["sampling"])
    job = studio.ended()
    assert job["state"] == "failed"
    assert job["said"].startswith("Something broke in the lab's own process")
    assert studio.sheet()["results"] is None


def test_a_stranger_learns_and_does_nothing(studio: Studio) -> None:
    stranger = studio.visitor(entered=False)
    for path in ("", "/records", "/report", "/sounds/x.wav"):
        assert stranger.get(f"/studio/lab{path}").status_code == 401
    for act in ("start", "stop"):
        assert stranger.post(f"/studio/lab/{act}", json={}).status_code == 401
