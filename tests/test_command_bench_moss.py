"""`bench --moss` and `bench --moss-gpu` at toy size: what is measured is there; how fast it is, no test says."""

import json

import pytest
import torch
from command_line import CommandLine

from studio.engine.device_bench import bench_device
from studio.errors import SettingError


@pytest.fixture
def command(capsys, tmp_path):
    return CommandLine(capsys, tmp_path)


@pytest.mark.parametrize(("name", "options"), [("nano", ()), ("local", ()), ("nano", ("--bits", "8"))])
def test_both_loops_are_measured_in_one_run(command, name, options):
    record = command("bench", "--moss", name, "--toy", "--json", *options).record
    assert record["model"] == f"toy-{name}"
    assert record["threads"] == torch.get_num_threads()
    spreads = ["realtime_speed", "naive_realtime_speed", "first_audio_ms", "naive_first_audio_ms", "fast_to_naive"]
    spreads += [f"decoder_{chunk}_frames_ms" for chunk in (1, 2, 4, 8)]
    for name in spreads:
        assert 0 < record[name]["min"] <= record[name]["median"] <= record[name]["max"]
    assert record["equal_codes"] == 1.0 or record["packed_bits"] == 8


def test_figures_are_told_in_lines_too(command):
    said = command("bench", "--moss", "nano", "--toy")
    assert said.status == 0
    assert "fast_to_naive" in said.stdout


def test_the_device_script_runs_whole_at_toy_size(command):
    record = command("bench", "--moss-gpu", "--toy").record
    parts = [f"toy-{name}_{part}" for name in ("nano", "local") for part in ("speech", "decoder", "encoder")]
    assert list(record) == ["machine", *parts]
    assert "failed" not in json.dumps(record)
    for name in ("nano", "local"):
        shares = record[f"toy-{name}_speech"]["invariance"]
        for case in ("again", "other_slot", "neighbours", "neighbours_begun_before", "not_recorded"):
            assert shares[case] == 1.0
        assert record[f"toy-{name}_encoder"]["float32"]["solo_again"] == 0.0


@pytest.mark.parametrize(
    "arguments", [("--moss", "delay"), ("--moss", "local", "--bits", "8"), ("--moss", "nano", "--bits", "4")]
)
def test_what_cannot_be_measured_is_refused(command, arguments):
    answer = command("bench", *arguments)
    assert answer.status == 2
    assert "choose" in answer.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU to measure")
def test_without_a_gpu_only_the_toys_are_measured():
    assert bench_device(toy=True) == "cpu"
    with pytest.raises(SettingError, match="no CUDA device"):
        bench_device(toy=False)
