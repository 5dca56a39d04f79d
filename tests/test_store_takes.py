"""The takes: kept with their reference codes, partial until they are whole, never a crash for a lost file."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from studio.errors import SettingError, UnknownTake
from studio.store.takes import Take, TakeLibrary

CODES = np.arange(24, dtype=np.int16).reshape(4, 6)


@pytest.fixture
def takes(tmp_path: Path) -> TakeLibrary:
    return TakeLibrary(tmp_path / "studio.db", tmp_path / "takes")


def new_take(**changes: Any) -> Take:
    fields = {
        "script": "Hello “you”, 👋.",
        "voice_id": "clara",
        "voice_name": "Clara",
        "engine": "embedded",
        "revision": "r1",
        "device": "cpu",
        "seed": 2**32 - 1,
        "options": {"speed": 1.25, "temperature": None},
        "key": "k",
        "codes": CODES,
        "codes_digest": "d",
        "cache": "fill",
        "lookup_ms": 0.4,
        "encode_ms": 212.0,
    }
    return Take(**fields | changes)


def saved(takes: TakeLibrary, **changes: Any) -> Take:
    take = takes.save(new_take(**changes))
    takes.path(take.id).write_bytes(b"RIFF")
    return take


def test_a_take_is_partial_from_its_start_until_it_is_saved_whole(takes: TakeLibrary) -> None:
    take = saved(takes)
    assert takes.get(take.id).partial
    takes.save(replace(take, partial=False, duration=1.5, first_audio_ms=80.0, realtime_speed=9.0, pcm_digest="p"))
    whole = takes.get(take.id)
    assert not whole.partial
    assert (whole.duration, whole.first_audio_ms, whole.realtime_speed, whole.pcm_digest) == (1.5, 80.0, 9.0, "p")
    assert takes.count() == 1


def test_every_field_is_read_back(takes: TakeLibrary) -> None:
    take = saved(takes, error="It broke.", voice_id=None)
    read = takes.get(take.id)
    for name in Take.__dataclass_fields__:
        if name != "codes":
            assert getattr(read, name) == getattr(take, name), name


def test_a_take_keeps_the_codes_it_was_made_from(takes: TakeLibrary) -> None:
    codes = takes.get(saved(takes).id).codes
    assert codes.dtype == np.int16
    assert np.array_equal(codes, CODES)
    with pytest.raises(ValueError, match="read-only"):
        codes[0, 0] = 1


def test_takes_are_listed_newest_first_page_by_page(takes: TakeLibrary) -> None:
    for number in range(5):
        saved(takes, script=str(number), created=float(number))
    assert [take.script for take in takes.list(limit=2)] == ["4", "3"]
    assert [take.script for take in takes.list(limit=2, offset=4)] == ["0"]
    assert takes.list(offset=5) == []
    assert takes.count() == 5


def test_a_take_whose_file_is_gone_is_shown_as_missing(takes: TakeLibrary) -> None:
    kept, lost = saved(takes), saved(takes)
    takes.path(lost.id).unlink()
    assert {take.id: take.missing for take in takes.list()} == {kept.id: False, lost.id: True}
    takes.remove(lost.id)
    assert [take.id for take in takes.list()] == [kept.id]


def test_removing_takes_row_and_file(takes: TakeLibrary) -> None:
    take = saved(takes)
    takes.remove(take.id)
    assert not takes.path(take.id).exists()
    assert takes.list() == []
    for again in (takes.get, takes.remove):
        with pytest.raises(UnknownTake):
            again(take.id)


def test_a_mark_and_a_note_set_while_it_is_made_stay(takes: TakeLibrary) -> None:
    take = saved(takes)
    takes.mark(take.id, favourite=True)
    takes.annotate(take.id, "  The good one. ")
    takes.save(replace(take, partial=False, duration=1.5))
    read = takes.get(take.id)
    assert (read.favourite, read.note, read.partial, read.duration) == (True, "The good one.", False, 1.5)
    assert not takes.mark(take.id, favourite=False).favourite
    assert takes.annotate(take.id, "").note == ""
    with pytest.raises(SettingError, match="at most 2,000"):
        takes.annotate(take.id, "x" * 2_001)
    with pytest.raises(UnknownTake):
        takes.mark("f" * 32, favourite=True)


def test_takes_are_found_by_every_word_of_text_voice_and_note_in_any_case(takes: TakeLibrary) -> None:
    first = saved(takes, script="Die Straße ist LANG.", voice_name="Zoë")
    second = saved(takes, script="100 % sure", voice_name="Bob")
    takes.annotate(second.id, "Für Ada")
    takes.mark(second.id, favourite=True)

    def found(words: str) -> list[str]:
        identifiers = [take.id for take in takes.list(search=words)]
        assert len(identifiers) == takes.count(search=words)
        return identifiers

    assert found("strasse ZOË") == found("lang") == [first.id]
    assert found("FÜR sure") == found("%") == found("bob") == [second.id]
    assert found("lang bob") == found("_") == found("' OR 1 --") == []
    assert [take.id for take in takes.list(favourites=True)] == [second.id]
    assert takes.count(search="lang", favourites=True) == 0


@pytest.mark.parametrize(
    "identifier", ["", "..", "../../etc/passwd", "a" * 31, "A" * 32, "a" * 32 + "/x", "\0", "\udcff"]
)
def test_what_is_no_id_is_an_unknown_take(takes: TakeLibrary, identifier: str) -> None:
    for ask in (takes.get, takes.remove, takes.path):
        with pytest.raises(UnknownTake):
            ask(identifier)


def test_two_takes_never_share_a_file(takes: TakeLibrary) -> None:
    assert takes.path(new_take().id) != takes.path(new_take().id)


def test_a_take_of_a_killed_process_is_partial_the_next_time(takes: TakeLibrary, tmp_path: Path) -> None:
    script = (
        "import os, signal; from pathlib import Path; from test_store_takes import TakeLibrary, new_take\n"
        f"takes = TakeLibrary(Path({str(tmp_path)!r}) / 'studio.db', Path({str(tmp_path)!r}) / 'takes')\n"
        "take = takes.save(new_take()); takes.path(take.id).write_bytes(b'RIFF')\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=here, env={"PYTHONPATH": f"{here}:{here.parent}"}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    [take] = takes.list()
    assert take.partial
    assert not take.missing
