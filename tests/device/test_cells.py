from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from patton.device.cells import last_before, runs_of, split_points, spread, spread_over

RANGES = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=8)


def columns(
    ranges: list[tuple[int, int]],
) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    first, count = np.array(ranges, np.uint16).reshape(-1, 2).T
    return first, count


@given(ranges=RANGES)
def test_ranges_are_taken_apart_in_order(ranges: list[tuple[int, int]]) -> None:
    """Range after range, place after place; empty ranges give nothing."""
    items = spread(*columns(ranges))

    expected = [
        (source, first + i)
        for source, (first, n) in enumerate(ranges)
        for i in range(n)
    ]
    assert expected == list(
        zip(items.source.tolist(), items.value.tolist(), strict=True)
    )


@given(ranges=RANGES)
def test_intervals_cover_what_the_ranges_cover(ranges: list[tuple[int, int]]) -> None:
    """Each range is the union of its intervals, and none of them reaches out of it."""
    first, count = columns(ranges)
    points = split_points(first, count)
    items = spread_over(points, first, count)

    covered: list[list[int]] = [[] for _ in ranges]
    for source, interval in zip(items.source, items.value, strict=True):
        covered[source] += range(points[interval], points[interval + 1])
    assert [list(range(f, f + n)) for f, n in ranges] == covered


def test_ranges_may_end_beyond_the_column_type() -> None:
    """65,535 and 65,535 more do not wrap round."""
    most = np.array([2**16 - 1], np.uint16)

    assert [2**16 - 1, 2**17 - 2] == split_points(most, most).tolist()
    assert 2**17 - 3 == spread(most, most).value[-1]
    assert [0] == spread_over(split_points(most, most), most, most).value.tolist()


@pytest.mark.parametrize("scale", [1, 2**14, 2**16, 2**40])
@given(items=st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=30))
def test_the_last_event_at_the_same_place(
    scale: int, items: list[tuple[int, bool]]
) -> None:
    """Found by going back from every item, for places of any size."""
    place = np.array([place * scale for place, _event in items], np.int64)
    event = np.array([event for _place, event in items], np.bool_)
    expected = [
        max((j for j in range(i) if event[j] and place[j] == place[i]), default=-1)
        for i in range(len(items))
    ]

    assert expected == last_before(place, event).tolist()


@given(values=st.lists(st.integers(0, 3), max_size=20))
def test_runs_are_the_longest(values: list[int]) -> None:
    """Equal inside, different across every edge."""
    edges = runs_of(np.array(values, np.int64)).tolist()

    assert len(values) == edges[-1]
    assert [0] * bool(values) == edges[:-1][:1]
    for low, high in pairwise(edges):
        assert {values[low]} == set(values[low:high])
        assert high == len(values) or values[high] != values[low]
