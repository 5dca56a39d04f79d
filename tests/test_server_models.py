"""Models over HTTP: got from a toy hub with every fault, taken from a folder, loaded, spoken with and let go."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moss_studio import write_model
from page_studio import SCRIPT, client, toy_synthesizer
from starlette.applications import Starlette
from starlette.testclient import TestClient
from toy_hub import ToyHub, codec_files, published, serving, speaker_files, write_folder
from toy_moss import RATE

from studio.__main__ import assemble
from studio.engine.model_catalogue import MODELS, MOSS_NANO, ModelEntry
from studio.engine.model_transport import Patience
from studio.engine_room import EngineRoom
from studio.server.jobs import SpeechJobs
from studio.server.lab_jobs import LabJobs
from studio.server.model_shelf import ModelShelf
from studio.server.routes import studio_routes
from studio.settings import Settings, assets_dir

PATIENCE = Patience(attempts=2, first_wait=0.01, longest_wait=0.01)
WEIGHTS = "model.safetensors"


class Studio:
    """The routes of a studio with models, asked as the page asks."""

    def __init__(self, settings: Settings, entries: tuple[ModelEntry, ...]) -> None:
        self.jobs = SpeechJobs()
        self.room = EngineRoom(toy_synthesizer(settings), lambda name: assemble(settings, name))
        self.shelf = ModelShelf(self.room, self.jobs, settings, entries=entries, patience=PATIENCE)
        self.lab = LabJobs(self.room, settings)
        routes = studio_routes(
            self.room,
            jobs=self.jobs,
            shelf=self.shelf,
            lab=self.lab,
            page_dir=assets_dir(),
            may_enter=lambda _: True,
        )
        self._app = Starlette(routes=routes)
        self.page = self.visitor("127.0.0.1", "127.0.0.1:7860")

    def close(self) -> None:
        self.jobs.close()
        self.shelf.close()
        self.lab.close()

    def visitor(self, address: str, host: str, **headers: str) -> TestClient:
        return TestClient(self._app, base_url=f"http://{host}", client=(address, 50_000), headers=headers)

    def models(self) -> dict[str, Any]:
        return self.page.get("/studio/models").json()

    def model(self, name: str) -> dict[str, Any]:
        return next(model for model in self.models()["models"] if model["name"] == name)

    def post(self, path: str, **fields: Any) -> Any:
        return self.page.post(f"/studio/models/{path}", json=fields)

    def ended(self, name: str) -> dict[str, Any]:
        """The job of a model once it is over."""
        while (job := self.model(name)["job"])["state"] == "running":
            time.sleep(0.02)
        return job

    def after(self, path: str, **fields: Any) -> dict[str, Any]:
        answer = self.post(path, **fields)
        assert answer.status_code == 200, answer.text
        return self.ended(path.split("/", maxsplit=1)[0])


@pytest.fixture
def hub() -> Iterator[ToyHub]:
    with serving(ToyHub()) as hub:
        yield hub


@pytest.fixture
def toys(hub: ToyHub, tmp_path: Path) -> Iterator[Studio]:
    """A studio that knows one toy model, which is only ever moved."""
    studio = Studio(Settings(data_dir=tmp_path, hub=hub.url), (published(hub),))
    yield studio
    studio.close()


@pytest.fixture
def moss(hub: ToyHub, tmp_path: Path) -> Iterator[Studio]:
    """A studio with the catalogue's models, Nano at toy size on this machine already."""
    settings = Settings(data_dir=tmp_path, hub=hub.url)
    studio = Studio(settings, MODELS)
    assert studio.after("moss-nano/folder", folder=str(write_model(tmp_path / "own", MOSS_NANO)))["state"] == "done"
    yield studio
    studio.close()


def begun(studio: Studio, hub: ToyHub) -> None:
    """A download that has brought something and goes on slowly."""
    hub.pace = 0.02
    studio.post("toy/download")
    while not any(file["name"].endswith(WEIGHTS) and file["share"] > 0 for file in studio.model("toy")["job"]["files"]):
        time.sleep(0.01)


