"""Which blocks the queries of a step see, and which of their tokens (layout 5)."""

from __future__ import annotations

import attrs
import numpy as np

from patton.generate.ragged import changes, numbers, offsets, ranges
from patton.steps import Ints, PlacedStep

RELEASED = -1  # granule of a block that its request gave up


@attrs.frozen(eq=False)
class Blocks:
    """Blocks of the tables of those requests that read; arrays [blocks].

    request: its index; position: of the block's token 0; opened: tokens written.
    """

    request: Ints
    position: Ints
    granule: Ints
    slot: Ints
    opened: Ints

    def __getitem__(self, index: object) -> Blocks:
        columns = attrs.astuple(self, recurse=False)
        return Blocks(*(column[index] for column in columns))


@attrs.frozen(eq=False)
class Reads:
    """Token ranges [start, end) of requests: visible ranges or read-backs [reads]."""

    request: Ints
    start: Ints
    end: Ints


@attrs.frozen(eq=False)
class Seen:
    """Which groups of blocks which reads see.

    A segment is one read in one group of blocks (of a row, say) that holds something it
    sees: segment_group and segment_read [segments]. Its items are blocks, in order:
    segment [items] and index, into the blocks (a slice where that is all of them), and
    the range [low, high) of tokens of the block that are written and seen.
    """

    segment_group: Ints
    segment_read: Ints
    segment: Ints
    index: Ints | slice
    low: Ints
    high: Ints


def query_reads(placed: PlacedStep) -> Reads:
    """What the step's queries see."""
    return Reads(placed.read_request, placed.read_start, placed.read_end)


def table_blocks(placed: PlacedStep, reads: Reads) -> Blocks:
    """The blocks, in table order, of the requests that `reads` speak of."""
    tables, requests = placed.tables, len(placed.requests)
    counts = np.diff(tables.ptr)
    request = np.repeat(np.arange(requests), counts)
    place = np.arange(len(request)) - np.repeat(tables.ptr[:-1], counts)
    blocks = Blocks(
        request,
        place * placed.layout.block_tokens,
        tables.granule,
        tables.slot,
        tables.opened,
    )
    reading = np.bincount(reads.request, minlength=requests) > 0
    useful = tables.granule != RELEASED
    if not np.all(reading):
        useful &= np.repeat(reading, counts)
    return blocks if np.all(useful) else blocks[np.flatnonzero(useful)]


def see(
    reads: Reads, groups: Ints, request: Ints, position: Ints, opened: Ints
) -> Seen:
    """Match reads with the blocks of their request, group by group.

    groups: index of the first block of each group, whose blocks are of one request;
    request, position, opened [blocks]. Segments are in order of groups, then reads.
    """
    reads_of, first_read, order = _reads_by_request(reads)
    owner = request[groups]
    repeats = reads_of[owner]
    segment_group = np.repeat(np.arange(len(groups)), repeats)
    segment_read = order[ranges(first_read[owner], repeats)]
    sizes = np.diff(groups, append=len(request))[segment_group]
    index: Ints | slice = slice(None)
    if not np.all(repeats == 1):
        index = ranges(groups[segment_group], sizes)
    low = np.repeat(reads.start[segment_read], sizes) - position[index]
    high = np.repeat(reads.end[segment_read], sizes) - position[index]
    np.maximum(low, 0, out=low)
    np.minimum(high, opened[index], out=high)
    segment = np.repeat(np.arange(len(segment_group)), sizes)
    seen = Seen(segment_group, segment_read, segment, index, low, high)
    visible = low < high
    return seen if np.all(visible) else _only(seen, np.flatnonzero(visible))


def _reads_by_request(reads: Reads) -> tuple[Ints, Ints, Ints]:
    """Reads per request, where they begin in the third, and all reads by request."""
    reads_of = np.bincount(reads.request)
    order = np.argsort(reads.request, kind="stable")
    return reads_of, offsets(reads_of), order


def _only(seen: Seen, items: Ints) -> Seen:
    """The given items, and the segments that have any."""
    segment = seen.segment[items]
    starts = changes(segment)
    kept = segment[starts]
    return Seen(
        seen.segment_group[kept],
        seen.segment_read[kept],
        numbers(starts, len(items)),
        items if isinstance(seen.index, slice) else seen.index[items],
        seen.low[items],
        seen.high[items],
    )
