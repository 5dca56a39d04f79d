from dataclasses import replace

import numpy as np
import pytest

from studio.store.takes import Take
from studio.store.voices import Voice
from studio.ui.cards import seal, take_list, take_row, voice_list, voice_row

HOSTILE = "<script>alert(1)</script>\" onload='x' & ${alert(1)}"
VOICE = Voice(
    id="ada",
    name="Ada",
    key="k",
    codes_digest="ab12cd" + "0" * 58,
    filled=True,
    num_codebooks=12,
    num_frames=62,
    provenance=None,
    transcript="",
    transcript_unchecked=False,
    description="Warm",
    sex="female",
    notes="",
    tags=(),
    language="",
    consent="",
    colour="#2b7a8c",
    builtin=True,
    clip_id="ada",
    num_clips=1,
    clip_name="ada.flac",
    clip_digest="",
    trim=None,
    duration=4.96,
    created=1.0,
    last_used=None,
    times_used=0,
)
TAKE = Take(
    script="Hello",
    voice_id="ada",
    voice_name="Ada",
    engine="embedded",
    revision="1",
    device="cpu",
    seed=7,
    options={"speed": 1.5},
    key="k",
    codes=np.zeros((8, 62), dtype=np.int16),
    codes_digest="ab" * 32,
    cache="fill",
    lookup_ms=0.4,
    encode_ms=212.3,
    first_audio_ms=98.4,
    duration=3.21,
    realtime_speed=6.04,
    partial=False,
)


def test_a_voice_says_that_it_is_filled_its_frames_and_the_start_of_its_digest():
    assert "filled · 62 frames · 1,488 bytes · digest ab12cd" in voice_row(VOICE)["html"]


@pytest.mark.parametrize("change", [{"filled": False}, {"codes_digest": None, "key": None}])
def test_a_voice_without_codes_says_so(change):
    assert "not encoded yet" in voice_row(replace(VOICE, **change))["html"]


def test_only_a_persons_own_voice_can_be_removed():
    assert "data-remove" not in voice_row(VOICE)["html"]
    assert "data-remove" in voice_row(replace(VOICE, builtin=False))["html"]


def test_own_voices_come_first_and_the_newest_at_the_top():
    own = [replace(VOICE, id=str(created), builtin=False, created=created) for created in (2.0, 3.0)]
    shown = voice_list([VOICE, *own], selected="ada")
    assert [item["id"] for item in shown["items"]] == ["3.0", "2.0", "ada"]
    assert shown["selected"] == "ada"


@pytest.mark.parametrize(
    "row",
    [
        voice_row(replace(VOICE, id=HOSTILE, name=HOSTILE, description=HOSTILE, builtin=False)),
        take_row(replace(TAKE, id=HOSTILE, script=HOSTILE, voice_name=HOSTILE, error=HOSTILE)),
    ],
)
def test_no_word_of_a_user_becomes_markup(row):
    assert "<script" not in row["html"]
    assert "\" onload='x'" not in row["html"]


def test_a_take_says_how_it_was_made():
    html = take_row(TAKE)["html"]
    for words in ("encoded, 212 ms", "3.2 s", "first audio 98 ms", "6.0\u00d7 real time", "cpu", "seed 7", "speed 1.5"):
        assert words in html
    assert "partial" not in html


def test_a_partial_take_is_marked_and_says_what_ended_it():
    html = take_row(replace(TAKE, partial=True, error="The disk is full.", cache="hit"))["html"]
    for words in ("partial", "The disk is full.", "codes from cache"):
        assert words in html


def test_a_take_without_its_file_offers_no_player_and_no_download():
    html = take_row(replace(TAKE, missing=True))["html"]
    assert "<audio" not in html
    assert "download" not in html
    assert "missing" in html


def test_the_list_says_whether_there_are_more():
    assert take_list([TAKE], total=2)["more"]
    assert not take_list([TAKE], total=1)["more"]


def test_equal_codes_have_one_seal_and_other_codes_another():
    assert seal("ab" * 32) == seal("ab" * 32) != seal("ac" * 32)
