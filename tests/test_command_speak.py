"""`speak` and `voices` with the embedded voice: what is a hit, what is written, what a mistake leaves behind."""

import hashlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import wave
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command_line import CommandLine

from studio.settings import assets_dir

TEXT = "The kettle is on."
SPEAK_FIELDS = "key codes_digest cache encode_ms first_audio_ms duration_s realtime_speed seed engine device output"
VOICE_FIELDS = (
    "id name key codes_digest cache duration_s builtin transcript times_used transcript_unchecked description notes "
    "tags language consent colour created last_used num_clips num_frames bytes filled_on trim"
)


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """Speech as a 24-bit WAV."""
    samples, sample_rate = soundfile.read(assets_dir() / "voices" / "clara.flac", dtype="int32")
    path = tmp_path / "clip.wav"
    soundfile.write(path, samples, sample_rate, subtype="PCM_24")
    return path


def test_one_sound_is_encoded_once_whatever_its_file_is(studio: CommandLine, clip: Path, tmp_path: Path) -> None:
    copy = tmp_path / "a copy under another näme.wav"
    shutil.copy(clip, copy)
    flac = tmp_path / "clip.flac"
    samples, sample_rate = soundfile.read(clip, dtype="int32")
    soundfile.write(flac, samples, sample_rate, subtype="PCM_24")

    outputs = [tmp_path / f"{number}.wav" for number in range(3)]
    spoken = [
        studio("speak", "--reference", source, "--text", TEXT, "--seed", "11", "-o", output, "--json").record
        for source, output in zip((clip, copy, flac), outputs, strict=True)
    ]

    assert [record["cache"] for record in spoken] == ["fill", "hit", "hit"]
    assert len({record["key"] for record in spoken}) == 1
    assert len({record["codes_digest"] for record in spoken}) == 1
    assert len({hashlib.sha256(output.read_bytes()).hexdigest() for output in outputs}) == 1
    with wave.open(str(outputs[0])) as file:
        assert (file.getsampwidth(), file.getframerate()) == (2, 24_000)


def test_json_is_one_object_with_the_promised_fields(library: CommandLine, tmp_path: Path) -> None:
    output = tmp_path / "out.wav"
    record = library("speak", "--voice", "clara", "--text", TEXT, "--seed", "5", "-o", output, "--json").record
    assert " ".join(record) == SPEAK_FIELDS
    assert record["cache"] == "hit"
    assert record["seed"] == 5
    assert (record["engine"], record["device"]) == ("embedded", "cpu")
    assert record["output"] == str(output)
    assert record["duration_s"] == pytest.approx(soundfile.info(output).duration, abs=1e-6)
    assert record["first_audio_ms"] > 0
    assert record["realtime_speed"] > 0


def test_a_blank_seed_is_drawn_and_said(library: CommandLine, tmp_path: Path) -> None:
    drawn = library("speak", "--voice", "clara", "--text", TEXT, "-o", tmp_path / "1.wav", "--json").record["seed"]
    assert 0 <= drawn < 2**32
    again = library("speak", "--voice", "clara", "--text", TEXT, "--seed", str(drawn), "-o", tmp_path / "2.wav")
    assert f"seed {drawn}" in again.stdout
    assert (tmp_path / "1.wav").read_bytes() == (tmp_path / "2.wav").read_bytes()


def test_flac_holds_the_samples_of_the_take(library: CommandLine, tmp_path: Path) -> None:
    for name in ("take.wav", "take.flac"):
        assert library("speak", "--voice", "nathan", "--text", TEXT, "--seed", "3", "-o", tmp_path / name).status == 0
    wav, flac = (soundfile.read(tmp_path / name, dtype="int16")[0] for name in ("take.wav", "take.flac"))
    assert soundfile.info(tmp_path / "take.flac").subtype == "PCM_16"
    np.testing.assert_array_equal(wav, flac)


def test_an_unused_transcript_is_said_to_be_so(studio: CommandLine, clip: Path, tmp_path: Path) -> None:
    line = ("speak", "--reference", clip, "--transcript", "My grandmother.", "--text", TEXT)
    spoken = studio(*line, "-o", tmp_path / "out.wav", "--json")
    assert spoken.record["output"]
    assert "does not use a transcript" in spoken.stderr


