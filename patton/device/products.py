"""Accumulations of many MACABs, arranged so that many can be computed side by side.

Additions of one accumulation have an order; different accumulations are independent.
Several of them often run over the same bank bursts, with other operands (the query
heads that share a Key head): such a bundle fetches the bursts once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.device.cells import Flags, Ints, runs_of, spread

# More members of a bundle save no more work, and the products leave the cache.
MEMBERS_MAX = 8


@attrs.frozen(eq=False)
class Group:
    """Bundles of equally many pieces in one segment, the longest first.

    pieces [members, bundles]: the pieces of a bundle have the same bank bursts.
    """

    segment: int
    pieces: Ints


@attrs.frozen(eq=False)
class Products:
    """Every burst of every MACAB in every channel, those of an accumulation together.

    row, burst, slot [bursts]: bank row, column of bank and Global Buffer, and operand.
    begin [pieces + 1]: where the pieces of accumulations begin, a piece being what
    falls into one segment; chain [pieces]: the accumulation. groups: all the pieces.
    """

    row: Ints
    burst: Ints
    slot: Ints
    begin: Ints
    chain: Ints
    groups: tuple[Group, ...]

    @classmethod
    def of(
        cls,
        first: Ints,
        count: Ints,
        *,
        row: Ints,
        slot_base: Ints,
        segment: Ints,
        chain: Ints,
    ) -> Products:
        """From runs of bursts [first, first + count) in stream order."""
        order = np.lexsort((chain, segment))
        cells = spread(first[order], count[order])
        run = order[cells.source]
        chain, segment = chain[run], segment[run]
        width = chain.max(initial=0) + 1
        begin = runs_of(segment * width + chain)
        heads = begin[:-1]
        bursts = _Bursts(row[run], cells.value, begin, segment[heads])
        return cls(
            row=bursts.row,
            burst=bursts.burst,
            slot=slot_base[run] + cells.value,
            begin=begin,
            chain=chain[heads],
            groups=tuple(bursts.groups()),
        )


@attrs.frozen(eq=False)
class _Bursts:
    """Bank bursts of pieces, to be bundled; columns as in `Products`."""

    row: Ints
    burst: Ints
    begin: Ints
    segment: Ints

    def groups(self) -> Iterator[Group]:
        length = np.diff(self.begin)
        mark = self._marks()
        order = np.lexsort((mark, length, self.segment))
        same = np.zeros(len(order), np.bool_)
        same[1:] = self._equal(order[:-1], order[1:], mark)
        index = np.arange(len(order))
        place = index - np.maximum.accumulate(np.where(same, 0, index))
        start = np.flatnonzero(place % MEMBERS_MAX == 0)
        members = np.diff(np.append(start, len(order)))
        leader = order[start]
        bundles = np.lexsort((leader, -length[leader], members, self.segment[leader]))
        kind = self.segment[leader] * (MEMBERS_MAX + 1) + members
        edges = runs_of(kind[bundles]).tolist()
        for low, high in pairwise(edges):
            some = bundles[low:high]
            many = np.arange(members[some[0]])
            pieces = order[start[some] + many[:, None]]
            yield Group(int(self.segment[leader[some[0]]]), pieces)

    def _marks(self) -> NDArray[np.uint64]:
        """A number for each piece, equal for equal sequences of bursts."""
        heads = self.begin[:-1]
        if not len(heads):
            return np.zeros(0, np.uint64)
        place = np.arange(len(self.row)) - np.repeat(heads, np.diff(self.begin))
        word = self.row.astype(np.uint64) << np.uint64(16) ^ self.burst.astype(
            np.uint64
        )
        word += place.astype(np.uint64) << np.uint64(48)
        for factor in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03):
            word *= np.uint64(factor)
            word ^= word >> np.uint64(29)
        marks: NDArray[np.uint64] = np.add.reduceat(word, heads)
        return marks

    def _equal(self, one: Ints, other: Ints, mark: NDArray[np.uint64]) -> Flags:
        """Whether pieces have the same segment and bank bursts.

        The marks only save comparisons: two sequences may have the same.
        """
        length = np.diff(self.begin)
        equal: Flags = mark[one] == mark[other]
        equal &= length[one] == length[other]
        equal &= self.segment[one] == self.segment[other]
        pairs = np.flatnonzero(equal)
        cells = spread(self.begin[one[pairs]], length[one[pairs]])
        apart = (self.begin[other] - self.begin[one])[pairs]
        there = cells.value + apart[cells.source]
        differ = self.row[cells.value] != self.row[there]
        differ |= self.burst[cells.value] != self.burst[there]
        equal[pairs[cells.source[differ]]] = False
        return equal
