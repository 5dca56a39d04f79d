import re

import pytest
from page_studio import SCRIPT, client, toy_synthesizer
from starlette.testclient import TestClient

from studio.engine.sampling import SamplingOptions
from studio.server.answers import audio_type, file_stem
from studio.server.library import PAGE_FILES
from studio.settings import Settings, assets_dir
from studio.synthesis import Synthesizer

HOSTILE = ["..", "%2e%2e%2fstudio.db", "..%5cstudio.db", "%00", "a" * 5000, "Clara", "CLARA", "-1", "' OR 1=1 --"]


@pytest.fixture(scope="module")
def synthesizer(tmp_path_factory: pytest.TempPathFactory) -> Synthesizer:
    return toy_synthesizer(Settings(data_dir=tmp_path_factory.mktemp("studio")))


@pytest.fixture
def studio(synthesizer: Synthesizer) -> TestClient:
    return client(synthesizer)


@pytest.fixture(scope="module")
def take(synthesizer: Synthesizer) -> str:
    voice = synthesizer.voices.get("clara")
    speech = synthesizer.speak(SCRIPT, voice=voice, clip=None, options=SamplingOptions(seed=1))
    list(speech)
    return speech.take_id


def test_a_take_plays_in_place_and_downloads_under_a_safe_name(studio, synthesizer, take):
    audio, download = (studio.get(f"/studio/takes/{take}/{end}") for end in ("audio", "download"))
    assert audio.content == download.content == synthesizer.takes.path(take).read_bytes()
    assert audio.headers["content-type"] == "audio/wav"
    assert audio.headers["content-disposition"].startswith("inline")
    name = f"studio-clara-the-quick-brown-fox-jumps-pause-0-5s-{take[:8]}.wav"
    assert download.headers["content-disposition"] == f'attachment; filename="{name}"'
    assert audio.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(("kind", "begin"), [("flac", b"fLaC"), ("mp3", b"\xff"), ("ogg", b"OggS"), ("wav", b"RIFF")])
def test_a_take_downloads_in_the_formats_people_ask_for(studio, take, kind, begin):
    answer = studio.get(f"/studio/takes/{take}/download?as={kind}")
    assert answer.content.startswith(begin) or answer.content.startswith(b"ID3")
    assert answer.headers["content-disposition"].endswith(f'{take[:8]}.{kind}"')


def test_another_format_is_a_sentence(studio, take):
    answer = studio.get(f"/studio/takes/{take}/download?as=exe")
    assert answer.status_code == 400
    assert ".flac" in answer.json()["error"]


def test_players_can_seek(studio, take):
    part = studio.get(f"/studio/takes/{take}/audio", headers={"range": "bytes=100-199"})
    assert (part.status_code, len(part.content)) == (206, 100)


@pytest.mark.parametrize("identifier", [*HOSTILE, "0" * 32])
@pytest.mark.parametrize("route", ["/studio/takes/{}/audio", "/studio/takes/{}/download", "/studio/voices/{}/clip"])
def test_an_id_that_is_none_gets_one_and_the_same_answer(studio, route, identifier):
    answer = studio.get(route.format(identifier))
    assert answer.status_code == 404
    assert "studio.db" not in answer.text


def test_a_take_without_its_file_looks_like_no_take(studio, synthesizer, take):
    path = synthesizer.takes.path(take)
    content = path.read_bytes()
    path.unlink()
    missing = studio.get(f"/studio/takes/{take}/audio")
    path.write_bytes(content)
    assert (missing.status_code, missing.text) == (404, studio.get(f"/studio/takes/{'0' * 32}/audio").text)


def test_the_clip_of_a_voice_is_its_original_bytes_under_their_true_type(studio):
    answer = studio.get("/studio/voices/clara/clip")
    assert answer.content == (assets_dir() / "voices" / "clara.flac").read_bytes()
    assert answer.headers["content-type"] == "audio/flac"


@pytest.mark.parametrize(
    ("wanted", "status", "got"),
    [
        ("bytes=0-", 206, slice(0, None)),
        ("bytes=5-9", 206, slice(5, 10)),
        ("bytes=9-5", 200, slice(0, None)),
        ("lines=1-2", 200, slice(0, None)),
        ("bytes=999999999-", 416, slice(0, 0)),
    ],
)
def test_a_range_of_a_clip(studio, wanted, status, got):
    whole = studio.get("/studio/voices/clara/clip").content
    answer = studio.get("/studio/voices/clara/clip", headers={"range": wanted})
    assert answer.status_code == status
    assert answer.content == whole[got]


@pytest.mark.parametrize("name", sorted(PAGE_FILES))
def test_the_page_gets_its_own_files(studio, name):
    answer = studio.get(f"/studio/page/{name}")
    assert answer.content == (assets_dir() / name).read_bytes()
    assert answer.headers["content-type"].split(";")[0] == PAGE_FILES[name]


@pytest.mark.parametrize("name", ["config.json", "..%2fpyproject.toml", "model%2fconfig.json", "styles.css"])
def test_the_page_gets_no_other_file(studio, name):
    assert studio.get(f"/studio/page/{name}").status_code == 404


@pytest.mark.parametrize(
    ("parts", "stem"),
    [
        (("studio", "Zo\u00eb's \u201cown\u201d", "../..\\x:*?"), "studio-zoe-s-own-x"),
        (("\u4f60\u597d",), "take"),
        (("x" * 300,), "x" * 80),
        ((".hidden",), "hidden"),
    ],
)
def test_names_for_files_are_safe_everywhere(parts, stem):
    assert file_stem(*parts) == stem
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", stem)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"RIFF....WAVE", "audio/wav"),
        (b"fLaC", "audio/flac"),
        (b"OggS", "audio/ogg"),
        (b"ID3\x03", "audio/mpeg"),
        (b"\xff\xfb\x90", "audio/mpeg"),
        (b"....ftypM4A ", "audio/mp4"),
        (b"\x1aE\xdf\xa3", "audio/webm"),
        (b"<html>", "application/octet-stream"),
    ],
)
def test_the_type_of_a_clip_is_told_by_its_content(head, kind):
    assert audio_type(head) == kind
