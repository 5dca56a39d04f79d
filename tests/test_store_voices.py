"""The voice library: clips kept as they were given, names as people write them, nothing half-made."""

import sqlite3
import threading
from pathlib import Path

import pytest

from studio.errors import BuiltInVoice, NameTaken, SettingError, StorageError, UnknownVoice
from studio.store.clip_files import ClipFiles
from studio.store.database import connection
from studio.store.voices import VoiceCodes, VoiceDetails, VoiceLibrary

CODES = VoiceCodes(codec="c", key="k", digest="d")


@pytest.fixture
def voices(tmp_path: Path) -> VoiceLibrary:
    return VoiceLibrary(tmp_path / "studio.db", tmp_path / "clips", codec="c")


def files(tmp_path: Path) -> list[str]:
    folder = tmp_path / "clips"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def add(voices: VoiceLibrary, name: str = "Ada", clip: bytes = b"sound"):
    return voices.add(VoiceDetails(name=name), clip, codes=CODES, duration=2.0)


def test_an_added_voice_is_found_by_id_and_by_name_in_any_case(voices: VoiceLibrary, tmp_path: Path) -> None:
    details = VoiceDetails(
        name="Ada", transcript="Hello.", description="calm", sex="female", clip_name="../a b.wav", trim=(0.5, 2.5)
    )
    added = voices.add(details, b"sound", codes=CODES, duration=2.0)
    again = VoiceLibrary(tmp_path / "studio.db", tmp_path / "clips", codec="c")
    for asked in (added.id, "Ada", "ADA", "ada"):
        voice = again.get(asked)
        assert voice == added
        assert (voice.name, voice.transcript, voice.description, voice.sex) == ("Ada", "Hello.", "calm", "female")
        assert (voice.key, voice.codes_digest, voice.duration, voice.trim) == ("k", "d", 2.0, (0.5, 2.5))
        assert not voice.builtin
        assert not voice.filled
    assert voices.clip_bytes(added) == b"sound"
    assert files(tmp_path) == [added.id]
    assert len(added.id) == 32


def test_an_unknown_voice_is_a_refusal(voices: VoiceLibrary) -> None:
    add(voices)
    for asked in ("Bob", "", "../x", "\udcff", "a\0b"):
        with pytest.raises(UnknownVoice):
            voices.get(asked)


@pytest.mark.parametrize("name", ["Ada", "ADA", "  ada ", "Ａｄａ"])
def test_a_name_is_taken_in_any_case_and_nothing_is_left(voices: VoiceLibrary, tmp_path: Path, name: str) -> None:
    first = add(voices)
    with pytest.raises(NameTaken):
        add(voices, name, b"other")
    with pytest.raises(NameTaken):
        voices.check_name(name)
    assert files(tmp_path) == [first.id]
    assert len(voices.list()) == 1


def test_a_name_that_is_the_id_of_another_voice_is_taken(voices: VoiceLibrary) -> None:
    first = add(voices)
    with pytest.raises(NameTaken):
        add(voices, first.id)


@pytest.mark.parametrize(
    "name",
    [
        'O\'Neil "the" voice',
        "../../etc/passwd",
        ".hidden",
        "小明",
        "مرحبا",
        "👩‍🚀 Ada",
        "Robert'); DROP TABLE voices;--",
        "CON",
        "a/b\\c:d*e?",
        "x" * 255,
        "%s {name} $HOME",
    ],
)
def test_hostile_names_are_shown_as_they_are_and_never_touch_the_disk(
    voices: VoiceLibrary, tmp_path: Path, name: str
) -> None:
    voice = add(voices, name)
    assert voices.get(name) == voice
    assert voice.name == name
    assert files(tmp_path) == [voice.id]
    voices.remove(name)
    assert files(tmp_path) == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["clips"]


@pytest.mark.parametrize(
    "name", ["", "   ", "\t\n", "x" * 256, "two\nlines", "bell\a", "nul\0", "\udc80", "\u200b\u200d"]
)
def test_names_nobody_can_read_are_refused(voices: VoiceLibrary, tmp_path: Path, name: str) -> None:
    for refuse in (add, VoiceLibrary.check_name):
        with pytest.raises(SettingError, match="name cannot be"):
            refuse(voices, name)
    assert voices.list() == []
    assert files(tmp_path) == []


