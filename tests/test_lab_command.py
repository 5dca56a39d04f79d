"""`lab` on the voice model itself: in processes of its own, with files that can be read again."""

import json
from pathlib import Path

import pytest
from command_line import CommandLine

from studio.engine.probe import ProbeSetting
from studio.errors import StudioError
from studio.invariance.record import LabStopped, Record
from studio.invariance.request import LabRequest
from studio.invariance.runner import LabProcesses, run_lab
from studio.settings import Settings


def test_a_run_writes_json_and_a_report_and_touches_no_library(studio: CommandLine, tmp_path: Path) -> None:
    answer = studio(
        "lab", "repeat-solo", "padding", "--quick", "--json", tmp_path / "run.json", "--report", tmp_path / "run.html"
    )
    assert answer.status == 0, answer.stderr
    read = json.loads((tmp_path / "run.json").read_text())
    assert read["environment"]["engine"] == "embedded"
    assert [(each["experiment"], each["verdict"]) for each in read["experiments"]] == [
        ("repeat-solo", "holds"),
        ("padding", "holds"),
    ]
    assert "0 of" in answer.stdout
    assert "embedded" in (tmp_path / "run.html").read_text()
    assert not (studio.data_dir / "studio.db").exists()


def test_the_search_keeps_a_case_that_a_fresh_process_shows_again(studio: CommandLine, tmp_path: Path) -> None:
    """Which shapes show it is the machine's; that some do on a CPU in float32 is what the cache is for."""
    kept = tmp_path / "case.json"
    answer = studio("lab", "search", "--quick", "--dtype", "float32", "--threads", "1", "--keep", kept, "--json", "-")
    (record,) = answer.record["experiments"]
    assert record["figures"]["found"], record["sentence"]
    assert record["figures"]["reproduced"]["reproduced"]
    assert record["figures"]["reproduced"]["same_codes"]
    again = studio("lab", "reproduce", kept)
    assert again.status == 0
    assert again.stdout.startswith("Reproduced: ")


def test_mistakes_are_sentences(studio: CommandLine, tmp_path: Path) -> None:
    for arguments in (("nonsense",), ("reproduce",), ("reproduce", "missing.json"), ("rows", "--engine", "nobody")):
        answer = studio("lab", *arguments)
        assert (answer.status, answer.stdout) == (2, "")
        assert "Traceback" not in answer.stderr
        assert answer.stderr.strip()


def test_a_clip_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    request = LabRequest(engine="embedded", experiments=("rows",), clips=(str(tmp_path / "gone.wav"),))
    with pytest.raises(StudioError, match=r"gone\.wav"):
        run_lab(request, (ProbeSetting(),), LabProcesses(Settings(data_dir=tmp_path)))


def test_stopping_a_run_ends_its_process(tmp_path: Path) -> None:
    found: list[Record] = []

    class Stop:
        def report(self, experiment: str, done: int, total: int, doing: str) -> None:
            raise LabStopped

    request = LabRequest(engine="embedded", experiments=("repeat-solo",), quick=True)
    with pytest.raises(LabStopped):
        run_lab(request, (ProbeSetting(),), LabProcesses(Settings(data_dir=tmp_path)), Stop(), found.append)
    assert found == []
