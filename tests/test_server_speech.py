import hashlib
import threading
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace

import httpx
import numpy as np
import pytest
import soundfile
from page_studio import LONG, SCRIPT, client, served, toy_synthesizer
from starlette.testclient import TestClient
from toy_voice import toy_voice

from studio.engine.embedded import EmbeddedEngine
from studio.errors import StorageError
from studio.server.jobs import SpeechJobs
from studio.settings import Settings
from studio.synthesis import Synthesizer


@pytest.fixture(scope="module")
def synthesizer(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    return toy_synthesizer(Settings(data_dir=tmp_path_factory.mktemp("studio")))


@pytest.fixture
def open_jobs() -> Iterator[Callable[..., SpeechJobs]]:
    """Makes lists of jobs whose leavings are stopped after the test."""
    made: list[SpeechJobs] = []

    def make(**limits: float) -> SpeechJobs:
        made.append(SpeechJobs(**limits))  # pyright: ignore[reportArgumentType]
        return made[-1]

    yield make
    for jobs in made:
        jobs.close()


@pytest.fixture
def studio(synthesizer: Synthesizer, open_jobs: Callable[..., SpeechJobs]) -> TestClient:
    return client(synthesizer, open_jobs())


def ask(studio: TestClient | httpx.Client, **changes: object) -> httpx.Response:
    request = {"script": SCRIPT, "voice": "clara", "seed": 7} | changes
    return studio.post("/studio/speech", json=request)  # pyright: ignore[reportReturnType]


def samples_of(synthesizer: Synthesizer, take: str) -> np.ndarray:
    return soundfile.read(synthesizer.takes.path(take), dtype="int16", always_2d=True)[0]


def test_what_is_streamed_is_what_is_hashed_and_what_is_saved(studio, synthesizer):
    job = ask(studio)
    assert job.status_code == 201
    answer = studio.get(f"/studio/speech/{job.json()['job']}/pcm")
    status = studio.get(f"/studio/speech/{job.json()['job']}").json()
    assert status["state"] == "done"
    assert status["sha256"] == hashlib.sha256(answer.content).hexdigest()
    assert status["sha256"] == synthesizer.takes.get(status["take"]).pcm_digest
    assert status["bytes"] == len(answer.content) == 2 * status["samples"]
    assert np.array_equal(np.frombuffer(answer.content, "<i2"), samples_of(synthesizer, status["take"])[:, 0])


def test_the_stream_says_what_it_is_and_that_nobody_may_keep_or_recode_it(studio):
    headers = studio.get(f"/studio/speech/{ask(studio).json()['job']}/pcm").headers
    assert headers["content-type"] == "audio/pcm"
    assert headers["cache-control"] == "no-store, no-transform"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-accel-buffering"] == "no"
    assert (headers["x-sample-rate"], headers["x-channels"]) == ("24000", "1")


def test_the_status_says_how_it_went(studio):
    job = ask(studio, speed=1.5).json()
    assert (job["state"], job["cache"], job["seed"], job["take"]) == ("waiting", "hit", 7, None)
    studio.get(f"/studio/speech/{job['job']}/pcm")
    status = studio.get(f"/studio/speech/{job['job']}").json()
    assert status["device"] == "cpu"
    assert status["first_audio_ms"] > 0
    assert status["realtime_speed"] > 0
    assert status["lookup_ms"] >= 0
    assert status["encode_ms"] > 0
    assert (status["partial"], status["error"]) == (False, None)


@pytest.mark.parametrize("seed", [None, "", " 7 ", "7"])
def test_a_blank_seed_is_drawn_and_told_and_a_typed_one_is_kept(studio, seed):
    told = ask(studio, seed=seed).json()["seed"]
    assert told == 7 if seed and seed.strip() else 0 <= told < 2**32


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"script": ""}, 400, "nothing to speak"),
        ({"script": "  \n"}, 400, "nothing to speak"),
        ({"script": "\u4f60\u597d\uff0c\u4e16\u754c"}, 400, "English"),
        ({"script": "Wait. [pause soon]"}, 400, "pause"),
        ({"script": 5}, 400, "script"),
        ({"voice": "nobody"}, 404, "nobody"),
        ({"voice": None}, 400, "voice"),
        ({"voice": "../../etc/passwd"}, 404, "voice"),
        ({"speed": 9}, 400, "speed"),
        ({"speed": "fast"}, 400, "speed"),
        ({"speed": True}, 400, "speed"),
        ({"seed": -1}, 400, "seed"),
        ({"seed": 2**32}, 400, "seed"),
        ({"seed": 1.5}, 400, "seed"),
        ({"seed": "\u0663"}, 400, "seed"),
        ({"colour": "red"}, 400, "colour"),
        ({"script": "word " * 200_000}, 413, "Send less"),
    ],
)
def test_a_mistake_is_one_sentence_at_once_and_leaves_nothing(studio, synthesizer, changes, status, words):
    before = synthesizer.takes.count()
    answer = ask(studio, **changes)
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert words in answer.json()["error"]
    assert synthesizer.takes.count() == before


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{", "application/json"),
        (b"[1]", "application/json"),
        (b"\xff\xfe", "application/json"),
        (b'{"script": "a"}', "text/plain"),
        (b"script=a", "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(studio, body, kind):
    answer = studio.post("/studio/speech", content=body, headers={"content-type": kind})
    assert answer.status_code == 400
    assert "request" in answer.json()["error"]


def test_a_body_without_a_length_is_not_read_for_ever(studio):
    answer = studio.post(
        "/studio/speech", content=(b"x" * 65536 for _ in range(100)), headers={"content-type": "application/json"}
    )
    assert answer.status_code == 400


def test_a_stream_can_be_taken_once(studio):
    job = ask(studio).json()["job"]
    assert studio.get(f"/studio/speech/{job}/pcm").status_code == 200
    assert studio.get(f"/studio/speech/{job}/pcm").status_code == 404


@pytest.mark.parametrize("path", ["unknown", "unknown/pcm", "..%2F..%2Fstudio.db"])
def test_a_job_nobody_made_is_not_there(studio, path):
    assert studio.get(f"/studio/speech/{path}").status_code == 404


def test_a_job_nobody_made_cannot_be_stopped(studio):
    assert studio.post("/studio/speech/unknown/stop").status_code == 404


def test_a_job_stopped_before_its_stream_was_taken_speaks_no_more(studio, synthesizer):
    before = synthesizer.takes.count()
    job = ask(studio, script=LONG).json()["job"]
    status = studio.post(f"/studio/speech/{job}/stop").json()
    assert (status["state"], status["take"]) == ("stopped", None)
    assert studio.get(f"/studio/speech/{job}/pcm").status_code == 404
    assert synthesizer.takes.count() == before


def test_two_at_once_keep_their_own_text_and_voice(studio, synthesizer):
    first, second = ask(studio).json(), ask(studio, script="You may!", voice="robin", seed=8).json()
    sounds = {job["job"]: studio.get(f"/studio/speech/{job['job']}/pcm").content for job in (second, first)}
    for job, script, voice in ((first, SCRIPT, "clara"), (second, "You may!", "robin")):
        status = studio.get(f"/studio/speech/{job['job']}").json()
        take = synthesizer.takes.get(status["take"])
        assert (take.script, take.voice_id) == (script, voice)
        assert take.pcm_digest == hashlib.sha256(sounds[job["job"]]).hexdigest()


def test_only_so_many_speak_at_once_and_room_comes_back(synthesizer, open_jobs):
    studio = client(synthesizer, open_jobs(max_active=2))
    jobs = [ask(studio, script=LONG).json()["job"] for _ in range(2)]
    refused = ask(studio)
    assert refused.status_code == 429
    assert "2 texts at once" in refused.json()["error"]
    studio.post(f"/studio/speech/{jobs[0]}/stop")
    assert ask(studio).status_code == 201


def test_a_job_whose_stream_nobody_takes_is_stopped_and_old_jobs_are_forgotten(synthesizer, open_jobs):
    studio = client(synthesizer, open_jobs(max_active=1, waiting=0.0, kept=0.0))
    left = ask(studio, script=LONG).json()["job"]
    assert ask(studio).status_code == 201
    assert studio.get(f"/studio/speech/{left}").json()["state"] == "stopped"
    ask(studio)
    assert studio.get(f"/studio/speech/{left}").status_code == 404


def test_no_more_than_so_many_ended_jobs_are_kept(synthesizer, open_jobs):
    jobs = open_jobs(max_kept=2)
    studio = client(synthesizer, jobs)
    made = [ask(studio).json()["job"] for _ in range(4)]
    for job in made:
        studio.post(f"/studio/speech/{job}/stop")
    ask(studio)
    assert [jobs.get(job) is not None for job in made] == [False, False, True, True]


class FailingEngine(EmbeddedEngine):
    """Breaks in mid-sentence."""

    error: Exception = StorageError("/data", "the disk is full")

    def speak(self, *arguments: object, **options: object) -> Generator[np.ndarray, None, None]:
        yield np.ones((1, 1920), dtype=np.int16)
        raise self.error


def test_an_error_after_the_headers_is_told_by_the_status_and_the_take_is_kept_as_partial(tmp_path):
    synthesizer = toy_synthesizer(Settings(data_dir=tmp_path), FailingEngine(toy_voice()))
    studio = client(synthesizer)
    job = ask(studio).json()["job"]
    assert len(studio.get(f"/studio/speech/{job}/pcm").content) == 3840
    status = studio.get(f"/studio/speech/{job}").json()
    assert status["state"] == "failed"
    assert "the disk is full" in status["error"]
    assert status["partial"]


def test_a_bug_ends_in_a_plain_sentence_and_surfaces_in_the_log(tmp_path, monkeypatch):
    monkeypatch.setattr(FailingEngine, "error", ZeroDivisionError("secret detail"))
    studio = client(toy_synthesizer(Settings(data_dir=tmp_path), FailingEngine(toy_voice())))
    job = ask(studio).json()["job"]
    with pytest.raises(ZeroDivisionError):
        studio.get(f"/studio/speech/{job}/pcm")
    status = studio.get(f"/studio/speech/{job}").json()
    assert status["state"] == "failed"
    assert "secret" not in status["error"]
    assert "Something broke" in status["error"]


def test_without_a_login_every_route_is_closed(synthesizer):
    studio = client(synthesizer, entered=False)
    take, voice = "0" * 32, "clara"
    for method, path in [
        ("POST", "/studio/speech"),
        ("GET", "/studio/speech/x"),
        ("GET", "/studio/speech/x/pcm"),
        ("POST", "/studio/speech/x/stop"),
        ("GET", f"/studio/takes/{take}/audio"),
        ("GET", f"/studio/takes/{take}/download"),
        ("GET", f"/studio/voices/{voice}/clip"),
        ("GET", "/studio/page/player.js"),
    ]:
        assert studio.request(method, path).status_code == 401, path


class SlowEngine(EmbeddedEngine):
    """Takes its time over every frame, so that there is a middle to leave in."""

    alive = threading.Event()

    def speak(self, *arguments: object, **options: object) -> Generator[np.ndarray, None, None]:
        for _ in range(1000):
            time.sleep(0.02)
            self.alive.set()
            yield np.ones((1, 1920), dtype=np.int16)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    engine = SlowEngine(replace(toy_voice(), revision="slow"))
    return toy_synthesizer(Settings(data_dir=tmp_path_factory.mktemp("slow")), engine)


@pytest.mark.parametrize("leave", ["closes the stream", "asks to stop"])
def test_the_model_stops_within_200_ms_of_the_page_leaving(slow, leave):
    with served(slow, SpeechJobs()) as browser:
        job = ask(browser).json()["job"]
        with browser.stream("GET", f"/studio/speech/{job}/pcm") as stream:
            next(stream.iter_bytes(3840))
            left = time.time()
            if leave == "asks to stop":
                browser.post(f"/studio/speech/{job}/stop")
        while (status := browser.get(f"/studio/speech/{job}").json())["state"] == "speaking":
            time.sleep(0.01)
        assert status["state"] == "stopped"
        assert status["ended_at"] - left < 0.2
        SlowEngine.alive.clear()
        assert not SlowEngine.alive.wait(0.2)
        assert slow.takes.get(status["take"]).partial


def test_closing_the_studio_stops_what_is_spoken_and_keeps_it(slow):
    jobs = SpeechJobs()
    with served(slow, jobs) as browser:
        job = ask(browser).json()["job"]
        with browser.stream("GET", f"/studio/speech/{job}/pcm") as stream:
            chunks = stream.iter_bytes(3840)
            next(chunks)
            jobs.close()
            list(chunks)  # comes to an end
    assert slow.takes.list(limit=1)[0].partial