def test_every_model_says_what_it_is_and_what_of_it_is_here(toys) -> None:
    sheet = toys.models()
    embedded, toy = sheet["models"]
    assert (sheet["engine"]["name"], sheet["engine"]["channels"], sheet["coming"]) == ("embedded", 1, None)
    assert (embedded["name"], embedded["state"], embedded["loaded"]) == ("embedded", "here", True)
    assert (toy["state"], toy["loaded"], toy["job"]) == ("absent", False, None)
    facts = dict(toy["facts"])
    assert facts["licence"] == "Apache-2.0"
    assert facts["sound"] == "48 kHz, stereo"
    assert facts["size"] == "about 400.0 kB to download"
    assert facts["memory"].endswith("on the processor or an NVIDIA card (float32)")


def test_a_download_shows_how_far_the_whole_and_each_file_is(toys, hub) -> None:
    begun(toys, hub)
    job = toys.model("toy")["job"]
    assert (job["kind"], job["state"]) == ("download", "running")
    assert 0 < job["share"] < 1
    assert {file["name"].rpartition("/")[2] for file in job["files"]} >= {"config.json", "tokenizer.model", WEIGHTS}
    hub.pace = 0
    job = toys.ended("toy")
    assert job["state"] == "done"
    assert job["share"] == 1
    assert job["said"].startswith("Toy is here: 402.")
    assert toys.model("toy")["state"] == "here"


def test_a_stopped_download_says_so_and_goes_on_where_it_was(toys, hub) -> None:
    begun(toys, hub)
    toys.post("toy/stop")
    job = toys.ended("toy")
    assert (job["state"], toys.model("toy")["state"]) == ("stopped", "partly")
    assert "was stopped" in job["said"]
    hub.pace = 0
    assert toys.after("toy/download")["state"] == "done"
    assert any(body.start > 0 for body in hub.bodies(WEIGHTS))


def test_a_connection_that_keeps_breaking_is_a_sentence_and_the_next_one_goes_on(toys, hub) -> None:
    hub.breaks[WEIGHTS] = [100_000, 0]
    job = toys.after("toy/download")
    assert job["state"] == "failed"
    assert "cannot be reached" in job["said"]
    hub.requests.clear()
    assert toys.after("toy/download")["state"] == "done"
    assert [body.start for body in hub.bodies(WEIGHTS)] == [100_000]


def test_a_wrong_hash_is_a_sentence_and_nothing_of_the_file_is_kept(toys, hub) -> None:
    hub.corrupt = {WEIGHTS}
    job = toys.after("toy/download")
    assert job["state"] == "failed"
    assert "is not the file that was promised" in job["said"]
    hub.corrupt.clear()
    assert toys.after("toy/download")["state"] == "done"


def test_another_hub_is_used_from_this_machine_and_remembered(toys, hub) -> None:
    with serving(ToyHub(repositories=dict(hub.repositories))) as mirror:
        assert toys.after("toy/download", hub=f" {mirror.url}/ ")["state"] == "done"
        assert mirror.bodies(WEIGHTS)
        assert not hub.requests
        assert toys.models()["hub"] == mirror.url
    refused = toys.post("toy/download", hub="http://elsewhere.example")
    assert refused.status_code == 400
    assert "https://" in refused.json()["error"]


def test_one_thing_at_a_time_is_done_with_a_model(toys, hub) -> None:
    begun(toys, hub)
    for act in ("download", "check", "remove"):
        refused = toys.post(f"toy/{act}")
        assert refused.status_code == 400
        assert "already" in refused.json()["error"]
    assert toys.model("toy")["job"]["state"] == "running"


def test_closing_the_studio_stops_a_download(toys, hub) -> None:
    begun(toys, hub)
    toys.shelf.close()
    assert toys.model("toy")["job"]["state"] == "stopped"


