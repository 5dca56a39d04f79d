"""The library on the command line: what `voices`, `takes`, `backup` and `restore` print and leave behind."""

import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command_line import CommandLine

from studio.settings import assets_dir

TEXT = "Good evening."


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "a clip.wav"
    shutil.copy(assets_dir() / "voices" / "nathan.flac", path)
    return path


def test_a_voice_is_described_found_edited_and_duplicated(library: CommandLine, clip: Path) -> None:
    said = ("--notes", "From the wedding", "--tag", "Family", "--tag", "b", "--language", "en", "--colour", "#112233")
    added = library("voices", "add", clip, "--name", "Mine", *said, "--consent", "Mine.", "--json").record
    assert (added["notes"], added["tags"], added["language"]) == ("From the wedding", ["Family", "b"], "en")
    assert (added["colour"], added["consent"], added["num_clips"], added["trim"]) == ("#112233", "Mine.", 1, None)
    found = library("voices", "list", "--search", "WEDDING family", "--json").records
    assert [voice["id"] for voice in found] == [added["id"]]
    assert library("voices", "list", "--sort", "created", "--json").records[0]["id"] == added["id"]
    edited = library("voices", "edit", "mine", "--name", "Nat", "--no-tags", "--transcript", "Hm.", "--json").record
    assert edited == added | {"name": "Nat", "tags": [], "transcript": "Hm."}
    copy = library("voices", "duplicate", "clara", "--name", "My Clara", "--json").record
    assert (copy["builtin"], copy["cache"]) == (False, "hit")
    shown = library("voices", "show", "Nat", "--json").record
    assert [part["name"] for part in shown["clips"]] == ["a clip.wav"]
    assert "a clip.wav" in library("voices", "show", "Nat").stdout


def test_clips_are_added_trimmed_chosen_and_removed(library: CommandLine, clip: Path) -> None:
    voice = library("voices", "add", clip, "--name", "Mine", "--transcript", "All of it.", "--json").record
    trimmed = library("voices", "clips", "trim", voice["id"], "--start", "0.5", "--end", "3.5", "--json").record
    assert (trimmed["trim"], trimmed["transcript_unchecked"]) == ([0.5, 3.5], True)
    assert "transcript to be checked" in library("voices", "list", "--search", "mine").stdout
    robin = assets_dir() / "voices" / "robin.flac"
    second = library("voices", "clips", "add", "Mine", robin, "--transcript", "Two.", "--json").record
    assert not second["is_reference"]
    assert library("voices", "clips", "remove", voice["id"]).status == 2
    assert library("voices", "clips", "choose", second["id"], "--json").record["is_reference"]
    assert library("voices", "show", "Mine", "--json").record["transcript"] == "Two."
    assert library("voices", "clips", "remove", voice["id"], "--json").record["id"] == voice["id"]
    assert library("voices", "remove", "Mine").status == 0
    assert len(library.files()) == len(library("voices", "list", "--json").records)


def test_a_voice_goes_to_another_library_and_back(library: CommandLine, clip: Path, tmp_path: Path) -> None:
    voice = library("voices", "add", clip, "--name", "Mine", "--end", "3", "--tag", "a", "--json").record
    bundle = tmp_path / "mine.zip"
    exported = library("voices", "export", "Mine", "-o", bundle, "--json").record
    assert (exported["bytes"], exported["clips"], exported["unfilled"]) == (bundle.stat().st_size, 1, [])
    imported = library("voices", "import", bundle, "--json").record
    assert (imported["already_there"], imported["id"]) == (True, voice["id"])
    elsewhere = ("--data-dir", tmp_path / "elsewhere")
    theirs = library(*elsewhere, "voices", "import", bundle, "--json").record
    assert (theirs["id"], theirs["key"], theirs["codes_digest"]) == (voice["id"], voice["key"], voice["codes_digest"])
    assert theirs["differences"] == theirs["to_fill"] == []
    (found,) = library(*elsewhere, "voices", "list", "--search", "mine", "--json").records
    assert found == voice | {"cache": "hit"}
    library("voices", "edit", "Mine", "--notes", "Other.")
    beside = library("voices", "import", bundle)
    assert "The name 'Mine' was taken." in beside.stdout


def test_a_voice_is_verified_and_refilled(library: CommandLine) -> None:
    found = library("voices", "verify", "clara", "--json").record
    assert (found["passed"], found["differing"], found["not_checkable"]) == (True, 0, "")
    done = library("voices", "refill", "clara", "--json").record
    assert (done["changed"], done["digest"]) == (False, found["digest"])
    with sqlite3.connect(library.data_dir / "studio.db") as raw:
        raw.execute("UPDATE codes SET digest = 'x' WHERE key = ?", [found["key"]])
    raw.close()
    damaged = library("voices", "verify", "clara")
    assert damaged.status == 1
    assert "damaged" in damaged.stdout


