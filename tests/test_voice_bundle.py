"""A voice in one file: whole on the other side, nothing encoded; a hostile file writes nothing."""

import hashlib
import json
import pickle
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundle_studio import DETAILS, Studio, members, raw, told, zipped
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


Content = dict[str, bytes]


def _field(path: str, value: object) -> Callable[[Content], Content]:
    def change(content: Content) -> Content:
        def put(manifest) -> None:
            *way, last = path.split(".")
            for step in way:
                manifest = manifest[int(step) if step.isdigit() else step]
            manifest[last] = value

        return told(content, put)

    return change


def _without(name: str) -> Callable[[Content], Content]:
    return lambda content: {each: content[each] for each in content if each != name}


def _codes(codes: np.ndarray) -> Callable[[Content], Content]:
    """Other codes, their digest and shape told truly."""

    def change(content: Content) -> Content:
        def tell(manifest) -> None:
            manifest["clips"][0]["codes"] |= {"shape": list(codes.shape), "digest": digest(pack(codes), *codes.shape)}

        return told(content | {"codes/0": pack(codes)}, tell)

    return change


def _clip(content: Content, sound: bytes) -> Content:
    def tell(manifest) -> None:
        manifest["clips"][0] |= {"digest": hashlib.sha256(sound).hexdigest(), "num_bytes": len(sound)}

    return told(content | {"clips/0": sound}, tell)


HOSTILE: dict[str, tuple[Callable[[Content], Content], str]] = {
    "a path upwards": (lambda content: content | {"../evil": b"x"}, "is a path"),
    "a path upwards inside": (lambda content: content | {"clips/../../evil": b"x"}, "is a path"),
    "an absolute path": (lambda content: content | {"/etc/evil": b"x"}, "is a path"),
    "a drive": (lambda content: content | {"C:evil": b"x"}, "is a path"),
    "backslashes": (lambda content: content | {"..\\evil": b"x"}, "is a path"),
    "a pickle": (lambda content: content | {"codes/0.pkl": pickle.dumps([1])}, "does not belong"),
    "a program": (lambda content: content | {"run.sh": b"x"}, "does not belong"),
    "a folder": (lambda content: content | {"clips/": b""}, "no file"),
    "a clip nobody speaks of": (lambda content: content | {"clips/7": b"x"}, "clips/7 is in it"),
    "no manifest": (_without("manifest.json"), "no manifest.json"),
    "no clip": (_without("clips/0"), "clips/0 is missing"),
    "no codes": (_without("codes/0"), "codes/0 is missing"),
    "a manifest that is no JSON": (lambda content: content | {"manifest.json": b"\x80\x04."}, "not JSON"),
    "a manifest too large": (lambda content: content | {"manifest.json": b" " * (8 * 2**20 + 1)}, "at most"),
    "a manifest too deep": (lambda content: content | {"manifest.json": b"[" * 100_000}, "nested deeper"),
    "a list for a manifest": (lambda content: content | {"manifest.json": b"[]"}, "is not a solo-studio voice"),
    "another format": (_field("format", "solo-studio library"), "is not a solo-studio voice"),
    "a later version": (_field("version", 2), "version 2"),
    "an unknown field": (_field("voice.shell", "rm"), "unknown field"),
    "a name that is no text": (_field("voice.name", ["a"]), "right type"),
    "a name too long": (_field("voice.name", "x" * 256), "256 characters"),
    "a name nobody sees": (_field("voice.name", "\n"), "name cannot be"),
    "tags that are no list": (_field("voice.tags", "a,b"), "right type"),
    "a tag that is no text": (_field("voice.tags", [{}]), "something else than texts"),
    "a time that is no number": (_field("voice.created", float("nan")), "not a time"),
    "a number without end": (_field("voice.times_used", 10**400), "whole number"),
    "a flag that is a number": (_field("clips.0.transcript_unchecked", 1), "neither true nor false"),
    "a trim of three": (_field("clips.0.trim", [0, 1, 2]), "at most 2"),
    "a trim of nothing": (_field("clips.0.trim", [2.0, 1.0]), "trim cannot be"),
    "no clips at all": (_field("clips", []), "has no clip"),
    "another clip": (lambda content: content | {"clips/0": content["clips/0"][:-1] + b"x"}, "digest is another"),
    "other codes": (lambda content: content | {"codes/0": b"\1\0" + content["codes/0"][2:]}, "digest is another"),
    "codes of another size": (lambda content: content | {"codes/0": content["codes/0"][:-2]}, "not of the shape"),
    "codes out of range": (_codes(np.full((4, 25), 1024, np.int16)), "cannot be codes"),
    "negative codes": (_codes(np.full((4, 25), -1, np.int16)), "cannot be codes"),
    "codes of too few frames": (_codes(np.arange(96, dtype=np.int16).reshape(4, 24)), "cannot be codes"),
    "codes of another number of codebooks": (_codes(np.arange(75, dtype=np.int16).reshape(3, 25)), "cannot be codes"),
    "audio that is none": (lambda content: _clip(content, b"This is no sound."), "cannot be read as audio"),
    "a picture for a clip": (lambda content: _clip(content, b"\x89PNG\r\n\x1a\n" + bytes(99)), "cannot be read"),
    "an empty clip": (lambda content: _clip(content, b""), "no samples"),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_bundle_is_refused_with_a_sentence_and_nothing_is_written(
    here: Studio, there: Studio, kind: str
) -> None:
    change, sentence = HOSTILE[kind]
    there.add(replace(DETAILS, name="Mine"), seed=5)
    bundle = zipped(here.folder / "hostile.zip", change(members(here.export(here.add()))))
    assert_refused(there, bundle, sentence)


def assert_refused(studio: Studio, bundle: Path, sentence: str) -> None:
    before = studio.state()
    with pytest.raises(StudioError, match=sentence) as refused:
        take_in(studio, bundle)
    assert "\n" not in str(refused.value)
    assert studio.state() == before
    assert studio.engine.encodes == 1


def _symlink(archive: zipfile.ZipFile) -> None:
    link = zipfile.ZipInfo("clips/1")
    link.external_attr = 0o120777 << 16
    archive.writestr(link, "/etc/passwd")


def _bomb(archive: zipfile.ZipFile) -> None:
    archive.writestr("clips/1", bytes(600 * 2**20), zipfile.ZIP_DEFLATED)


def _twice(archive: zipfile.ZipFile) -> None:
    with pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("clips/0", b"x")


def _many(archive: zipfile.ZipFile) -> None:
    for number in range(300):
        archive.writestr(f"other/{number}", b"")


def _lzma(archive: zipfile.ZipFile) -> None:
    archive.writestr("clips/1", b"x" * 99, zipfile.ZIP_LZMA)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (_symlink, "is a link"),
        (_bomb, "unpacks to more than 512 MB"),
        (_twice, "twice"),
        (_many, "at most 129"),
        (_lzma, "packed in a way"),
    ],
)
def test_a_hostile_member_is_refused(here: Studio, there: Studio, spoil, sentence: str) -> None:
    there.add(replace(DETAILS, name="Mine"), seed=5)
    bundle = here.export(here.add())
    with zipfile.ZipFile(bundle, "a") as archive:
        spoil(archive)
    assert_refused(there, bundle, sentence)


