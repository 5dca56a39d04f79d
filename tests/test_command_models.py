"""`models list`, `get`, `check` and `remove`, as a person types them, against a toy hub that claims Nano's commits."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import CommandLine
from toy_hub import ToyHub, codec_files, serving, speaker_files, write_folder

from studio.engine.model_catalogue import MOSS_LOCAL, MOSS_NANO, ModelEntry

NANO_FILES = ("config.json", "tokenizer.model", "model.safetensors")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[ToyHub]:
    hub = ToyHub()
    publish(hub, MOSS_NANO)
    with serving(hub):
        monkeypatch.setenv("STUDIO_HUB", hub.url)
        yield hub


def publish(hub: ToyHub, entry: ModelEntry) -> None:
    speaker = speaker_files() | {"tokenizer.json": b"{}"}
    hub.publish(entry.language_model.name, speaker, commit=entry.language_model.revision)
    hub.publish(entry.codec.name, codec_files(), commit=entry.codec.revision)


def test_list_shows_every_model_and_writes_nothing(studio: CommandLine) -> None:
    nano, local = studio("models", "list", "--json").records
    assert (nano["name"], nano["state"], nano["bytes"], nano["runs_on_cpu"]) == ("moss-nano", "absent", 0, True)
    assert (local["name"], local["sample_rate"], len(local["languages"])) == ("moss-local", 48_000, 31)
    assert {need["device"] for need in local["memory"]} == {"cuda", "cpu"}
    lines = studio("models", "list").stdout.splitlines()
    assert "absent" in lines[0]
    assert "about 17.6 GB" in lines[1]
    assert "wants a graphics card" in lines[1]
    assert not studio.data_dir.exists()


def test_get_check_and_remove_are_one_life_of_a_model(studio: CommandLine, hub: ToyHub) -> None:
    record = studio("models", "get", "moss-nano", "--json").record
    speaker, codec = record["repositories"]
    assert (speaker["revision"], speaker["source"]) == (MOSS_NANO.language_model.revision, hub.url)
    assert [file["name"] for file in speaker["files"]] == list(NANO_FILES)
    (nano, _) = studio("models", "list", "--json").records
    assert nano["state"] == "here"
    assert nano["bytes"] > speaker["bytes"] + codec["bytes"]
    assert studio("models", "check", "moss-nano", "--json").record["damaged"] == 0
    removed = studio("models", "remove", "moss-nano", "--json").record
    assert removed == {"name": "moss-nano", "freed_bytes": nano["bytes"]}
    assert studio("models", "list", "--json").records[0]["state"] == "absent"


def test_a_person_is_told_what_came_and_how_it_was_checked(studio: CommandLine, hub: ToyHub) -> None:
    answer = studio("models", "get", "moss-nano")
    assert answer.status == 0, answer.stderr
    assert "OpenMOSS-Team/MOSS-TTS-Nano is here: 3 files, 302,021 bytes" in answer.stdout
    assert "2 checked against the hub's git SHA-1, 1 checked against the hub's SHA-256" in answer.stdout
    assert answer.stderr == ""
    assert "config.json: as it was" in studio("models", "check", "moss-nano").stdout
    assert "bytes are free again" in studio("models", "remove", "moss-nano").stdout


def test_check_says_what_is_damaged_and_how_to_mend_it(studio: CommandLine, hub: ToyHub) -> None:
    studio("models", "get", "moss-nano")
    (weights,) = (studio.data_dir / "models").glob("*Nano/*/model.safetensors")
    weights.write_bytes(bytes(300_000))
    answer = studio("models", "check", "moss-nano")
    assert answer.status == 1
    assert "model.safetensors: its SHA-256 is another" in answer.stdout
    assert "`models remove moss-nano` and then `models get moss-nano`" in answer.stdout
    studio("models", "remove", "moss-nano")
    studio("models", "get", "moss-nano")
    assert studio("models", "check", "moss-nano").status == 0


def test_a_mirror_wins_over_the_setting(studio: CommandLine, hub: ToyHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_HUB", "https://hub.invalid")
    assert studio("models", "get", "moss-nano", "--mirror", f"{hub.url}/").status == 0


def test_a_folder_is_used_in_place(studio: CommandLine, tmp_path: Path) -> None:
    write_folder(tmp_path / "mine/MOSS-TTS-Nano", speaker_files())
    write_folder(tmp_path / "mine/MOSS-Audio-Tokenizer-Nano", codec_files())
    answer = studio("models", "get", "moss-nano", "--from", tmp_path / "mine")
    assert answer.status == 0, answer.stderr
    assert f"from {tmp_path / 'mine' / 'MOSS-TTS-Nano'}, 3 not known to the catalogue" in answer.stdout
    assert studio("models", "list", "--json").records[0]["state"] == "here"
    assert studio("models", "check", "moss-nano").status == 0
    assert studio("models", "remove", "moss-nano").status == 0
    assert (tmp_path / "mine/MOSS-TTS-Nano/model.safetensors").exists()


def test_other_bytes_than_the_catalogue_knows_do_not_come_in(studio: CommandLine, hub: ToyHub) -> None:
    publish(hub, MOSS_LOCAL)
    answer = studio("models", "get", "moss-local")
    assert answer.status == 2
    assert "the hub has 300,000 bytes, the catalogue 9,100,859,544" in answer.stderr
    assert studio("models", "list", "--json").records[1]["state"] == "absent"


def test_a_stopped_download_is_shown_as_such_and_goes_on(studio: CommandLine, hub: ToyHub) -> None:
    hub.breaks["model.safetensors"] = [100_000]
    hub.corrupt = {"config.json"}
    assert studio("models", "get", "moss-nano").status == 2
    hub.corrupt.clear()
    hub.sends_on_to = "http://elsewhere.invalid/"
    assert "which is not https" in studio("models", "get", "moss-nano").stderr
    assert studio("models", "list", "--json").records[0]["state"] == "partly"
    hub.sends_on_to = None
    hub.breaks.clear()
    assert studio("models", "get", "moss-nano").status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "moss"), "There is no model 'moss'. Choose one of: moss-nano, moss-local."),
        (("check", "moss-nano"), "The model moss-nano is not on this machine. `models get moss-nano` downloads about"),
        (("remove", "../x"), "There is no model '../x'."),
        (
            ("get", "moss-nano", "--mirror", "http://example.org"),
            "hub cannot be 'http://example.org': give an https://",
        ),
        (("get", "moss-nano", "--from", "nowhere"), "The folder nowhere cannot be used as the model"),
        (("get", "moss-nano", "--from", "x", "--mirror", "https://y"), "give one of the two"),
        (("get",), "Missing argument"),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(studio: CommandLine, arguments: tuple[str, ...], said: str) -> None:
    answer = studio("models", *arguments)
    assert answer.status == 2
    assert said in answer.stderr
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stdout == ""
    assert not (studio.data_dir / "models").exists()
