"""What an owner says of voices and does with them: words, tags, clips, duplicates, search and order."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from counting_engine import ENVIRONMENT

from studio.errors import BuiltInVoice, NameTaken, ReferenceClip, SettingError, UnknownClip, UnknownVoice
from studio.store.adopted_codes import AdoptedCodes, adopt
from studio.store.code_cache import Provenance
from studio.store.database import connection, transaction
from studio.store.packed_codes import digest, pack
from studio.store.voice_records import COLOURS, NewClip
from studio.store.voices import VoiceChanges, VoiceCodes, VoiceDetails, VoiceLibrary

CODES = np.arange(8, dtype=np.int16).reshape(2, 4)
PROVENANCE = Provenance(
    device=ENVIRONMENT.device,
    torch_version="0.0",
    cuda_version=None,
    num_threads=1,
    encode_seconds=0.1,
    filled=1.0,
    codec_id="counting",
    recipe="r",
)


@pytest.fixture
def voices(tmp_path: Path) -> VoiceLibrary:
    return VoiceLibrary(tmp_path / "studio.db", tmp_path / "clips", codec="c")


def fill(tmp_path: Path, key: str) -> VoiceCodes:
    """A cache entry, and a known upload that leads to it."""
    found = digest(pack(CODES), *CODES.shape)
    with transaction(tmp_path / "studio.db") as db:
        adopt(db, AdoptedCodes(key=key, codec="c", codes=CODES, digest=found, provenance=PROVENANCE))
        db.execute(
            "INSERT OR REPLACE INTO sources (source, codec, trim, key) VALUES (?, 'c', '', ?)",
            [f"source of {key}", key],
        )
    return VoiceCodes(codec="c", key=key, digest=found)


def add(voices: VoiceLibrary, name: str = "Ada", clip: bytes = b"sound", codes: VoiceCodes | None = None, **said):
    return voices.add(VoiceDetails(name=name, **said), clip, codes=codes, duration=2.0)


def entries(tmp_path: Path) -> set[str]:
    with connection(tmp_path / "studio.db") as db:
        keys = {row[0] for row in db.execute("SELECT key FROM codes").fetchall()}
        assert keys == {row[0] for row in db.execute("SELECT key FROM sources").fetchall()}
    return keys


def files(tmp_path: Path) -> set[str]:
    return {path.name for path in (tmp_path / "clips").iterdir()}


def test_everything_an_owner_says_is_kept(voices: VoiceLibrary) -> None:
    said = {
        "notes": "From the\nwedding 💒",
        "tags": ("Family", "日本"),
        "language": "en",
        "consent": "By letter.",
        "colour": "#ABCDEF",
    }
    voice = add(voices, **said)
    assert (voice.notes, voice.tags, voice.language, voice.consent) == tuple(said[name] for name in list(said)[:4])
    assert voice.colour == "#abcdef"
    assert voices.get("ada") == voice


def test_a_voice_without_a_colour_has_always_the_same_one(voices: VoiceLibrary) -> None:
    voice = add(voices)
    assert voice.colour in COLOURS
    assert voices.get(voice.id).colour == voice.colour
    assert len({add(voices, f"Voice {number}").colour for number in range(20)}) > 3


def test_editing_changes_what_is_given_and_nothing_else(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices, notes="Old.", tags=("a",), transcript="Helo.", codes=fill(tmp_path, "k"))
    edited = voices.edit("ADA", VoiceChanges(name="Adele", transcript="Hello.", tags=("B", " b ", "c  d")))
    assert edited == replace(voice, name="Adele", transcript="Hello.", tags=("B", "c d"))
    assert (edited.key, edited.filled) == ("k", True)
    assert voices.edit("adele", VoiceChanges(tags=(), notes="")).tags == ()
    with pytest.raises(UnknownVoice):
        voices.get("Ada")


def test_a_voice_may_be_renamed_to_its_own_name_in_other_case_and_to_no_other_voices(voices: VoiceLibrary) -> None:
    voice = add(voices)
    other = add(voices, "Bob")
    assert voices.edit(voice.id, VoiceChanges(name="ADA")).name == "ADA"
    for taken in ("bob", other.id):
        with pytest.raises(NameTaken):
            voices.edit(voice.id, VoiceChanges(name=taken, notes="Lost."))
    assert voices.get(voice.id).notes == ""


@pytest.mark.parametrize(
    "said",
    [
        {"notes": "x" * 10_001},
        {"consent": "x" * 2_001},
        {"language": "x" * 65},
        {"transcript": "x" * 10_001},
        {"tags": ("x" * 65,)},
        {"tags": tuple(str(number) for number in range(33))},
        {"colour": "red"},
        {"colour": "#12345"},
    ],
)
def test_what_is_too_long_or_no_colour_is_refused_with_nothing_changed(voices: VoiceLibrary, said) -> None:
    voice = add(voices)
    with pytest.raises(SettingError):
        voices.edit(voice.id, VoiceChanges(**said))
    with pytest.raises(SettingError):
        add(voices, "Bob", **said)
    assert voices.list() == [voice]


def test_a_built_in_voice_takes_notes_and_keeps_its_name(voices: VoiceLibrary) -> None:
    details = VoiceDetails(name="Clara", transcript="Bees.")
    voices.install_builtin("clara", details, b"sound")
    for changes in (VoiceChanges(name="Klara"), VoiceChanges(transcript="No."), VoiceChanges(description="x")):
        with pytest.raises(BuiltInVoice):
            voices.edit("clara", changes)
    voices.edit("clara", VoiceChanges(notes="Mine.", tags=("good",), colour="#000000"))
    again = voices.install_builtin("clara", replace(details, transcript="More bees."), b"better sound")
    assert (again.notes, again.tags, again.colour, again.transcript) == ("Mine.", ("good",), "#000000", "More bees.")
    with pytest.raises(BuiltInVoice):
        voices.clips.add("clara", NewClip(content=b"other"))
    with pytest.raises(BuiltInVoice):
        voices.clips.edit_transcript("clara", "No.")


def test_a_duplicate_has_clips_and_codes_of_its_own(voices: VoiceLibrary, tmp_path: Path) -> None:
    voices.install_builtin("clara", VoiceDetails(name="Clara", transcript="Bees.", sex="female"), b"sound")
    voices.remember_codes(voices.get("clara"), fill(tmp_path, "k"), duration=2.0)
    copy = voices.duplicate("clara", "Mine")
    assert (copy.builtin, copy.transcript, copy.sex, copy.key, copy.filled) == (False, "Bees.", "female", "k", True)
    assert (copy.duration, copy.times_used) == (2.0, 0)
    assert voices.clip_bytes(copy) == b"sound"
    voices.remove(copy.id)
    assert entries(tmp_path) == {"k"}
    assert voices.get("clara").filled
    assert files(tmp_path) == {"clara"}


def test_a_duplicate_under_a_taken_name_leaves_nothing(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices)
    with pytest.raises(NameTaken):
        voices.duplicate(voice.id, "ada")
    assert files(tmp_path) == {voice.id}


def test_several_clips_and_one_of_them_the_reference(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices, transcript="One.", codes=fill(tmp_path, "k1"))
    second = voices.clips.add(
        voice.id,
        NewClip(content=b"other", name="b.wav", transcript="Two.", duration=3.0, codes=(fill(tmp_path, "k2"),)),
    )
    assert [clip.is_reference for clip in voices.clips.list(voice.id)] == [True, False]
    assert voices.get(voice.id) == replace(voice, num_clips=2)
    voices.clips.choose(second.id)
    chosen = voices.get(voice.id)
    assert (chosen.clip_id, chosen.key, chosen.transcript, chosen.duration) == (second.id, "k2", "Two.", 3.0)
    assert voices.clip_bytes(chosen) == b"other"
    voices.edit(voice.id, VoiceChanges(transcript="Too."))
    assert [clip.transcript for clip in voices.clips.list(voice.id)] == ["One.", "Too."]
    assert files(tmp_path) == {voice.clip_id, second.id}


def test_a_clip_goes_with_its_file_and_entry_but_never_the_reference(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices, codes=fill(tmp_path, "k1"))
    second = voices.clips.add(voice.id, NewClip(content=b"other", codes=(fill(tmp_path, "k2"),)))
    with pytest.raises(ReferenceClip):
        voices.clips.remove(voice.clip_id)
    voices.clips.remove(second.id)
    assert files(tmp_path) == {voice.clip_id}
    assert entries(tmp_path) == {"k1"}
    for again in (voices.clips.remove, voices.clips.get, voices.clips.choose):
        with pytest.raises(UnknownClip):
            again(second.id)


def test_removing_a_voice_takes_the_entries_nobody_shares_and_leaves_tombstones(
    voices: VoiceLibrary, tmp_path: Path
) -> None:
    first = add(voices, codes=fill(tmp_path, "shared"))
    add(voices, "Bob", codes=fill(tmp_path, "shared"))
    voices.clips.add(first.id, NewClip(content=b"other", codes=(fill(tmp_path, "own"),)))
    fill(tmp_path, "nobody's")
    voices.remove(first.id)
    assert entries(tmp_path) == {"shared", "nobody's"}
    assert voices.get("Bob").filled
    with connection(tmp_path / "studio.db") as db:
        assert db.execute("SELECT key FROM tombstones").fetchall() == [("own",)]


def test_trimming_again_changes_codes_and_asks_for_the_words(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices, transcript="One two three.", codes=fill(tmp_path, "k1"))
    trimmed = voices.clips.trim(voice.clip_id, (0.5, 1.5), transcript=None, codes=fill(tmp_path, "k2"), duration=1.0)
    assert (trimmed.trim, trimmed.duration, trimmed.key) == ((0.5, 1.5), 1.0, "k2")
    assert (trimmed.transcript, trimmed.transcript_unchecked) == ("One two three.", True)
    assert voices.get(voice.id).transcript_unchecked
    assert entries(tmp_path) == {"k2"}
    assert not voices.edit(voice.id, VoiceChanges(transcript="Two.")).transcript_unchecked
    again = voices.clips.trim(voice.clip_id, None, transcript="One.", codes=fill(tmp_path, "k1"), duration=2.0)
    assert (again.trim, again.transcript, again.transcript_unchecked) == (None, "One.", False)


def test_the_same_trim_again_leaves_the_words_as_they_are(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices, transcript="One.", trim=(0.5, 1.5), codes=fill(tmp_path, "k"))
    same = voices.clips.trim(voice.clip_id, (0.5, 1.5), transcript=None, codes=fill(tmp_path, "k"), duration=1.0)
    assert not same.transcript_unchecked
    assert entries(tmp_path) == {"k"}
    wordless = voices.edit(voice.id, VoiceChanges(transcript=""))
    trimmed = voices.clips.trim(wordless.clip_id, None, transcript=None, codes=fill(tmp_path, "k2"), duration=2.0)
    assert not trimmed.transcript_unchecked


def test_codes_found_for_a_former_part_of_a_clip_are_not_noted(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices)
    voices.clips.trim(voice.clip_id, (0.5, 1.5), transcript=None, codes=fill(tmp_path, "k2"), duration=1.0)
    voices.remember_codes(voice, fill(tmp_path, "k1"), duration=2.0)
    assert (voices.get(voice.id).key, voices.get(voice.id).duration) == ("k2", 1.0)


def test_codes_found_for_a_clip_that_is_no_longer_the_reference_stay_its_own(
    voices: VoiceLibrary, tmp_path: Path
) -> None:
    voice = add(voices)
    second = voices.clips.add(voice.id, NewClip(content=b"other", codes=(fill(tmp_path, "k2"),)))
    voices.clips.choose(second.id)
    voices.remember_codes(voice, fill(tmp_path, "k1"), duration=2.0)
    assert voices.get(voice.id).key == "k2"
    assert voices.clips.get(voice.clip_id).key == "k1"