def test_a_voice_is_added_listed_spoken_with_and_removed(library: CommandLine, clip: Path, tmp_path: Path) -> None:
    builtin = library("voices", "list", "--json").records
    assert len(builtin) >= 4
    assert all(voice["builtin"] and voice["cache"] == "hit" for voice in builtin)

    named = ("--name", 'Zoë "the second" 🐝', "--transcript", "My grandmother kept bees.")
    added = library("voices", "add", clip, *named, "--json")
    voice = added.record
    assert " ".join(voice) == VOICE_FIELDS
    assert voice["name"] == named[1]
    assert voice["transcript"] == named[3]
    assert "does not use it" in added.stderr
    assert voice in library("voices", "list", "--json").records

    by_name = library("speak", "--voice", named[1], "--text", TEXT, "-o", tmp_path / "a.wav", "--json").record
    assert (by_name["cache"], by_name["key"]) == ("hit", voice["key"])
    assert library("voices", "remove", voice["id"], "--json").record["id"] == voice["id"]
    assert [one["id"] for one in library("voices", "list", "--json").records] == [one["id"] for one in builtin]


def test_adding_a_clip_says_whether_it_was_encoded(library: CommandLine, clip: Path) -> None:
    assert library("voices", "add", clip, "--name", "One", "--json").record["cache"] == "hit"  # Clara's own samples
    samples, sample_rate = soundfile.read(clip, dtype="int32")
    soundfile.write(clip, samples[: 3 * sample_rate], sample_rate, subtype="PCM_24")
    assert library("voices", "add", clip, "--name", "Two", "--json").record["cache"] == "fill"


def test_a_data_folder_may_have_any_name_and_be_given_on_the_line(studio: CommandLine, tmp_path: Path) -> None:
    elsewhere = tmp_path / "ein anderer Ort/データ"
    assert studio("--data-dir", elsewhere, "voices", "list").status == 0
    assert (elsewhere / "studio.db").is_file()
    assert not studio.data_dir.exists()


def sound(path: Path, samples: np.ndarray, sample_rate: int = 16_000) -> Path:
    soundfile.write(path, samples, sample_rate, subtype="PCM_16")
    return path


def bad_clips(folder: Path) -> dict[str, Path]:
    noise = np.random.default_rng(1).normal(0, 0.1, 16_000 * 5)
    speech, sample_rate = soundfile.read(assets_dir() / "voices" / "clara.flac")
    text = folder / "text.wav"
    text.write_text("This is a letter, not a recording.\n" * 50)
    empty = folder / "empty.wav"
    empty.write_bytes(b"")
    return {
        "missing": folder / "not there.wav",
        "folder": folder,
        "empty file": empty,
        "no samples": sound(folder / "none.wav", np.zeros(0)),
        "silence": sound(folder / "silence.wav", np.zeros(16_000 * 4)),
        "white noise": sound(folder / "noise.wav", noise),
        "50 ms": sound(folder / "short.wav", speech[: sample_rate // 20], sample_rate),
        "30 minutes": sound(folder / "long.wav", np.resize(speech, 8_000 * 1800), 8_000),
        "text": text,
    }


def assert_refused(studio: CommandLine, *arguments: str | Path) -> str:
    """One sentence on the error stream, status 2, and nothing anywhere that was not there before."""
    rows, files = studio.rows(), studio.files()
    answer = studio(*arguments)
    assert answer.status == 2, answer
    assert answer.stdout == ""
    (sentence,) = answer.stderr.splitlines()
    assert "Traceback" not in sentence
    assert (studio.rows(), studio.files()) == (rows, files)
    return sentence


def test_a_clip_that_cannot_be_used_is_refused_with_nothing_written(library: CommandLine, tmp_path: Path) -> None:
    output = tmp_path / "out.wav"
    for kind, path in bad_clips(tmp_path).items():
        sentence = assert_refused(library, "speak", "--reference", path, "--text", TEXT, "-o", output)
        assert assert_refused(library, "voices", "add", path, "--name", "New") == sentence, kind
        assert not output.exists(), kind


def test_a_missing_clip_is_refused_before_anything_is_made(studio: CommandLine, tmp_path: Path) -> None:
    assert_refused(studio, "speak", "--reference", "nowhere.wav", "--text", TEXT, "-o", tmp_path / "out.wav")
    assert not studio.data_dir.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--voice", "clara", "--text", ""], "nothing to speak"),
        (["--voice", "clara", "--text", " \n "], "nothing to speak"),
        (["--voice", "clara", "--text", "😀 🎉"], "nothing to speak"),
        (["--voice", "clara", "--text", "你好世界"], "English"),
        (["--voice", "clara", "--text", "Wait [pause soon] here."], "pause"),
        (["--voice", "nobody", "--text", TEXT], "no voice 'nobody'"),
        (["--voice", "clara", "--text", TEXT, "--engine", "abacus"], "no engine 'abacus'"),
        (["--voice", "clara", "--text", TEXT, "--speed", "2.5"], "speed cannot be 2.5"),
        (["--voice", "clara", "--text", TEXT, "--speed", "nan"], "speed cannot be nan"),
        (["--voice", "clara", "--text", TEXT, "--speed", "fast"], "--speed"),
        (["--voice", "clara", "--text", TEXT, "--seed", "-1"], "seed cannot be -1"),
        (["--voice", "clara", "--text", TEXT, "--seed", "4294967296"], "seed cannot be 4294967296"),
        (["--voice", "clara", "--text", TEXT, "--seed", "lucky"], "--seed cannot be 'lucky'"),
        (["--voice", "clara", "--text", TEXT, "--loud"], "No such option: --loud"),
        (["--text", TEXT], "one of --voice and --reference"),
        (["--voice", "clara", "--reference", "clip.wav", "--text", TEXT], "one of --voice and --reference"),
        (["--voice", "clara"], "Missing option '--text'"),
    ],
)
def test_a_mistake_is_one_sentence_with_nothing_written(
    library: CommandLine, tmp_path: Path, arguments: list[str], said: str
) -> None:
    assert said in assert_refused(library, "speak", *arguments, "-o", tmp_path / "out.wav")
    assert not (tmp_path / "out.wav").exists()


