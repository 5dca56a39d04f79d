"""Records, reports and kept cases: what a run leaves behind can be read again, and says what it says honestly."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from lab_bench import bench

from studio.engine.probe import PaddedBatch, ProbeSetting, one_row
from studio.errors import SettingError
from studio.invariance.case import FailingCase, load_case, reproduce
from studio.invariance.clips import LabClip, cuts, together
from studio.invariance.environment import lab_environment
from studio.invariance.experiment import perform
from studio.invariance.experiments import BY_NAME, chosen
from studio.invariance.record import LabRun, LabStopped, Record, worst
from studio.invariance.report import report_page
from studio.invariance.request import LabRequest, every_setting, split
from studio.invariance.shapes import trend_of
from studio.invariance.tally import Tally, share

HOP = 1920


@pytest.fixture
def run(tmp_path: Path) -> LabRun:
    lab = bench(tmp_path)
    assert lab.parts.engine is not None
    names = (
        "repeat-solo",
        "solo-batch",
        "lengths",
        "trace",
        "margins",
        "settings",
        "search",
        "cost",
        "cache",
        "chunks",
    )
    records = tuple(perform(BY_NAME[name], lab) for name in names)
    return LabRun(environment=lab_environment(lab.parts.engine, lab.sources, 0), records=records)


def test_a_run_is_plain_json_with_an_environment_and_experiments(run: LabRun, tmp_path: Path) -> None:
    run.save(tmp_path / "run.json")
    read = json.loads((tmp_path / "run.json").read_text(), parse_constant=pytest.fail)
    assert set(read) == {"format", "environment", "experiments"}
    assert [Record.from_json(fields) for fields in read["experiments"]] == list(run.records)
    assert set(read["environment"]["clips"]) == {"talk 0", "talk 1", "talk 2"}


def test_a_report_opens_offline_and_carries_the_json(run: LabRun) -> None:
    page = report_page(run)
    assert not re.search(r"(src|href)=\"(?!#)", page)
    assert "@import" not in page
    found = re.search(r'<script type="application/json" id="lab-run">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == json.loads(json.dumps(run.to_json()))
    for record in run.records:
        assert f'id="{record.experiment}"' in page


def test_every_tag_of_a_report_is_closed(run: LabRun) -> None:
    open_tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs):
            if tag not in {"meta"}:
                open_tags.append(tag)

        def handle_startendtag(self, tag, attrs): ...

        def handle_endtag(self, tag):
            assert open_tags.pop() == tag

    Reader().feed(report_page(run))
    assert open_tags == []


def test_a_clip_name_cannot_become_a_tag(tmp_path: Path) -> None:
    lab = bench(tmp_path)
    assert lab.parts.engine is not None
    wicked = LabClip("<script>alert(1)</script>", lab.sources[0].samples)
    record = perform(BY_NAME["cache"], bench(tmp_path))
    environment = lab_environment(lab.parts.engine, [wicked], 0)
    assert "<script>alert" not in report_page(LabRun(environment=environment, records=(record,)))


def test_a_kept_case_is_read_as_it_was_written(tmp_path: Path) -> None:
    lab = bench(tmp_path)
    clip = lab.ordinary[0]
    solo = lab.solo(clip)
    case = FailingCase(
        engine="embedded",
        codec_digest=lab.probe.codec.digest,
        device="cpu",
        setting=ProbeSetting(num_threads=2),
        clip=clip.name,
        samples=clip.samples,
        rows=3,
        longest=2 * clip.samples.shape[1],
        solo=solo,
        batch=solo + 1,
    )
    case.save(tmp_path / "kept" / "case.json")
    read = load_case(tmp_path / "kept" / "case.json")
    assert np.array_equal(read.samples, case.samples)
    assert (read.setting, read.rows, read.longest, read.size) == (case.setting, 3, case.longest, case.size)
    assert (read.differ, read.solo.dtype) == (solo.size, solo.dtype)
    again = reproduce(read, lab.probes)
    assert again["kept_differ"] == solo.size
    assert again["reproduced"] == (again["differ"] > 0)


@pytest.mark.parametrize("content", ["", "{}", '{"format": 9}', '{"format": 1, "samples": "!"}'])
def test_a_file_that_is_no_case_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "case.json").write_text(content)
    with pytest.raises(SettingError):
        load_case(tmp_path / "case.json")


def test_a_run_is_the_same_for_a_seed_and_another_for_another(tmp_path: Path) -> None:
    one, other = (bench(tmp_path) for _ in range(2))
    assert [clip.digest for clip in one.clips] == [clip.digest for clip in other.clips]
    assert perform(BY_NAME["rows"], one).figures == perform(BY_NAME["rows"], other).figures
    sources = [LabClip("noise", np.random.default_rng(0).standard_normal((1, 50 * HOP)).astype(np.float32))]
    names = [[clip.name for clip in cuts(sources, 3, 4, HOP, seed)] for seed in (0, 0, 1)]
    assert names[0] == names[1] != names[2]


def test_progress_that_says_stop_ends_the_experiment(tmp_path: Path) -> None:
    class Impatient:
        said = 0

        def report(self, experiment: str, done: int, total: int, doing: str) -> None:
            self.said += 1
            if self.said == 2:
                raise LabStopped

    impatient = Impatient()
    with pytest.raises(LabStopped):
        perform(BY_NAME["repeat-solo"], bench(tmp_path), impatient)
    assert impatient.said == 2


def test_padding_has_the_content_that_is_asked_for() -> None:
    short, long = np.ones((1, 3), np.float32), np.zeros((1, 7), np.float32)
    tails = {
        kind: together([short, long], padding=kind).samples[0, 0, 3:] for kind in ("zeros", "noise", "repeated tail")
    }
    assert np.array_equal(tails["zeros"], [0, 0, 0, 0])
    assert np.array_equal(tails["repeated tail"], [1, 1, 1, 1])
    assert len(set(tails["noise"].tolist())) == 4


def test_a_batch_must_fit_its_lengths() -> None:
    with pytest.raises(ValueError, match="lengths"):
        PaddedBatch(np.zeros((2, 1, 4), np.float32), (4,))
    with pytest.raises(ValueError, match="longer"):
        PaddedBatch(np.zeros((1, 1, 4), np.float32), (5,))
    assert one_row(np.zeros((2, 6), np.float32)).lengths == (6,)


def test_a_tally_counts_codes_frames_and_codebooks() -> None:
    tally = Tally()
    apart = tally.add("a", "b", np.zeros((2, 3)), np.array([[0, 1, 0], [0, 1, 1]]))
    assert apart.tolist() == [[False, True, False], [False, True, True]]
    assert (tally.codes, tally.differ, tally.frames, tally.differing_frames, tally.rate) == (6, 3, 3, 2, 0.5)
    assert [row["differ"] for row in tally.per_codebook()] == [1, 2]
    assert tally.counted == "3 of 6 codes"
    assert [share(rate) for rate in (0.0, 0.058, 0.0002)] == ["0.0 %", "5.8 %", "0.02 %"]


def test_a_side_that_changes_by_itself_is_counted_as_noise() -> None:
    tally, calls = Tally(), iter(range(10))
    tally.compare("a", "b", lambda: np.zeros((1, 1)), lambda: np.full((1, 1), next(calls) + 1))
    assert (tally.differ, tally.unsteady) == (1, 1)


def test_a_trend_is_told_from_chance() -> None:
    assert trend_of([0, 1, 2, 4, 8, 16, 25], [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], seed=0)["p"] < 0.01
    assert trend_of([0, 1, 2, 4, 8, 16, 25], [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], seed=0) == {"rho": 0.0, "p": 1.0}


def test_the_worst_verdict_is_the_one_to_tell() -> None:
    assert worst(["holds", "differs"]) == "differs"
    assert worst(["differs", "not checkable", "broken"]) == "broken"
    assert worst([]) == "holds"


def test_the_whole_set_leaves_the_users_library_alone() -> None:
    assert "library" not in {experiment.name for experiment in chosen(())}
    assert [experiment.name for experiment in chosen(("library", "rows"))] == ["rows", "library"]
    with pytest.raises(SettingError, match="repeat-solo"):
        chosen(("nonsense",))


def test_a_request_survives_the_pipe_and_once_is_once() -> None:
    request = LabRequest(engine="embedded", experiments=("rows", "cost"), setting=ProbeSetting(num_threads=2))
    assert LabRequest.from_json(json.loads(json.dumps(request.to_json()))) == request
    settings = every_setting(("float32", "bfloat16"), (1,))
    assert [names for _, names in split(request.experiments, settings)] == [("rows", "cost"), ("rows",)]
