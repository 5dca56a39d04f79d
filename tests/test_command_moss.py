"""A downloaded MOSS model on the command line, from the hub to a take, with toy models in the released format."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import soundfile
from command_line import Answer, CommandLine
from counting_engine import encoded_file, talk
from moss_studio import publish_nano
from toy_hub import ToyHub, serving
from toy_moss import NEVER_STOPS, RATE, nano_files

from studio.settings import assets_dir

SENTENCE = "The ferry leaves at noon."


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyHub]:
    hub = ToyHub()
    publish_nano(hub, nano_files(goes_on=2.0))
    with serving(hub):
        monkeypatch.setenv("STUDIO_HUB", hub.url)
        yield hub


@pytest.fixture
def studio(own_data_dir: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """Each command loads its engine anew, as a process would."""
    return CommandLine(capsys, own_data_dir)


@pytest.fixture
def nano(studio: CommandLine, hub: ToyHub) -> CommandLine:
    """The command line on a data folder that has the toy model."""
    assert studio("models", "get", "moss-nano").status == 0
    return studio


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    path = tmp_path / "clip.wav"
    path.write_bytes(encoded_file(talk(4.0)))
    return path


def speak(
    studio: CommandLine, output: Path, *arguments: str | Path, engine: str = "moss-nano", text: str = SENTENCE
) -> Answer:
    return studio("speak", "--engine", engine, "--text", text, "--seed", "1", "-o", output, "--json", *arguments)


def samples_of(path: Path) -> np.ndarray:
    """Int16 `(samples, channels)`."""
    samples, rate = soundfile.read(path, dtype="int16")
    assert rate == RATE
    return samples


def test_from_the_hub_to_a_take_in_a_built_in_voice(nano: CommandLine, tmp_path: Path) -> None:
    voice = json.loads((assets_dir() / "voices/voices.json").read_text(encoding="utf-8"))[0]["id"]
    record = speak(nano, tmp_path / "take.wav", "--voice", voice).record
    assert (record["engine"], record["device"], record["cache"]) == ("moss-nano", "cpu", "hit")
    samples = samples_of(tmp_path / "take.wav")
    assert samples.shape == (round(record["duration_s"] * RATE), 2)
    assert int(np.abs(samples.astype(np.int32)).max()) > 100


def test_a_clip_is_encoded_once_for_each_engine_and_the_same_seed_gives_the_same_take(
    nano: CommandLine, clip: Path, tmp_path: Path
) -> None:
    first, second, third = (tmp_path / f"{name}.wav" for name in ("first", "second", "third"))
    made = speak(nano, first, "--reference", clip).record
    again = speak(nano, second, "--reference", clip).record
    assert (made["cache"], again["cache"]) == ("fill", "hit")
    assert made["key"] == again["key"]
    assert np.array_equal(samples_of(first), samples_of(second))

    embedded = speak(nano, third, "--reference", clip, engine="embedded").record
    assert embedded["cache"] == "fill"
    assert embedded["key"] != made["key"]


def test_a_pause_tag_is_silence_to_the_sample(nano: CommandLine, clip: Path, tmp_path: Path) -> None:
    speak(nano, tmp_path / "take.wav", "--reference", clip, text="[pause 0.5s] Yes.")
    samples = samples_of(tmp_path / "take.wav")
    assert not samples[: RATE // 2].any()
    assert samples[RATE // 2 : RATE].any()


def test_what_was_spoken_is_kept_where_one_sentence_ran_away(
    studio: CommandLine, hub: ToyHub, clip: Path, tmp_path: Path
) -> None:
    publish_nano(hub, nano_files(goes_on=NEVER_STOPS))
    studio("models", "get", "moss-nano")
    answer = speak(studio, tmp_path / "take.wav", "--reference", clip, text="Yes, you may. And so may I.")
    assert answer.status == 2
    assert "lost its way in 'Yes, you may.'" in answer.stderr
    assert "what was spoken is kept" in answer.stderr
    (take,) = studio("takes", "list", "--json").records
    assert take["partial"] is True
    assert take["duration_s"] > 2 * 40 / 12.5


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--speed", "1.5"), "speed cannot be 1.5: MOSS-TTS Nano speaks at the pace of its voice only; use 1"),
        (("--transcript", "Yes."), "The engine 'moss-nano' does not use a transcript, so it was left aside."),
    ],
)
def test_what_the_model_cannot_do_is_said(nano, clip, tmp_path, arguments, said) -> None:
    assert said in speak(nano, tmp_path / "take.wav", "--reference", clip, *arguments).stderr


def test_text_in_letters_of_no_language_of_the_model_is_refused(nano, clip, tmp_path) -> None:
    answer = speak(nano, tmp_path / "take.wav", "--reference", clip, text="สวัสดี")
    assert answer.status == 2
    assert "knows no language with the letters of 'สวัสดี'" in answer.stderr
    assert nano.rows()["takes"] == 0


def test_a_model_that_is_not_here_is_one_sentence_that_says_how_to_get_it(studio, clip, tmp_path) -> None:
    answer = speak(studio, tmp_path / "take.wav", "--reference", clip)
    assert answer.status == 2
    assert "The model moss-nano is not on this machine. `models get moss-nano` downloads about" in answer.stderr
    answer = speak(studio, tmp_path / "take.wav", "--reference", clip, engine="parrot")
    assert "There is no engine 'parrot'. Choose one of: embedded, moss-nano, moss-local." in answer.stderr
