"""Failures that were found once stay found: their files replay without one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.bugs import catalogue
from fuzz.driver import cases, drive
from fuzz.files import REGRESSIONS, Recorded, minimal

FILES = sorted(REGRESSIONS.glob("*.jsonl"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_regression_does_not_come_back(path: Path) -> None:
    assert Recorded.read(path).replay() is None


@pytest.mark.parametrize(
    "name", ["the Commit Zone is passed by", "a commit forgets its last burst"]
)
def test_a_failure_becomes_a_small_file(name: str, tmp_path: Path) -> None:
    """It still fails when it is read back, by the same clause, until it is mended."""
    planted = catalogue()[name]
    with planted.planted():
        device = planted.finder == "streams"
        done = drive("file", 5_000, "everything", device=device)
        assert done.failure is not None
        assert done.failed is not None
        whole = Recorded.of(done.failed.world)
        least = minimal(whole, done.failure.clause)
        least.write(tmp_path / "file.jsonl", done.failure)
        again = Recorded.read(tmp_path / "file.jsonl")
        failure = again.replay()

    assert len(least.events) <= 12
    assert failure is not None
    assert failure.clause == done.failure.clause
    assert again.replay() is None


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    case = next(cases("file", "everything"))
    case.run(200)
    recorded = Recorded.of(case.world)
    recorded.write(tmp_path / "whole.jsonl")

    assert Recorded.read(tmp_path / "whole.jsonl").events == recorded.events
    assert recorded.replay() is None
