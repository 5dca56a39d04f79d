"""Voices of clips: codes filled before anything is kept, the words asked for again after a trim, one look a clip."""

from dataclasses import replace
from pathlib import Path

import pytest
from bundle_studio import DETAILS, Studio
from counting_engine import encoded_file, talk

from studio.casting import add_clip, add_voice, trim_clip
from studio.errors import BuiltInVoice, ClipError, MissingClip, NameTaken, SettingError, UnreadableClip
from studio.store.voices import VoiceChanges, VoiceDetails

CLIP = encoded_file(talk(3.0, seed=1))


@pytest.fixture
def studio(tmp_path: Path) -> Studio:
    return Studio(tmp_path / "data")


def test_adding_a_voice_looks_its_clip_up_once(studio: Studio, tmp_path: Path) -> None:
    (tmp_path / "clip.wav").write_bytes(CLIP)
    added = add_voice(studio.desk, studio.voices, tmp_path / "clip.wav", replace(DETAILS, trim=None))
    assert added.reference.outcome == "fill"
    assert (added.voice.key, added.voice.codes_digest) == (added.reference.key, added.reference.digest)
    assert studio.voices.clip_bytes(added.voice) == CLIP
    counts = studio.cache.counters()
    assert (counts["fills"], counts["hits_memory"] + counts["hits_disk"]) == (1, 0)
    twin = add_voice(studio.desk, studio.voices, CLIP, VoiceDetails(name="Twin"))
    assert twin.reference.outcome == "hit"
    assert studio.cache.counters()["hits_memory"] == 1


def test_what_cannot_be_a_voice_leaves_nothing(studio: Studio, tmp_path: Path) -> None:
    studio.add()
    before = studio.state()
    for source, details, error in (
        (CLIP, DETAILS, NameTaken),
        (b"no sound", VoiceDetails(name="New"), ClipError),
        (tmp_path / "nowhere.wav", VoiceDetails(name="New"), MissingClip),
        (tmp_path, VoiceDetails(name="New"), UnreadableClip),
        (CLIP, VoiceDetails(name="New", trim=(2.0, 1.0)), SettingError),
        (CLIP, VoiceDetails(name="New", trim=(5.0, 6.0)), SettingError),
        (CLIP, VoiceDetails(name="New", colour="red"), SettingError),
    ):
        with pytest.raises(error):
            add_voice(studio.desk, studio.voices, source, details)
    after = studio.state()
    assert [after[name] for name in ("voices", "clips", "files")] == [
        before[name] for name in ("voices", "clips", "files")
    ]


def test_a_file_too_large_to_keep_is_refused_by_its_size(studio: Studio, tmp_path: Path) -> None:
    large = tmp_path / "large.wav"
    with large.open("wb") as file:
        file.truncate(2 * 2**30)
    with pytest.raises(UnreadableClip, match="2,048 MB, and at most 256 MB"):
        add_voice(studio.desk, studio.voices, large, VoiceDetails(name="New"))


def test_a_trim_fills_the_codes_of_that_part_and_asks_for_its_words(studio: Studio) -> None:
    voice = studio.add(replace(DETAILS, trim=None))
    trimmed = trim_clip(studio.desk, studio.voices, studio.voices.clips.get(voice.clip_id), (0.5, 2.5))
    assert trimmed.reference.outcome == "fill"
    assert (trimmed.clip.duration, trimmed.clip.transcript_unchecked) == (2.0, True)
    assert trimmed.clip.key != voice.key
    part = studio.desk.from_file(CLIP, "a.wav", trim=(0.5, 2.5))
    assert (part.outcome, part.key) == ("hit", trimmed.clip.key)
    assert studio.desk.from_voice(studio.voices.get(voice.id), studio.voices).outcome == "hit"
    assert studio.desk.from_file(CLIP, "a.wav").outcome == "fill"  # the entry of the former part went with it


def test_a_part_that_cannot_be_used_changes_nothing(studio: Studio) -> None:
    voice = studio.add()
    clip = studio.voices.clips.get(voice.clip_id)
    before = studio.state()
    for part, error in (((2.0, 2.0), SettingError), ((9.0, 10.0), SettingError), ((0.0, 0.2), ClipError)):
        with pytest.raises(error):
            trim_clip(studio.desk, studio.voices, clip, part)
    assert studio.state() == before


def test_correcting_the_transcript_does_not_encode(studio: Studio) -> None:
    voice = studio.add()
    studio.voices.edit(voice.id, VoiceChanges(transcript="I kept bees."))
    edited = studio.voices.get(voice.id)
    assert edited.transcript == "I kept bees."
    assert studio.desk.from_voice(edited, studio.voices).outcome == "hit"
    assert studio.engine.encodes == 1


def test_a_built_in_voices_clip_is_not_trimmed_and_gets_no_second(studio: Studio) -> None:
    voice = studio.voices.install_builtin("clara", replace(DETAILS, trim=None), CLIP)
    with pytest.raises(BuiltInVoice):
        trim_clip(studio.desk, studio.voices, studio.voices.clips.get("clara"), (0.5, 2.5))
    with pytest.raises(BuiltInVoice):
        add_clip(studio.desk, studio.voices, voice, CLIP, name="a.wav")
    assert studio.engine.encodes == 0
    copy = studio.voices.duplicate("clara", "Mine")
    assert trim_clip(studio.desk, studio.voices, studio.voices.clips.get(copy.clip_id), (0.5, 2.5)).clip.filled