@pytest.mark.parametrize(
    ("output", "said"), [("out.mp3", ".wav or .flac"), ("out", ".wav or .flac"), ("no/such/out.wav", "no folder")]
)
def test_an_output_that_cannot_be_written_is_refused_before_speaking(
    studio: CommandLine, tmp_path: Path, output: str, said: str
) -> None:
    line = ("speak", "--voice", "clara", "--text", TEXT, "-o", tmp_path / output)
    assert said in assert_refused(studio, *line)
    assert not studio.data_dir.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["voices", "remove", "nobody"], "no voice 'nobody'"),
        (["voices", "remove", "clara"], "built-in voice"),
        (["voices", "add", "CLIP", "--name", "Clara"], "already a voice named"),
        (["voices", "add", "CLIP", "--name", "  "], "name"),
        (["voices", "rename"], "No such command"),
        (["--device", "toaster", "voices", "list"], "device cannot be 'toaster'"),
        (["--device", "cuda", "voices", "list"], "cuda"),
        (["ui", "--share"], "add --password"),
        (["ui", "--password", " "], "password"),
        (["ui", "--port", "0"], "1 to 65535"),
        (["sing"], "No such command"),
        ([], "Missing command"),
    ],
)
def test_other_commands_refuse_as_plainly(library: CommandLine, clip: Path, arguments: list[str], said: str) -> None:
    assert said in assert_refused(library, *[clip if argument == "CLIP" else argument for argument in arguments])


def test_ctrl_c_keeps_what_was_spoken_and_says_where(own_data_dir: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.wav"
    text = "It was a long day by the sea, and nobody wanted to go home. " * 40
    line = [sys.executable, "-m", "studio", "speak", "--voice", "clara", "--text", text, "-o", output]
    process = subprocess.Popen(line, cwd=assets_dir().parent, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    takes = own_data_dir / "takes"
    deadline = time.monotonic() + 120
    while not any(path.stat().st_size > 20_000 for path in takes.glob("*.wav")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    assert "Traceback" not in said
    (kept,) = takes.glob("*.wav")
    assert str(kept) in said
    assert soundfile.info(kept).duration > 0.2
    with sqlite3.connect(own_data_dir / "studio.db") as database:
        assert database.execute("SELECT id, partial, error FROM takes").fetchall() == [(kept.stem, 1, None)]
    database.close()
    assert not output.exists()


def test_the_module_runs_as_a_program() -> None:
    line = [sys.executable, "-m", "studio", "speak", "--nonsense"]
    done = subprocess.run(line, cwd=assets_dir().parent, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("No such option: --nonsense")