def test_a_failed_write_of_the_clip_leaves_no_row_and_no_file(
    voices: VoiceLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        add(voices)
    monkeypatch.undo()
    assert voices.list() == []
    voice = add(voices, "Bob")
    assert files(tmp_path) == [voice.id]


def test_a_failed_row_leaves_no_file(voices: VoiceLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise sqlite3.IntegrityError

    monkeypatch.setattr("studio.store.voice_rows.set_codes", killed)
    with pytest.raises(sqlite3.IntegrityError):
        add(voices)
    assert voices.list() == []
    assert files(tmp_path) == []


def test_what_a_killed_process_left_is_swept(voices: VoiceLibrary, tmp_path: Path) -> None:
    first = add(voices)
    ClipFiles(tmp_path / "clips").write("f" * 32, b"half-made")
    (tmp_path / "clips" / ("e" * 32 + ".part")).write_bytes(b"half")
    second = add(voices, "Bob")
    assert files(tmp_path) == sorted([first.id, second.id])


def test_removing_takes_rows_and_file_and_frees_the_name(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices)
    assert voices.remove("ADA") == voice
    assert files(tmp_path) == []
    with connection(tmp_path / "studio.db") as db:
        assert db["voices"].count == db["clips"].count == db["clip_codes"].count == 0
    with pytest.raises(UnknownVoice):
        voices.remove(voice.id)
    assert add(voices).id != voice.id


def test_a_built_in_voice_stays(voices: VoiceLibrary) -> None:
    voices.install_builtin("clara", VoiceDetails(name="Clara"), b"sound")
    with pytest.raises(BuiltInVoice, match="Clara"):
        voices.remove("clara")
    assert voices.get("Clara").builtin


def test_installing_a_built_in_voice_again_writes_nothing(
    voices: VoiceLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = voices.install_builtin("clara", VoiceDetails(name="Clara", sex="female"), b"sound")
    voices.remember_codes(voices.get("clara"), CODES, duration=3.0)
    voices.touch("clara")
    monkeypatch.setattr("studio.store.voices.transaction", None)
    again = voices.install_builtin("clara", VoiceDetails(name="Clara", sex="female"), b"sound")
    assert (again.id, again.key, again.duration, again.times_used) == ("clara", "k", 3.0, 1)
    assert again.created == first.created
    assert files(tmp_path) == ["clara"]


def test_new_details_of_a_built_in_voice_are_taken_and_its_codes_stay(voices: VoiceLibrary) -> None:
    voices.install_builtin("clara", VoiceDetails(name="Clara"), b"sound")
    voices.remember_codes(voices.get("clara"), CODES, duration=3.0)
    renamed = voices.install_builtin("clara", VoiceDetails(name="Klara", description="warm"), b"sound")
    assert (renamed.name, renamed.description, renamed.key) == ("Klara", "warm", "k")


def test_a_renewed_built_in_clip_drops_the_codes_of_the_old_one(voices: VoiceLibrary) -> None:
    voices.install_builtin("clara", VoiceDetails(name="Clara"), b"sound")
    voices.remember_codes(voices.get("clara"), CODES, duration=3.0)
    renewed = voices.install_builtin("clara", VoiceDetails(name="Clara"), b"better sound")
    assert renewed.key is None
    assert voices.clip_bytes(renewed) == b"better sound"


def test_a_lost_built_in_clip_is_put_back(voices: VoiceLibrary, tmp_path: Path) -> None:
    voices.install_builtin("clara", VoiceDetails(name="Clara"), b"sound")
    (tmp_path / "clips" / "clara").unlink()
    assert voices.clip_bytes(voices.install_builtin("clara", VoiceDetails(name="Clara"), b"sound")) == b"sound"


def test_a_built_in_voice_does_not_take_a_persons_name_for_a_voice(voices: VoiceLibrary) -> None:
    mine = add(voices, "Clara")
    theirs = voices.install_builtin("clara-1", VoiceDetails(name="Clara"), b"sound")
    assert voices.get("Clara") == mine
    assert theirs.name == "Clara (built-in clara-1)"


def test_built_in_voices_come_first_as_installed_then_the_others_by_name(voices: VoiceLibrary) -> None:
    for name in ("zoe", "Bob", "ada"):
        add(voices, name)
    voices.install_builtin("robin", VoiceDetails(name="Robin"), b"sound")
    voices.install_builtin("bruno", VoiceDetails(name="Bruno"), b"other sound")
    voices.install_builtin("robin", VoiceDetails(name="Robin"), b"renewed")
    assert [voice.name for voice in voices.list()] == ["Robin", "Bruno", "ada", "Bob", "zoe"]


def test_each_codec_has_its_own_key(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices)
    newer = VoiceLibrary(tmp_path / "studio.db", tmp_path / "clips", codec="c2")
    assert newer.get(voice.id).key is None
    newer.remember_codes(voice, VoiceCodes(codec="c2", key="k2", digest="d2"), duration=2.0)
    assert newer.get(voice.id).key == "k2"
    assert voices.get(voice.id).key == "k"


def test_codes_of_a_voice_removed_meanwhile_are_not_noted(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices)
    voices.remove(voice.id)
    voices.remember_codes(voice, CODES, duration=2.0)
    with connection(tmp_path / "studio.db") as db:
        assert db["clip_codes"].count == 0


def test_a_clip_that_is_not_what_was_saved_is_not_used(voices: VoiceLibrary, tmp_path: Path) -> None:
    voice = add(voices)
    (tmp_path / "clips" / voice.id).write_bytes(b"other")
    with pytest.raises(StorageError, match="damaged"):
        voices.clip_bytes(voice)
    (tmp_path / "clips" / voice.id).unlink()
    with pytest.raises(StorageError, match="No such file"):
        voices.clip_bytes(voice)
    assert voices.get("Ada") == voice


def test_uses_are_counted(voices: VoiceLibrary) -> None:
    voice = add(voices)
    voices.touch(voice.id)
    voices.touch(voice.id)
    used = voices.get(voice.id)
    assert used.times_used == 2
    assert used.last_used is not None
    assert used.last_used >= used.created


def test_of_two_at_once_with_one_name_one_is_told(voices: VoiceLibrary, tmp_path: Path) -> None:
    refused: list[Exception] = []

    def try_it() -> None:
        try:
            add(voices)
        except NameTaken as error:
            refused.append(error)

    threads = [threading.Thread(target=try_it) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert files(tmp_path) == [voices.get("Ada").id]


@pytest.mark.parametrize("identifier", ["", "..", "../x", "a/b", "A", "x" * 65, "a.wav", "con:"])
def test_no_id_leads_out_of_the_folder(tmp_path: Path, identifier: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        ClipFiles(tmp_path).path(identifier)