def _declared(content: bytes, size: int) -> bytes:
    """The zip with every member of 600 MB declared as one of `size` bytes, in both places."""
    return content.replace(struct.pack("<I", 64 * 2**20), struct.pack("<I", size))


def _encrypted(content: bytes) -> bytes:
    changed = bytearray(content)
    for mark, offset in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        at = content.find(mark)
        while at >= 0:
            changed[at + offset] |= 1
            at = content.find(mark, at + 1)
    return bytes(changed)


def test_a_bomb_that_declares_less_than_it_holds_is_refused(here: Studio, there: Studio) -> None:
    there.add(replace(DETAILS, name="Mine"), seed=5)
    bundle = here.export(here.add())
    content = members(bundle) | {"clips/0": bytes(64 * 2**20)}
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, each in content.items():
            archive.writestr(name, each)
    bundle.write_bytes(_declared(bundle.read_bytes(), 1000))
    assert_refused(there, bundle, "no whole zip file|shorter than|larger than|another size")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_encrypted, "encrypted"),
        (lambda content: content[: len(content) // 2], "no whole zip file"),
        (lambda content: content[:-1], "no whole zip file"),
        (lambda content: b"", "no whole zip file"),
        (lambda content: content.replace(b"RIFF", b"RIFX"), "no whole zip file"),
        (lambda content: content[:60] + b"\xff" * 40 + content[100:], "no whole zip file|digest"),
        (lambda content: content.replace(b"clips/0", b"clips\\0"), "is a path"),
        (lambda content: content.replace(b"clips/0", b"clips\0\x30"), "does not belong"),
    ],
)
def test_a_zip_that_is_spoilt_is_refused(here: Studio, there: Studio, change, sentence: str) -> None:
    there.add(replace(DETAILS, name="Mine"), seed=5)
    bundle = here.folder / "spoilt.zip"
    bundle.write_bytes(change(raw(members(here.export(here.add())))))
    assert_refused(there, bundle, sentence)


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
