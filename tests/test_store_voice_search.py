"""Finding voices: by words in any of their texts, in the order somebody asks for."""

from pathlib import Path

import pytest

from studio.errors import SettingError
from studio.store.voice_records import NewClip
from studio.store.voices import Voice, VoiceDetails, VoiceLibrary


@pytest.fixture
def voices(tmp_path: Path) -> VoiceLibrary:
    return VoiceLibrary(tmp_path / "studio.db", tmp_path / "clips", codec="c")


def add(voices: VoiceLibrary, name: str, **said) -> Voice:
    return voices.add(VoiceDetails(name=name, **said), b"sound", codes=None, duration=2.0)


def test_voices_are_found_by_every_word_in_any_of_their_texts_in_any_case(voices: VoiceLibrary) -> None:
    ada = add(voices, "Straße", notes="from the Wedding", tags=("Family",), transcript="I keep bees.")
    bob = add(voices, "Bob", tags=("family", "ÜBER"), transcript="I keep goats.")
    voices.clips.add(bob.id, NewClip(content=b"x", transcript="A second recording."))

    def found(words: str) -> list[str]:
        return sorted(voice.name for voice in voices.list(search=words))

    assert found("FAMILY") == found("") == found("  keep ") == ["Bob", ada.name]
    assert found("strasse") == found("wedding BEES") == [ada.name]
    assert found("über") == found("second") == found("goats family") == ["Bob"]
    assert found("goats wedding") == found("%") == []


def test_voices_come_in_the_order_that_is_asked_for(voices: VoiceLibrary) -> None:
    voices.install_builtin("clara", VoiceDetails(name="clara"), b"sound")
    for name in ("Bob", "ada"):
        add(voices, name)
    voices.touch(voices.get("ada").id)
    voices.touch(voices.get("Bob").id)
    voices.touch(voices.get("Bob").id)

    def order(by: str) -> list[str]:
        return [voice.name for voice in voices.list(order=by)]

    assert order("name") == ["ada", "Bob", "clara"]
    assert order("created") == ["ada", "Bob", "clara"]
    assert order("last_used") == order("times_used") == ["Bob", "ada", "clara"]
    with pytest.raises(SettingError, match="choose one of name, created, last_used, times_used"):
        order("size")