def test_takes_are_listed_written_repeated_marked_and_removed(library: CommandLine, tmp_path: Path) -> None:
    line = ("speak", "--voice", "clara", "--text", TEXT, "--seed", "5", "-o", tmp_path / "out.wav")
    assert library(*line).status == 0
    (take,) = library("takes", "list", "--search", "EVENING", "--json").records
    assert (take["script"], take["seed"], take["favourite"]) == (TEXT, 5, False)
    for suffix in (".wav", ".flac", ".mp3", ".ogg"):
        written = library("takes", "export", take["id"], "-o", tmp_path / f"take{suffix}", "--json").record
        assert written["bytes"] == (tmp_path / f"take{suffix}").stat().st_size
        assert soundfile.info(tmp_path / f"take{suffix}").frames == round(take["duration_s"] * 24_000)
    spoken, _ = soundfile.read(tmp_path / "out.wav", dtype="int16")
    assert np.array_equal(spoken, soundfile.read(tmp_path / "take.flac", dtype="int16")[0])
    again = library("takes", "again", take["id"], "--json").record
    assert (again["same"], again["pcm_digest"], again["cache"]) == (True, take["pcm_digest"], "kept")
    assert library("takes", "favourite", take["id"], "--json").record["favourite"]
    assert library("takes", "note", take["id"], "The best.", "--json").record["note"] == "The best."
    assert "The best." in library("takes", "show", take["id"]).stdout
    assert [one["id"] for one in library("takes", "list", "--favourites", "--json").records] == [take["id"]]
    over = library("takes", "bound", "--mb", "0", "--json").record
    assert (over["due"], over["removed"], over["over_bound"]) == ([again["id"]], [], True)
    assert library("takes", "bound", "--mb", "0", "--confirm", "--json").record["removed"] == [again["id"]]
    assert library("takes", "remove", take["id"], "--json").record["id"] == take["id"]
    assert library("takes", "list").stdout == ""


def test_a_library_is_backed_up_and_restored(library: CommandLine, clip: Path, tmp_path: Path) -> None:
    library("voices", "add", clip, "--name", "Mine")
    library("speak", "--voice", "Mine", "--text", TEXT, "-o", tmp_path / "out.wav")
    backup = tmp_path / "library.zip"
    done = library("backup", "-o", backup, "--with-takes", "--json").record
    assert (done["num_takes"], done["takes_with_sound"], done["missing"]) == (1, 1, [])
    elsewhere = ("--data-dir", tmp_path / "elsewhere")
    restored = library(*elsewhere, "restore", backup, "--json").record
    assert (restored["num_voices"], restored["num_takes"], restored["set_aside"]) == (done["num_voices"], 1, None)
    for what in (("voices", "list"), ("takes", "list")):
        assert library(*elsewhere, *what, "--json").records == library(*what, "--json").records


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (["voices", "edit", "clara"], "what is to change"),
        (["voices", "edit", "clara", "--name", "Klara"], "built-in voice"),
        (["voices", "duplicate", "clara", "--name", "clara"], "already a voice named"),
        (["voices", "list", "--sort", "size"], "choose one of name"),
        (["voices", "add", "CLIP", "--name", "New", "--colour", "red"], "#rrggbb"),
        (["voices", "add", "CLIP", "--name", "New", "--start", "1"], "at which the part ends"),
        (["voices", "add", "CLIP", "--name", "New", "--end", "0.1"], "0.3|0.5|or more is needed|No speech"),
        (["voices", "clips", "trim", "clara", "--end", "3"], "built-in voice"),
        (["voices", "clips", "trim", "clara"], "--whole"),
        (["voices", "clips", "choose", "nothing"], "no clip 'nothing'"),
        (["voices", "export", "nobody", "-o", "v.zip"], "no voice 'nobody'"),
        (["voices", "export", "clara", "-o", "nowhere/v.zip"], "no folder 'nowhere'"),
        (["voices", "import", "CLIP"], "no whole zip file"),
        (["voices", "import", "nowhere.zip"], "no such file"),
        (["takes", "show", "nothing"], "no take 'nothing'"),
        (["takes", "export", "nothing", "-o", "a.mp3"], "no take 'nothing'"),
        (["takes", "export", "nothing", "-o", "a.aac"], "choose one of .wav"),
        (["backup", "-o", "nowhere/b.zip"], "no folder 'nowhere'"),
        (["restore", "CLIP"], "no whole zip file"),
        (["restore", "nowhere.zip"], "no such file"),
    ],
)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    library: CommandLine, clip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    before, around = (library.rows(), library.files()), sorted(path.name for path in tmp_path.iterdir())
    answer = library(*(clip if word == "CLIP" else word for word in line))
    assert answer.status == 2
    assert any(part in answer.stderr for part in sentence.split("|"))
    assert len(answer.stderr.splitlines()) == 1
    assert (library.rows(), library.files()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == around
