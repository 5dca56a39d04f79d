"""A voice in one file: whole on the other side, nothing encoded; a hostile file writes nothing."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundle_studio import DETAILS, Studio, members, told, zipped
from counting_engine import encoded_file, other_codec, talk

from studio.bundle_import import Imported, import_voice
from studio.errors import StudioError
from studio.store.packed_codes import digest, pack
from studio.store.voices import VoiceChanges
from studio.voice_bundle import in_order


@pytest.fixture
def here(tmp_path: Path) -> Studio:
    return Studio(tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> Studio:
    return Studio(tmp_path / "there")


def take_in(studio: Studio, path: Path) -> Imported:
    return import_voice(studio.engine, studio.voices, path)


def test_every_field_and_digest_is_equal_elsewhere_and_nothing_is_encoded(here: Studio, there: Studio) -> None:
    voice = here.add_rich()
    imported = take_in(there, here.export(voice))
    assert replace(imported.voice, clip_id=voice.clip_id) == voice
    assert voice.transcript == DETAILS.transcript
    for mine, theirs in zip(in_order(here.voices, voice), in_order(there.voices, imported.voice), strict=True):
        assert replace(theirs, id=mine.id) == mine
        assert there.voices.clips.content(theirs) == here.voices.clips.content(mine)
        codes, taken = here.voices.clips.codes(mine), there.voices.clips.codes(theirs)
        assert codes is not None
        assert taken is not None
        assert np.array_equal(codes.codes, taken.codes)
        assert (codes.digest, codes.provenance) == (taken.digest, taken.provenance)
    assert there.desk.from_voice(imported.voice, there.voices).outcome == "hit"
    assert there.engine.encodes == 0
    assert not imported.already_there
    assert imported.differences == imported.to_fill == ()
    assert there.cache.counters()["fills"] == 0


def test_equal_voices_make_equal_bundles(here: Studio, there: Studio) -> None:
    first = here.export(here.add_rich())
    second = there.export(take_in(there, first).voice)
    assert first.read_bytes() == second.read_bytes()


def test_the_same_voice_again_is_there_already_and_changes_nothing(here: Studio, there: Studio) -> None:
    bundle = here.export(here.add_rich())
    first = take_in(there, bundle)
    there.voices.touch(first.voice.id)
    before = there.state()
    again = take_in(there, bundle)
    assert again.already_there
    assert again.voice.id == first.voice.id
    assert there.state() == before


def test_a_taken_name_becomes_a_free_one(here: Studio, there: Studio) -> None:
    there.add(replace(DETAILS, name="ZOË “2”".replace("“", '"').replace("”", '"')), seed=5)
    imported = take_in(there, here.export(here.add()))
    assert imported.voice.name == 'Zoë "2" (2)'
    assert imported.name_in_bundle == 'Zoë "2"'


def test_a_voice_that_was_changed_since_comes_in_beside_the_old_one(here: Studio) -> None:
    voice = here.add()
    bundle = here.export(voice)
    here.voices.edit(voice.id, VoiceChanges(notes="Other notes."))
    imported = take_in(here, bundle)
    assert imported.voice.id != voice.id
    assert (imported.voice.name, imported.voice.notes) == ('Zoë "2" (2)', DETAILS.notes)
    assert here.voices.get(voice.id).notes == "Other notes."


def test_two_bundles_with_the_same_inner_names_overwrite_nothing(here: Studio, there: Studio) -> None:
    bundles = [
        here.export(here.add(replace(DETAILS, name=name), seed=seed), name) for name, seed in (("a", 1), ("b", 5))
    ]
    assert set(members(bundles[0])) == set(members(bundles[1]))
    voices = [take_in(there, bundle).voice for bundle in bundles]
    clips = [there.voices.clip_bytes(voice) for voice in voices]
    assert clips == [encoded_file(talk(3.0, seed=seed)) for seed in (1, 5)]


def test_an_entry_that_is_here_wins_and_the_difference_is_told(here: Studio, there: Studio) -> None:
    voice = here.add()
    there.add(replace(DETAILS, name="Mine"))
    before = there.state()["codes"]
    content = members(here.export(voice))
    codes = np.frombuffer(content["codes/0"], "<i2").reshape(4, -1).copy()
    codes[0, 0] += 1

    def other_digest(manifest) -> None:
        manifest["clips"][0]["codes"]["digest"] = digest(pack(codes), *codes.shape)

    spoilt = zipped(here.folder / "other.zip", told(content | {"codes/0": pack(codes)}, other_digest))
    imported = take_in(there, spoilt)
    (difference,) = imported.differences
    assert (difference.key, difference.digest_here) == (voice.key, voice.codes_digest)
    assert difference.digest_in_bundle == digest(pack(codes), *codes.shape)
    assert there.state()["codes"] == before
    assert imported.voice.codes_digest == voice.codes_digest
    again = take_in(there, spoilt)
    assert again.already_there
    assert again.differences == imported.differences


def test_an_id_that_anything_here_has_is_not_taken_over(here: Studio, there: Studio) -> None:
    rich = there.add_rich()
    (second,) = [clip for clip in there.voices.clips.list(rich.id) if not clip.is_reference]
    named = there.add(replace(DETAILS, name="e" * 32), seed=5)
    content = members(here.export(here.add(replace(DETAILS, name="New"))))
    before = there.state()
    for number, taken in enumerate((rich.id, second.id, named.name)):

        def take_id(manifest, taken=taken) -> None:
            manifest["voice"]["id"] = taken

        imported = take_in(there, zipped(here.folder / f"{number}.zip", told(content, take_id)))
        assert imported.voice.id not in (rich.id, second.id, named.id, named.name)
    after = there.state()
    for table in ("voices", "clips", "codes"):
        assert set(before[table]) <= set(after[table])
    assert before["files"].items() <= after["files"].items()
    assert there.voices.get(named.name).id == named.id


def test_codes_of_another_codec_are_left_aside_and_filled_at_first_use(here: Studio, tmp_path: Path) -> None:
    other = Studio(tmp_path / "other", other_codec(digest="b" * 64))
    imported = take_in(other, here.export(here.add()))
    assert imported.to_fill == ("../zoë.m4a",)
    assert other.state()["codes"] == []
    assert other.desk.from_voice(imported.voice, other.voices).outcome == "fill"
    assert other.voices.get(imported.voice.id).filled


def test_the_key_is_the_audios_own_whatever_the_bundle_says(here: Studio, there: Studio) -> None:
    voice = here.add()

    def lie(manifest) -> None:
        manifest["clips"][0]["codes"]["key"] = "f" * 64

    bundle = zipped(here.folder / "lie.zip", told(members(here.export(voice)), lie))
    assert take_in(there, bundle).voice.key == voice.key


def test_a_built_in_voice_is_exported_and_known_again(here: Studio, there: Studio) -> None:
    clip = encoded_file(talk(3.0))
    for studio in (here, there):
        studio.voices.install_builtin("clara", replace(DETAILS, trim=None), clip)
    here.desk.from_voice(here.voices.get("clara"), here.voices)
    imported = take_in(there, here.export(here.voices.get("clara")))
    assert imported.already_there
    assert imported.voice.builtin
    assert there.state()["codes"] == []


def test_a_file_that_is_not_there_is_said(there: Studio, tmp_path: Path) -> None:
    with pytest.raises(StudioError, match="no such file"):
        take_in(there, tmp_path / "nowhere.zip")


def test_a_disk_that_is_full_leaves_nothing(here: Studio, there: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = here.export(here.add_rich())
    before = there.state()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StudioError, match="No space left"):
        take_in(there, bundle)
    monkeypatch.undo()
    after = there.state()
    assert [after[table] for table in ("voices", "clips", "codes")] == [before[table] for table in before][:3]
    take_in(there, bundle)
    assert len(there.state()["files"]) == 2


def test_a_lost_clip_is_said_and_no_bundle_is_made(here: Studio) -> None:
    voice = here.add()
    (here.folder / "clips" / voice.clip_id).unlink()
    with pytest.raises(StudioError, match="No such file"):
        here.export(voice)


def test_the_manifest_has_no_path_and_no_name_of_a_person_in_its_members(here: Studio) -> None:
    content = members(here.export(here.add_rich()))
    assert set(content) == {"manifest.json", "clips/0", "clips/1", "codes/0", "codes/1"}
    manifest = json.loads(content["manifest.json"])
    assert manifest["clips"][0]["name"] == "../zoë.m4a"
    assert manifest["clips"][0]["codes"]["shape"] == [4, 25]