def test_a_check_reads_every_file_and_names_what_is_damaged(toys, hub, tmp_path) -> None:
    toys.after("toy/download")
    assert toys.after("toy/check")["said"] == "All 7 files are as they were."
    (weights,) = (tmp_path / "models").glob(f"*/*/{WEIGHTS}")
    weights.write_bytes(weights.read_bytes()[:-1] + b"?")
    job = toys.after("toy/check")
    assert job["state"] == "failed"
    assert f"Toys/Speaker/{WEIGHTS}: its SHA-256 is another" in job["said"]
    assert "free again" in toys.post("toy/remove").json()["said"]
    assert (toys.model("toy")["state"], toys.model("toy")["job"]) == ("absent", None)


def test_a_folder_is_used_where_it_lies_and_only_forgotten(toys, tmp_path) -> None:
    own = tmp_path / "own"
    write_folder(own / "Speaker", speaker_files())
    write_folder(own / "Codec", codec_files())
    job = toys.after("toy/folder", folder=f"  {own} ")
    assert (job["state"], job["share"]) == ("done", 1)
    toy = toys.model("toy")
    assert (toy["state"], toy["borrowed"]) == ("here", True)
    assert [value for term, value in toy["facts"] if term == "folder"] == [str(own / "Speaker"), str(own / "Codec")]
    toys.post("toy/remove")
    assert toys.model("toy")["state"] == "absent"
    assert (own / "Speaker" / WEIGHTS).is_file()
    for folder, words in ((str(tmp_path / "none"), "there is no such folder"), ("  ", "type the path")):
        answer = toys.post("toy/folder", folder=folder)
        said = answer.json().get("error") or toys.ended("toy")["said"]
        assert words in said


@pytest.mark.parametrize(
    ("address", "host", "headers"),
    [
        ("192.168.1.9", "192.168.1.5:7860", {}),
        ("127.0.0.1", "abc.share.example", {}),
        ("127.0.0.1", "127.0.0.1:7860", {"x-forwarded-for": "203.0.113.9"}),
        ("192.168.1.9", "127.0.0.1:7860", {}),
    ],
)
def test_from_elsewhere_no_folder_and_no_hub_can_be_named_and_none_is_shown(toys, address, host, headers) -> None:
    visitor = toys.visitor(address, host, **headers)
    for path, fields in (("folder", {"folder": "/"}), ("download", {"hub": "https://mirror.example"})):
        answer = visitor.post(f"/studio/models/toy/{path}", json=fields)
        assert answer.status_code == 403
        assert "at the machine" in answer.json()["error"]
    sheet = visitor.get("/studio/models").json()
    assert (sheet["here"], sheet["hub"]) == (False, None)
    assert visitor.post("/studio/models/toy/download", json={}).status_code == 200


@pytest.mark.parametrize("name", ["nobody", "..", "%2e%2e%2fmodels", "embedded", "toy%00"])
@pytest.mark.parametrize("act", ["download", "folder", "check", "use", "unload", "remove", "stop"])
def test_a_name_that_is_not_in_the_catalogue_is_nothing(toys, name, act, tmp_path) -> None:
    assert toys.post(f"{name}/{act}", folder=str(tmp_path)).status_code in (400, 404)
    assert toys.models()["engine"]["name"] == "embedded"


def test_a_stranger_learns_and_does_nothing(tmp_path) -> None:
    stranger = client(toy_synthesizer(Settings(data_dir=tmp_path)), entered=False)
    assert stranger.get("/studio/models").status_code == 401
    for act in ("download", "folder", "check", "stop", "use", "unload", "remove"):
        assert stranger.post(f"/studio/models/moss-nano/{act}", json={}).status_code == 401


def test_a_model_that_is_not_here_is_not_loaded(moss) -> None:
    job = moss.after("moss-local/use")
    assert job["state"] == "failed"
    assert "is not on this machine" in job["said"]
    assert moss.models()["engine"]["name"] == "embedded"


