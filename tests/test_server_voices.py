import io
import zipfile
from urllib.parse import quote

import pytest
from counting_engine import encoded_file, talk
from page_studio import SCRIPT, client, toy_synthesizer
from starlette.testclient import TestClient

from studio.engine.sampling import SamplingOptions
from studio.server.answers import MAX_UPLOAD_BYTES
from studio.settings import Settings
from studio.store.voice_records import Voice, VoiceDetails
from studio.synthesis import Synthesizer

HOSTILE = ["..", "%2e%2e%2fstudio.db", "%00", "Clara", "' OR 1=1 --", "0" * 32]


@pytest.fixture
def synthesizer(tmp_path) -> Synthesizer:
    return toy_synthesizer(Settings(data_dir=tmp_path))


@pytest.fixture
def studio(synthesizer: Synthesizer) -> TestClient:
    return client(synthesizer)


@pytest.fixture
def voice(synthesizer: Synthesizer) -> Voice:
    details = VoiceDetails(name="Ada", transcript="All of it.", clip_name="ada.wav")
    return synthesizer.add_voice(encoded_file(talk(4.0, seed=3)), details).voice


def fills(synthesizer: Synthesizer) -> float:
    return synthesizer.desk.cache.counters()["fills"]


def test_a_sheet_tells_everything_about_a_voice(studio, voice):
    sheet = studio.get(f"/studio/voices/{voice.id}").json()
    facts = dict(sheet["facts"])
    assert (sheet["name"], sheet["transcript"], sheet["builtin"]) == ("Ada", "All of it.", False)
    assert facts["digest"] == voice.codes_digest
    assert facts["key"] == voice.key
    assert facts["state"] == "filled, kept for ever"
    assert facts["size"].startswith(f"{voice.num_frames} frames of {voice.num_codebooks} codes")
    assert [clip["is_reference"] for clip in sheet["clips"]] == [True]


def test_what_an_owner_says_is_kept_and_encodes_nothing(studio, synthesizer, voice):
    before = fills(synthesizer)
    changes = {
        "name": "Ada L.",
        "tags": ["calm", "Narrator"],
        "notes": "n",
        "consent": "She agreed.",
        "colour": "#2b7a8c",
    }
    answer = studio.post(f"/studio/voices/{voice.id}", json=changes | {"transcript": "Other words."}).json()
    assert answer["voice"]["name"] == "Ada L."
    kept = synthesizer.voices.get(voice.id)
    assert (kept.tags, kept.notes, kept.consent, kept.colour) == (("calm", "Narrator"), "n", "She agreed.", "#2b7a8c")
    assert kept.transcript == "Other words."
    assert fills(synthesizer) == before


@pytest.mark.parametrize(
    "changes",
    [{"name": ""}, {"name": "Clara"}, {"tags": "calm"}, {"notes": 3}, {"colour": "red"}, {"id": "x"}, {"name": None}],
)
def test_what_cannot_be_kept_is_a_sentence_and_changes_nothing(studio, synthesizer, voice, changes):
    answer = studio.post(f"/studio/voices/{voice.id}", json=changes)
    assert answer.status_code in (400, 409)
    assert answer.json()["error"].endswith(".")
    assert synthesizer.voices.get(voice.id) == voice


def test_a_trim_is_another_key_and_asks_for_the_words_again(studio, synthesizer, voice):
    path = f"/studio/voices/{voice.id}/clips/{voice.clip_id}/trim"
    sheet = studio.post(path, json={"trim": [0.5, 3.0]}).json()["voice"]
    assert sheet["clips"][0]["trim"] == [0.5, 3.0]
    assert sheet["transcript_unchecked"]
    assert synthesizer.voices.get(voice.id).key != voice.key
    assert studio.post(path, json={"trim": None}).json()["voice"]["clips"][0]["trim"] is None
    assert synthesizer.voices.get(voice.id).key == voice.key
    for trim in ([3.0, 1.0], [0, 0.1], "all", [1], [True, None]):
        assert studio.post(path, json={"trim": trim}).status_code == 400
    assert synthesizer.voices.get(voice.id).key == voice.key


def test_a_second_clip_is_heard_chosen_and_removed(studio, synthesizer, voice):
    path, content = f"/studio/voices/{voice.id}", encoded_file(talk(3.0, seed=9))
    sheet = studio.post(f"{path}/clips?name={quote('zwei <b>.wav')}", content=content).json()["voice"]
    (added,) = [clip for clip in sheet["clips"] if not clip["is_reference"]]
    assert added["name"] == "zwei <b>.wav"
    assert studio.get(f"{path}/clips/{added['id']}/audio").content == content
    studio.post(f"{path}/clips/{added['id']}/choose", json={})
    assert synthesizer.voices.get(voice.id).clip_id == added["id"]
    refused = studio.post(f"{path}/clips/{added['id']}/remove", json={})
    assert refused.status_code == 400
    assert studio.post(f"{path}/clips/{voice.clip_id}/remove", json={}).status_code == 200
    assert len(synthesizer.voices.clips.list(voice.id)) == 1


