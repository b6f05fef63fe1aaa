"""No test of the paper passes whatever the code does."""

from __future__ import annotations

import pytest

from fuzz.bugs import catalogue
from tests.paper.breaking import fails, paper_tests
from tests.paper.broken_by import BROKEN_BY
from tests.paper.changes import CHANGES


@pytest.fixture(autouse=True)
def _no_whole_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of failures that are wanted; where these are set, pytest works them out whole."""
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("change", BROKEN_BY)
def test_a_change_of_the_code_breaks_its_tests(change: str) -> None:
    planted = CHANGES.get(change) or catalogue()[change]
    with planted.planted():
        tests = paper_tests()
        broken = [name for name in BROKEN_BY[change] if fails(tests[name])]

    assert [*BROKEN_BY[change]] == broken


def test_every_test_is_broken_by_a_change() -> None:
    """By one of those above; without them none fails."""
    broken = {name for names in BROKEN_BY.values() for name in names}

    assert paper_tests().keys() == broken
    assert CHANGES.keys() <= BROKEN_BY.keys()
