"""`models golden`: written once, it is met again on the same machine, and whatever is changed is found."""

from pathlib import Path

import numpy as np
import pytest
from command_line import CommandLine
from moss_studio import TOY_LOCAL, TOY_NANO, toy_engine, write_model
from safetensors import safe_open
from safetensors.numpy import save_file
from toy_moss import NEVER_STOPS, nano_files

from studio.engine.golden_check import check_golden, read_golden, write_golden
from studio.engine.golden_record import GoldenRecord, golden_record
from studio.errors import SettingError


@pytest.fixture
def studio(own_data_dir: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> CommandLine:
    """The command line on a data folder that has the toy Nano."""
    studio = CommandLine(capsys, own_data_dir)
    studio("models", "get", "moss-nano", "--from", write_model(tmp_path / "model", TOY_NANO))
    return studio


@pytest.fixture
def file(studio: CommandLine, tmp_path: Path) -> Path:
    path = tmp_path / "golden.safetensors"
    answer = studio("models", "golden", "moss-nano", "--write", path)
    assert answer.status == 0, answer.stderr
    assert f"{path}: 12 arrays of MOSS-TTS Nano on cpu" in answer.stdout
    return path


def changed(file: Path, made: dict[str, str] | None = None, **arrays: np.ndarray) -> None:
    record = read_golden(file)
    write_golden(GoldenRecord(arrays=record.arrays | arrays, made=record.made | (made or {})), file)


def test_the_same_machine_meets_its_own_file(studio: CommandLine, file: Path) -> None:
    answer = studio("models", "golden", "moss-nano", "--check", file)
    assert answer.status == 0, answer.stdout
    lines = answer.stdout.splitlines()
    assert len(lines) == 16
    assert all(line.startswith("ok ") for line in lines)
    assert "ok      codes: 0 of 148 differ" in lines
    record = studio("models", "golden", "moss-nano", "--check", file, "--json").record
    assert {finding["item"] for finding in record["findings"]} >= {
        "codes",
        "code_logits",
        "decoded",
        "prompt",
        "tokens_0",
    }


def test_one_bit_changed_in_the_file_is_found(studio: CommandLine, file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-3] ^= 64
    file.write_bytes(content)
    answer = studio("models", "golden", "moss-nano", "--check", file)
    assert answer.status == 1
    assert [line for line in answer.stdout.splitlines() if line.startswith("DIFFERS")] != []


@pytest.mark.parametrize("name", ["codes", "code_logits", "stop_logits", "decoded", "prompt", "tokens_3", "frames"])
def test_each_item_is_compared(studio: CommandLine, file: Path, name: str) -> None:
    array = read_golden(file).arrays[name].copy()
    array.flat[1] += 1
    changed(file, None, **{name: array})
    answer = studio("models", "golden", "moss-nano", "--check", file)
    assert answer.status == 1
    (line,) = [line for line in answer.stdout.splitlines() if line.startswith("DIFFERS")]
    assert line.startswith(f"DIFFERS {name}: ")


def test_elsewhere_a_few_codes_may_differ_and_the_place_is_said(studio: CommandLine, file: Path) -> None:
    codes = read_golden(file).arrays["codes"].copy()
    codes[0, :2] ^= 1
    changed(file, {"device": "cuda"}, codes=codes)
    answer = studio("models", "golden", "moss-nano", "--check", file)
    assert answer.status == 0
    assert "ok      place: device 'cuda', here 'cpu'" in answer.stdout
    assert "ok      codes: 2 of 148 differ" in answer.stdout


def test_other_weights_another_shape_and_a_missing_item_are_differences(tmp_path: Path) -> None:
    record = golden_record(toy_engine(tmp_path / "one", TOY_NANO))
    arrays = {name: array for name, array in record.arrays.items() if name != "prompt"}
    arrays |= {"stop_logits": np.zeros(3, dtype=np.float32), "sound": np.zeros(3)}
    other = toy_engine(tmp_path / "other", TOY_NANO, nano_files(goes_on=NEVER_STOPS))
    findings = check_golden(other, GoldenRecord(arrays=arrays, made=record.made))
    wrong = {finding.item: finding.said for finding in findings if not finding.fits}
    assert wrong.keys() == {"revision", "prompt", "stop_logits", "code_logits", "sound"}
    assert wrong["prompt"] == "missing from the file"
    assert wrong["stop_logits"] == "float32 (3,), here float32 (2,)"


def test_local_has_a_record_too(tmp_path: Path) -> None:
    engine = toy_engine(tmp_path, TOY_LOCAL)
    record = golden_record(engine)
    assert record.arrays["code_logits"].shape == (3, 64)
    assert record.arrays["decoded"].shape == (2, 4 * 3_840)
    assert all(finding.fits for finding in check_golden(engine, record))


def test_the_file_holds_arrays_and_words_only(file: Path) -> None:
    with safe_open(file, framework="numpy") as opened:
        assert opened.metadata()["model"] == "moss-nano"
        assert opened.get_tensor("clip").shape == (2, 144_000)


def test_a_file_of_another_kind_is_refused(studio: CommandLine, tmp_path: Path) -> None:
    for content in (b"", b"not at all"):
        (tmp_path / "x").write_bytes(content)
        answer = studio("models", "golden", "moss-nano", "--check", tmp_path / "x")
        assert answer.status == 2
        assert "it cannot be read" in answer.stderr
    save_file({"codes": np.zeros(3)}, tmp_path / "y")
    with pytest.raises(SettingError, match="no file that `models golden --write` makes"):
        read_golden(tmp_path / "y")
    assert "Give one of --write and --check" in studio("models", "golden", "moss-nano").stderr
    absent = studio("models", "golden", "moss-local", "--write", tmp_path / "z")
    assert "moss-local is not on this machine" in absent.stderr
    assert "cannot be used" in studio("models", "golden", "moss-nano", "--write", tmp_path / "no/where").stderr
