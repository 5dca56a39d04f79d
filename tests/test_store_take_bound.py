"""The bound on takes: nothing goes before it was said on an earlier run, the oldest first, favourites never."""

import time
from pathlib import Path

import pytest
from test_store_takes import new_take

from studio.store.take_bound import TakesBound
from studio.store.takes import Take, TakeLibrary


@pytest.fixture
def takes(tmp_path: Path) -> TakeLibrary:
    return TakeLibrary(tmp_path / "studio.db", tmp_path / "takes")


def run(tmp_path: Path, takes: TakeLibrary, bound: int = 2500) -> TakesBound:
    """One run of the studio, later than all before it."""
    time.sleep(0.002)
    return TakesBound(tmp_path / "studio.db", takes, bound=bound)


def add(takes: TakeLibrary, created: float, size: int = 1000) -> Take:
    take = takes.save(new_take(created=created))
    takes.path(take.id).write_bytes(bytes(size))
    return take


def test_below_the_bound_nothing_is_said(takes: TakeLibrary, tmp_path: Path) -> None:
    add(takes, 1.0)
    warning = run(tmp_path, takes).announce()
    assert (warning.over_bound, warning.num_bytes, warning.due, warning.due_bytes) == (False, 1000, (), 0)
    assert "use 0.0 MB" in str(warning)


def test_the_oldest_go_on_the_run_after_it_was_said(takes: TakeLibrary, tmp_path: Path) -> None:
    old, middle, new = (add(takes, created) for created in (1.0, 2.0, 3.0))
    first = run(tmp_path, takes)
    assert first.enforce() == []
    warning = first.announce()
    assert warning.due == (old.id,)
    assert warning.due_bytes == 1000
    assert "go when the studio starts next" in str(warning)
    assert first.enforce() == []
    assert takes.count() == 3
    assert takes.get(old.id).announced is not None

    removed = run(tmp_path, takes).enforce()
    assert [take.id for take in removed] == [old.id]
    assert [take.id for take in takes.list()] == [new.id, middle.id]
    assert not takes.path(old.id).exists()


def test_more_takes_of_meanwhile_are_announced_and_not_removed_with_the_others(
    takes: TakeLibrary, tmp_path: Path
) -> None:
    old, middle, *_ = (add(takes, created) for created in (1.0, 2.0, 3.0))
    run(tmp_path, takes).announce()
    add(takes, 4.0)
    second = run(tmp_path, takes)
    assert [take.id for take in second.enforce()] == [old.id]
    assert second.announce().due == (middle.id,)


def test_a_favourite_never_goes_also_not_once_announced(takes: TakeLibrary, tmp_path: Path) -> None:
    old, middle, _ = (add(takes, created) for created in (1.0, 2.0, 3.0))
    run(tmp_path, takes).announce()
    takes.mark(old.id, favourite=True)
    second = run(tmp_path, takes)
    assert second.enforce() == []
    assert second.announce().due == (middle.id,)
    for take in takes.list():
        takes.mark(take.id, favourite=True)
    third = run(tmp_path, takes)
    assert third.enforce() == []
    assert "favourites, so all stay" in str(third.announce())
    assert takes.count() == 3


def test_what_may_stay_again_has_to_be_announced_anew(takes: TakeLibrary, tmp_path: Path) -> None:
    old, *_ = (add(takes, created) for created in (1.0, 2.0, 3.0))
    run(tmp_path, takes).announce()
    run(tmp_path, takes, bound=9000).announce()
    assert takes.get(old.id).announced is None
    assert run(tmp_path, takes).enforce() == []


def test_who_confirms_need_not_wait(takes: TakeLibrary, tmp_path: Path) -> None:
    old, middle, new = (add(takes, created) for created in (1.0, 2.0, 3.0))
    limit = run(tmp_path, takes, bound=0)
    warning = limit.look()
    takes.mark(middle.id, favourite=True)
    assert [take.id for take in limit.confirm(warning)] == [old.id, new.id]
    assert [take.id for take in takes.list()] == [middle.id]


def test_a_take_without_its_file_frees_nothing_and_stays(takes: TakeLibrary, tmp_path: Path) -> None:
    lost, old, *_ = (add(takes, created) for created in (1.0, 2.0, 3.0, 4.0))
    takes.path(lost.id).unlink()
    assert run(tmp_path, takes).announce().due == (old.id,)
