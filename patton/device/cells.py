"""Who touched the same place last: the one question behind rules and operands.

Most of what a device remembers is of one kind. A bank has the row of the last ACT, a
Global Buffer burst holds what the last load put there, a register was last initialised
or read. A stream is therefore spread over the places that its entries touch, and the
last event at each place is looked up for all of them at once.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Whole = NDArray[np.integer[Any]]


@attrs.frozen
class Spread:
    """Ranges taken apart: item i is the place `value[i]` of range `source[i]`."""

    source: Ints
    value: Ints


def spread(first: Whole, count: Whole) -> Spread:
    """All places of the ranges [first, first + count), range after range."""
    counts = count.astype(np.int64)
    source = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    value = np.arange(len(source)) + (first.astype(np.int64) - before)[source]
    return Spread(source, value)


def split_points(first: Whole, count: Whole) -> Ints:
    """Where any of the ranges begins or ends.

    Between two neighbouring points every range covers all places or none, so that
    they need not be told apart.
    """
    end = first.astype(np.int64) + count
    return np.unique(np.concatenate([first.astype(np.int64), end]))


def spread_over(points: Ints, first: Whole, count: Whole) -> Spread:
    """As `spread`, of the intervals between the split points of the ranges."""
    low = np.searchsorted(points, first)
    high = np.searchsorted(points, first.astype(np.int64) + count)
    return spread(low, high - low)


def last_before(place: Ints, event: Flags) -> Ints:
    """For every item the last event before it at the same place, or -1.

    place [items], event [items]: the items are in the order of time.
    """
    order = np.argsort(_narrow(place), kind="stable")
    sorted_place = place[order]
    index = np.arange(len(place))
    last = np.full(len(place), -1)
    last[1:] = np.maximum.accumulate(np.where(event[order], index, -1))[:-1]
    is_first = np.ones(len(place), np.bool_)
    is_first[1:] = sorted_place[1:] != sorted_place[:-1]
    begin = np.maximum.accumulate(np.where(is_first, index, 0))
    answer = np.empty(len(place), np.int64)
    answer[order] = np.where(last >= begin, order[last], -1)
    return answer


def _narrow(place: Ints) -> Whole:
    # Integers of 16 bits are sorted digit by digit, many times as fast.
    small = len(place) > 0 and int(place.max()) < 2**16
    return place.astype(np.uint16) if small else place


def runs_of(values: Ints) -> Ints:
    """Where runs of equal values begin, and the number of values at the end."""
    change = np.flatnonzero(values[1:] != values[:-1]) + 1
    begin = np.zeros(min(1, len(values)), np.int64)
    return np.concatenate([begin, change, [len(values)]])
