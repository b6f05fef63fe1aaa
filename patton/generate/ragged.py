"""Arrays of lists of unequal length: offsets, ranges, changes and merged runs.

Stream generation is made of these few operations, so that it handles whole batches at a
time whatever their shape.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.steps import Ints


@attrs.frozen(eq=False)
class Runs:
    """Runs `[first, first + count)` of the groups they belong to; arrays [runs]."""

    group: Ints
    first: Ints
    count: Ints


def offsets(counts: NDArray[Any]) -> Ints:
    """Where each list begins when they stand one after another, and the end."""
    result = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=result[1:])
    return result


def ranges(first: Ints, counts: Ints) -> Ints:
    """`first[k], first[k] + 1, ...`, counts[k] numbers of each k, one after another."""
    result: Ints = (first - np.cumsum(counts) + counts).repeat(counts)
    result += np.arange(len(result))
    return result


def owners(counts: Ints) -> Ints:
    """The number of the list that each member belongs to, counts[k] in list k."""
    return np.arange(len(counts)).repeat(counts)


def changes(*keys: Ints) -> Ints:
    """Indices at which a new group begins: the first, and where any key changes."""
    size = len(keys[0])
    new = np.zeros(size, np.bool_)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new.nonzero()[0]


def numbers(starts: Ints, size: int) -> Ints:
    """The group of each of `size` members, where groups begin at `starts`."""
    return owners(lengths(starts, size))


def lengths(starts: Ints, size: int) -> Ints:
    """Members of each group, where groups begin at `starts` and end at `size`."""
    ends: Ints = np.append(starts, size)
    return ends[1:] - ends[:-1]


def sorting(key: Ints) -> Ints | slice:
    """An index that sorts the key, stably; a slice, hence free, if that is no work."""
    if (key[1:] >= key[:-1]).all():
        return slice(None)
    return np.argsort(key, kind="stable")


def distinct(group: Ints, item: Ints, groups: int, span: int) -> tuple[Ints, Ints]:
    """The distinct pairs, sorted; items are below `span`, groups below `groups`.

    A table of flags beats a sort by far, and the pairs are dense.
    """
    present = np.zeros(groups * span, np.bool_)
    present[group * span + item] = True
    pairs = np.divmod(present.nonzero()[0], span)
    return pairs[0], pairs[1]


def merged(group: Ints, first: Ints, count: Ints | int, span: int) -> Runs:
    """The runs with those joined that overlap or touch; `span` is above every end.

    Runs may come in any order; the result is sorted by group and first.
    """
    low = group * (span + 1) + first
    order = sorting(low)
    low, group, first = low[order], group[order], first[order]
    high = low + (count[order] if isinstance(count, np.ndarray) else count)
    reach = np.maximum.accumulate(high)
    new = np.ones(len(low), np.bool_)
    np.greater(low[1:], reach[:-1], out=new[1:])
    starts = new.nonzero()[0]
    ends = np.append(starts, len(low))[1:]
    return Runs(group[starts], first[starts], reach[ends - 1] - low[starts])
