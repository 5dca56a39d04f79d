"""Hostile and broken bundles: each is refused with a sentence, and nothing is written."""

import hashlib
import pickle
import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bundle_studio import DETAILS, Studio, members, raw, told, zipped

from studio.bundle_import import import_voice
from studio.errors import StudioError
from studio.store.packed_codes import digest, pack


@pytest.fixture
def here(tmp_path: Path) -> Studio:
    return Studio(tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> Studio:
    return Studio(tmp_path / "there")


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
        import_voice(studio.engine, studio.voices, bundle)
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