def test_a_clip_is_reached_through_its_own_voice_only(studio, voice):
    assert studio.get(f"/studio/voices/clara/clips/{voice.clip_id}/audio").status_code == 404
    assert studio.post(f"/studio/voices/clara/clips/{voice.clip_id}/choose", json={}).status_code == 404


@pytest.mark.parametrize("content", [b"", b"RIFF", b"\0" * 100])
def test_a_clip_that_is_none_leaves_nothing(studio, synthesizer, voice, content):
    answer = studio.post(f"/studio/voices/{voice.id}/clips?name=x.wav", content=content)
    assert answer.status_code == 400
    assert len(synthesizer.voices.clips.list(voice.id)) == 1


def test_checking_changes_nothing_and_encoding_again_says_what_came_of_it(studio, synthesizer, voice):
    before = synthesizer.desk.cache.counters()
    checked = studio.post(f"/studio/voices/{voice.id}/verify", json={}).json()
    assert checked["said"].startswith(f"All {voice.num_codebooks * voice.num_frames:,} codes are those")
    assert synthesizer.desk.cache.counters() == before
    again = studio.post(f"/studio/voices/{voice.id}/refill", json={}).json()
    assert "the same codes as before" in again["said"]


def test_a_duplicate_shares_codes_and_goes_alone(studio, synthesizer, voice):
    before = fills(synthesizer)
    studio.post("/studio/voices/clara/duplicate", json={})
    copy = synthesizer.voices.get("Clara (2)")
    assert copy.codes_digest == synthesizer.voices.get("clara").codes_digest
    assert fills(synthesizer) == before
    assert studio.post(f"/studio/voices/{copy.id}/remove", json={}).status_code == 200
    assert synthesizer.voices.get("clara").filled
    assert studio.post("/studio/voices/clara/remove", json={}).status_code == 400


def test_a_voice_travels_as_a_file(studio, synthesizer, voice, tmp_path):
    bundle = studio.get(f"/studio/voices/{voice.id}/export")
    assert bundle.headers["content-disposition"] == 'attachment; filename="voice-ada.zip"'
    assert "manifest.json" in zipfile.ZipFile(io.BytesIO(bundle.content)).namelist()
    there = toy_synthesizer(Settings(data_dir=tmp_path / "there"))
    before = fills(there)
    answer = client(there).post("/studio/bundles", content=bundle.content)
    assert answer.status_code == 201
    arrived = there.voices.get(answer.json()["voice"])
    assert (arrived.key, arrived.codes_digest, arrived.transcript) == (voice.key, voice.codes_digest, "All of it.")
    assert fills(there) == before
    again = client(there).post("/studio/bundles", content=bundle.content).json()
    assert "is here already" in again["said"]
    assert client(there).post("/studio/bundles", content=b"PK" + b"\0" * 50).status_code == 400
    assert len(there.voices.list()) == 3


def test_an_upload_has_a_limit(studio, voice):
    headers = {"content-length": str(MAX_UPLOAD_BYTES + 1)}
    for path in ("/studio/bundles", f"/studio/voices/{voice.id}/clips"):
        assert studio.post(path, content=b"x", headers=headers).status_code == 413


@pytest.mark.parametrize("identifier", HOSTILE)
@pytest.mark.parametrize("path", ["", "/export", "/clips/x/audio"])
def test_an_id_that_is_none_finds_nothing(studio, identifier, path):
    answer = studio.get(f"/studio/voices/{identifier}{path}")
    assert answer.status_code == 404
    assert "studio.db" not in answer.text


def test_a_stranger_reads_and_changes_nothing(synthesizer, voice):
    stranger = client(synthesizer, entered=False)
    for path in (f"/studio/voices/{voice.id}", f"/studio/voices/{voice.id}/export"):
        assert stranger.get(path).status_code == 401
    for path in (f"/studio/voices/{voice.id}/remove", f"/studio/voices/{voice.id}/clips", "/studio/bundles"):
        assert stranger.post(path, json={}).status_code == 401
    assert synthesizer.voices.get(voice.id) == voice


def test_a_take_is_marked_noted_and_spoken_again(studio, synthesizer, voice):
    speech = synthesizer.speak(SCRIPT, voice=voice, clip=None, options=SamplingOptions(seed=5))
    list(speech)
    answer = studio.post(f"/studio/takes/{speech.take_id}", json={"favourite": True, "note": "the good one"})
    assert answer.json() == {"favourite": True, "note": "the good one"}
    assert studio.post(f"/studio/takes/{speech.take_id}", json={"script": "x"}).status_code == 400
    job = studio.post("/studio/speech", json={"take": speech.take_id}).json()
    samples = studio.get(f"/studio/speech/{job['job']}/pcm").content
    first = synthesizer.takes.path(speech.take_id).read_bytes()
    assert samples == first[-len(samples) :]
    assert len(first) - len(samples) < 100