def test_a_model_is_loaded_speaks_in_stereo_and_frees_its_bytes(moss) -> None:
    before = {voice.id: voice.filled for voice in moss.room.current.voices.list()}
    assert moss.after("moss-nano/use")["said"] == "MOSS-TTS Nano speaks now."
    engine = moss.models()["engine"]
    assert (engine["name"], engine["sample_rate"], engine["channels"]) == ("moss-nano", RATE, 2)
    assert not any(voice.filled for voice in moss.room.current.voices.list()), "codes are made when a voice speaks"
    assert moss.post("moss-nano/remove").json()["error"] == "MOSS-TTS Nano is loaded. Unload it first."

    asked = {"script": "The ferry leaves at noon.", "voice": "clara", "seed": "4", "engine": "moss-nano"}
    job = moss.page.post("/studio/speech", json=asked).json()
    assert (job["engine"], job["cache"], job["channels"]) == ("moss-nano", "fill", 2)
    sound = moss.page.get(f"/studio/speech/{job['job']}/pcm")
    assert (sound.headers["x-channels"], sound.headers["x-sample-rate"]) == ("2", str(RATE))
    take = moss.room.current.takes.get(moss.page.get(f"/studio/speech/{job['job']}").json()["take"])
    assert (take.engine, take.partial, take.error) == ("moss-nano", False, None)
    assert moss.page.get(f"/studio/takes/{take.id}/audio").content.endswith(sound.content)

    said = moss.post("moss-nano/unload").json()["said"]
    assert said.startswith("MOSS-TTS Nano is unloaded: ")
    assert "of memory are free again" in said
    assert moss.models()["engine"]["name"] == "embedded"
    assert {voice.id: voice.filled for voice in moss.room.current.voices.list()} == before
    again = moss.page.post("/studio/speech", json={"take": take.id, "engine": "embedded"})
    assert again.status_code == 400
    assert "Load that voice model first" in again.json()["error"]


def test_while_something_is_spoken_the_model_stays(moss) -> None:
    job = moss.page.post("/studio/speech", json={"script": SCRIPT, "voice": "clara"}).json()
    refused = moss.post("moss-nano/use")
    assert refused.status_code == 409
    assert "The embedded voice is at work" in refused.json()["error"]
    moss.page.get(f"/studio/speech/{job['job']}/pcm")
    assert moss.after("moss-nano/use")["state"] == "done"


def test_a_page_that_expects_another_engine_hears_none(moss) -> None:
    moss.after("moss-nano/use")
    refused = moss.page.post("/studio/speech", json={"script": SCRIPT, "voice": "clara", "engine": "embedded"})
    assert refused.status_code == 409
    assert "MOSS-TTS Nano speaks now" in refused.json()["error"]


def test_a_model_that_does_not_fit_into_memory_is_a_sentence_and_the_next_request_works(moss, monkeypatch) -> None:
    monkeypatch.setattr("studio.engine.model_memory.free_memory", lambda _device: 1000)
    job = moss.after("moss-nano/use")
    assert job["state"] == "failed"
    assert "needs about" in job["said"]
    monkeypatch.undo()
    job = moss.page.post("/studio/speech", json={"script": SCRIPT, "voice": "clara", "engine": "embedded"})
    assert job.status_code == 201


def test_what_is_damaged_does_not_load_and_the_embedded_voice_speaks(moss, tmp_path) -> None:
    moss.after("moss-nano/use")
    moss.post("moss-nano/unload")
    (weights,) = (tmp_path / "own").glob("*/pytorch_model.bin")
    weights.write_bytes(bytes(weights.stat().st_size))
    job = moss.after("moss-nano/use")
    assert job["state"] == "failed"
    assert "cannot be loaded" in job["said"]
    assert moss.models()["engine"]["name"] == "embedded"
