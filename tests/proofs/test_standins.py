"""The contracts that proofs take for granted are kept by what they stand for."""

from __future__ import annotations

from bisect import bisect_right
from math import lcm
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from patton import layout
from proofs.check import check
from proofs.spaces import AllGeometries
from proofs.standins import StandIns
from proofs.theorems import acceptance

COUNTS = st.integers(1, 400)


@given(number=COUNTS, most=COUNTS)
def test_largest_divisor(number: int, most: int) -> None:
    """A divisor that is positive and small, and the largest such."""
    divisor = layout._largest_divisor(number, most)

    assert 0 == number % divisor
    assert 1 <= divisor <= most
    larger = range(divisor + 1, min(number, most) + 1)
    assert all(number % other for other in larger)


@given(a=COUNTS, b=COUNTS, number=st.integers(1, 10_000))
def test_least_common_multiple(a: int, b: int, number: int) -> None:
    """A common multiple that divides every other one."""
    least = lcm(a, b)

    assert 0 == least % a == least % b
    for common in (number * a * b, number):
        if common % a == common % b == 0:
            assert 0 == common % least


@given(
    keys=st.lists(st.integers(0, 9), max_size=12),
    limit=st.integers(0, 9),
    first=st.integers(0, 3),
)
def test_search(keys: list[int], limit: int, first: int) -> None:
    """Whatever the keys: the last one counted fits, the next one does not."""
    numbers = range(first, first + len(keys))
    count = bisect_right(numbers, limit, key=lambda number: keys[number - first])

    assert 0 <= count <= len(keys)
    assert count == 0 or keys[count - 1] <= limit
    assert count == len(keys) or keys[count] > limit


def test_names_are_put_back() -> None:
    """Outside a proof the layout calls what it imported, and `range` is Python's."""
    kept = dict(vars(layout))
    contracts = StandIns(AllGeometries())
    with contracts.installed():
        assert layout._ceil == contracts.ceil
        assert vars(layout)["range"](1, 5) == (1, 5)

    assert kept == dict(vars(layout))


def test_equal_calls_have_equal_results() -> None:
    """Helpers are functions: asked again, they say the same."""
    space = AllGeometries()
    contracts = StandIns(space)
    a, b = space.count("a"), space.count("b")

    assert contracts.ceil(a, b) is contracts.ceil(a, b)
    assert contracts.lcm(a, b) is contracts.lcm(a, b)
    assert contracts.ceil(a, b) is not contracts.ceil(b, a)


def test_negative_counts_are_no_counts() -> None:
    """The contract of `is_count` on numbers is that they are positive."""
    space = AllGeometries()
    with StandIns(space).installed():
        is_count = vars(layout)["is_count"]

    assert "1 <= a" == str(is_count(space.count("a")).term)
    with pytest.raises(AssertionError):
        is_count(space.count("b"), 5)


def test_a_contract_that_nothing_keeps_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From it everything follows, also what a planted bug makes false."""
    kept = StandIns._assume_ceil

    def too_much(self: StandIns, dividend: Any, divisor: Any, parts: Any) -> None:
        kept(self, dividend, divisor, parts)
        self._assume("one part more is none", parts + 1 == parts)

    monkeypatch.setattr(StandIns, "_assume_ceil", too_much)
    for theorem in acceptance.THEOREMS:
        result = check(theorem)
        assert ("deaf", 0) == (result.status, result.bugs_refuted)
        assert len(theorem.planted) == len(result.details)
