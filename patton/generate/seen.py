"""Which blocks the queries of a step see, and which of their tokens (layout 5)."""

from __future__ import annotations

import attrs
import numpy as np

from patton.commit_zone import NO_SLOT
from patton.generate.ragged import (
    changes,
    lengths,
    numbers,
    offsets,
    owners,
    ranges,
)
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

    def __getitem__(self, index: Ints | slice) -> Blocks:
        return Blocks(
            self.request[index],
            self.position[index],
            self.granule[index],
            self.slot[index],
            self.opened[index],
        )


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
    tables = placed.tables
    counts = np.diff(tables.ptr)
    request = owners(counts)
    place = np.arange(len(request)) - tables.ptr[:-1].repeat(counts)
    position = place * placed.layout.block_tokens
    blocks = Blocks(request, position, tables.granule, tables.slot, tables.opened)
    return _useful(placed, reads, blocks)


def slot_blocks(placed: PlacedStep, reads: Reads) -> Blocks:
    """Those of `table_blocks` that are in a slot."""
    first = np.flatnonzero(placed.tables.slot != NO_SLOT)
    return _useful(placed, reads, _blocks_at(placed, first, first))


def home_blocks(placed: PlacedStep, reads: Reads) -> Blocks:
    """Those of `table_blocks` that are in their O1V, neighbours joined.

    Full blocks that follow each other in the table and in a Value row are, for a
    reduction over tokens, one long block (Paper 4.4); `opened` may so exceed a block.
    """
    tables, layout = placed.tables, placed.layout
    granule, is_home = tables.granule, tables.slot == NO_SLOT
    begins = np.ones(len(granule) + 1, np.bool_)  # a run, or nothing at the end
    if layout.stripes == 1:  # else neighbours lie in different channels
        begins[1:-1] = granule[1:] != granule[:-1] + 1
        # In the next row set; and a block given up is next to granule 0.
        begins[1:-1] |= granule[1:] % layout.map.values_per_set == 0
        begins[1:-1] |= tables.opened[:-1] != layout.block_tokens
        begins[1:-1] |= is_home[1:] != is_home[:-1]
        begins[tables.ptr] = True
    starts = np.flatnonzero(begins)
    first, last = starts[:-1], starts[1:] - 1
    is_first_home = is_home[first]
    if not is_first_home.all():
        first, last = first[is_first_home], last[is_first_home]
    return _useful(placed, reads, _blocks_at(placed, first, last))


def _blocks_at(placed: PlacedStep, first: Ints, last: Ints) -> Blocks:
    """Runs of blocks of the tables, as one block each; all but the last are full."""
    tables, size = placed.tables, placed.layout.block_tokens
    counts = np.diff(tables.ptr)
    request = owners(counts)[first]
    position = (first - tables.ptr[request]) * size
    opened = (last - first) * size + tables.opened[last]
    return Blocks(request, position, tables.granule[first], tables.slot[first], opened)


def _useful(placed: PlacedStep, reads: Reads, blocks: Blocks) -> Blocks:
    """The blocks that were not given up and whose request reads."""
    reading = np.bincount(reads.request, minlength=len(placed.requests)) > 0
    useful = blocks.granule != RELEASED
    if not reading.all():
        useful &= reading[blocks.request]
    return blocks if useful.all() else blocks[np.flatnonzero(useful)]


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
    segment_group = owners(repeats)
    segment_read = order[ranges(first_read[owner], repeats)]
    sizes = lengths(groups, len(request))[segment_group]
    index: Ints | slice = slice(None)
    if not (repeats == 1).all():
        index = ranges(groups[segment_group], sizes)
    low = reads.start[segment_read].repeat(sizes) - position[index]
    high = reads.end[segment_read].repeat(sizes) - position[index]
    np.maximum(low, 0, out=low)
    np.minimum(high, opened[index], out=high)
    segment = owners(sizes)
    seen = Seen(segment_group, segment_read, segment, index, low, high)
    visible = low < high
    return seen if visible.all() else _only(seen, np.flatnonzero(visible))


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
