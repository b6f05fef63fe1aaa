"""SV: weights times the Values that queries see (Paper 4.4, layout 5).

Blocks in their O1V are reduced together, all that a request has in one row; blocks in
Commit Zone slots ("partial") each on their own. Summands of an output element come in
the order of these streams: by Value row set and stripe; then by Commit Zone row, stripe
and slot.
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.addresses import slot_address, value_address
from patton.commands import CommandStream, Loads, Phase, Queries, ResultTable
from patton.generate.assembly import (
    Entries,
    first_elements,
    frame_of,
    token_places,
)
from patton.generate.batches import order_products
from patton.generate.passes import Products
from patton.generate.ragged import (
    changes,
    lengths,
    merged,
    numbers,
    offsets,
    owners,
    ranges,
    sorting,
)
from patton.generate.schedule import PAPER, PAPER_ORDER, Schedule
from patton.generate.seen import Seen, home_blocks, query_reads, see, slot_blocks
from patton.generate.vectors import BufferLoads, Units, Visits, Work, assemble
from patton.layout import Layout
from patton.steps import Ints, PlacedStep


def value_stream(
    placed: PlacedStep, schedule: Schedule = PAPER
) -> CommandStream | None:
    """The SV stream of a step: blocks in their O1V; None if no query sees any.

    The paper's order: request, row set and stripe, row, query token, query head. Only
    bursts with a token that is written and seen are loaded and multiplied. Where a
    single vector visits a row set, the rows after the first find it still loaded.
    """
    layout, reads, order = placed.layout, query_reads(placed), schedule.sv
    blocks = home_blocks(placed, reads)
    at = value_address(layout.map, 0, 0, blocks.granule, 0, 0)
    row_set = at.row * layout.channels_per_head + at.channel
    request, sets = blocks.request, layout.rows_per_plane * layout.channels_per_head
    visit = request * sets + row_set
    if order.requests == "together":
        visit = row_set * len(placed.requests) + request
    places = sorting(visit * layout.device.bursts_per_row + at.burst)
    blocks = blocks[places]
    groups = changes(visit[places])
    seen = see(reads, groups, blocks.request, blocks.position, blocks.opened)
    if not len(seen.segment):
        return None
    burst, position = at.burst[places][seen.index], blocks.position[seen.index]
    parts = _parts(layout, seen, burst, position)
    first_blocks = groups[seen.segment_group]
    granule, channel = blocks.granule[first_blocks], at.channel[places][first_blocks]
    if order == PAPER_ORDER:
        work, results = _row_set_work(layout, seen, parts, granule, channel)
        entries = _assembled(placed, schedule, work)
    else:
        products, results = _row_set_products(layout, seen, parts, granule, channel)
        if order.requests == "together":
            span = changes(row_set[places][first_blocks])
            products = attrs.evolve(products, span=numbers(span, len(granule)))
        entries = _ordered(placed, schedule, products, results)
    return _stream(placed, Phase.SV, entries, _weights(layout, seen, parts), results)


def partial_stream(
    placed: PlacedStep, schedule: Schedule = PAPER
) -> CommandStream | None:
    """The stream of blocks in Commit Zone slots; None if no query sees any.

    The paper's order: Commit Zone row and stripe, once a step, then request, query
    token, query head, and slot by slot the sub-blocks, each a unit. The weights of a
    slot are loaded once for each of its sub-blocks, which lie side by side.
    """
    layout, reads = placed.layout, query_reads(placed)
    blocks = slot_blocks(placed, reads)
    element = np.tile(first_elements(layout), len(blocks.slot))
    blocks = blocks[np.repeat(np.arange(len(blocks.slot)), layout.rows_per_value)]
    at = slot_address(layout.map, 0, 0, blocks.slot, 0, element)
    order = np.lexsort((at.burst, blocks.request, at.channel, at.row))
    blocks = blocks[order]
    channel, row, burst = at.channel[order], at.row[order], at.burst[order]
    groups = changes(row, channel, blocks.request)
    seen = see(reads, groups, blocks.request, blocks.position, blocks.opened)
    if not len(seen.segment):
        return None
    index = seen.index
    parts = _parts(layout, seen, burst[index], blocks.position[index])
    work = _zone_work(layout, seen, parts, channel[index], row[index])
    query = seen.segment_read[seen.segment]
    results = _results(layout, query, element[order][index])
    if schedule.sv == PAPER_ORDER:
        entries = _assembled(placed, schedule, work)
    else:
        entries = _ordered(placed, schedule, _zone_products(layout, work), results)
    loads = _weights(layout, seen, parts)
    return _stream(placed, Phase.PARTIAL, entries, loads, results)


@attrs.frozen(eq=False)
class _Parts:
    """Bursts [first, first + count) of blocks in which something is seen [items].

    origin: position, in the request, of lane 0 of the first burst.
    """

    first: Ints
    count: Ints
    origin: Ints


def _parts(layout: Layout, seen: Seen, burst: Ints, position: Ints) -> _Parts:
    """The bursts, of blocks that begin at `burst` and `position`, that are seen."""
    low, last = token_places(layout, seen.low), token_places(layout, seen.high - 1)
    first, count = burst + low.burst, last.burst - low.burst + 1
    return _Parts(first, count, position + seen.low - low.lane)


def _row_set_work(
    layout: Layout, seen: Seen, parts: _Parts, granule: Ints, channel: Ints
) -> tuple[Work, ResultTable]:
    """A visit for each row of each row set. granule, channel: of segments."""
    runs = merged(seen.segment, parts.first, parts.count, layout.device.bursts_per_row)
    runs_of = np.bincount(runs.group)
    first_run = offsets(runs_of)
    sets = changes(seen.segment_group)
    reads_of = lengths(sets, len(granule))
    row_set = np.repeat(np.arange(len(sets)), layout.rows_per_value)
    element = np.tile(first_elements(layout), len(sets))
    row = value_address(layout.map, 0, 0, granule[sets][row_set], 0, element).row
    visit = owners(reads_of[row_set])
    segment = ranges(sets[row_set], reads_of[row_set])
    counts = runs_of[segment]
    run = ranges(first_run[segment], counts)
    load_counts = counts
    if layout.model.query_heads_per_kv == 1:
        is_loaded = (reads_of == 1)[row_set] & (element > 0)
        load_counts = np.where(is_loaded[visit], 0, counts)
    load = ranges(first_run[segment], load_counts)
    set_channel, channels = channel[sets][row_set], layout.value_channels
    load_channel = channel[segment].repeat(load_counts)
    load_runs = offsets(load_counts), runs.first[load], runs.count[load]
    work = Work(
        visits=Visits(np.arange(len(row)), set_channel, channels, row),
        segment_visit=visit,
        pattern=segment,
        loads=BufferLoads(*load_runs, channel=load_channel, channels=channels),
        units=Units(
            ptr=np.arange(len(segment) + 1),
            channel=channel[segment],
            channels=channels,
            row=row[visit],
            runs=offsets(counts),
            burst=runs.first[run],
            count=runs.count[run],
        ),
    )
    return work, _results(layout, seen.segment_read[segment], element[visit])


def _zone_products(layout: Layout, work: Work) -> Products:
    return Products(
        units=work.units,
        span=work.segment_visit,
        pattern=work.pattern,
        load_channel=work.units.channel[work.units.ptr[:-1]],
        load_channels=layout.value_channels,
    )


def _row_set_products(
    layout: Layout, seen: Seen, parts: _Parts, granule: Ints, channel: Ints
) -> tuple[Products, ResultTable]:
    """All rows of a row set together. granule, channel: of segments."""
    runs = merged(seen.segment, parts.first, parts.count, layout.device.bursts_per_row)
    segments, rows = len(granule), layout.rows_per_value
    segment = np.arange(segments).repeat(rows)
    element = np.tile(first_elements(layout), segments)
    counts = np.bincount(runs.group)
    run = ranges(offsets(counts)[segment], counts[segment])
    products = Products(
        units=Units(
            ptr=np.arange(segments + 1) * rows,
            channel=channel[segment],
            channels=layout.value_channels,
            row=value_address(layout.map, 0, 0, granule[segment], 0, element).row,
            runs=offsets(counts[segment]),
            burst=runs.first[run],
            count=runs.count[run],
        ),
        span=seen.segment_group,
        pattern=np.arange(segments),
        load_channel=channel,
        load_channels=layout.value_channels,
    )
    return products, _results(layout, seen.segment_read[segment], element)


def _zone_work(
    layout: Layout, seen: Seen, parts: _Parts, channel: Ints, row: Ints
) -> Work:
    """A visit for each Commit Zone row and stripe. channel, row: of items."""
    size = len(seen.segment)
    starts = changes(seen.segment)
    visits = changes(row[starts], channel[starts])
    runs = merged(seen.segment, parts.first, parts.count, layout.device.bursts_per_row)
    channels = layout.value_channels
    return Work(
        visits=Visits(
            np.arange(len(visits)),
            channel[starts][visits],
            channels,
            row[starts][visits],
        ),
        segment_visit=numbers(visits, len(starts)),
        pattern=np.arange(len(starts)),
        loads=BufferLoads(
            ptr=offsets(np.bincount(runs.group)),
            channel=channel[starts][runs.group],
            channels=channels,
            burst=runs.first,
            count=runs.count,
        ),
        units=Units(
            ptr=np.append(starts, size),
            channel=channel,
            channels=channels,
            row=row,
            runs=np.arange(size + 1),
            burst=parts.first,
            count=parts.count,
        ),
    )


def _weights(layout: Layout, seen: Seen, parts: _Parts) -> Loads:
    """Per segment the positions whose weights its bursts carry, runs joined."""
    end = parts.first + parts.count
    # Neither changes where bursts go on, and with them positions: a run is joined.
    place = parts.first - offsets(parts.count)[:-1]
    origin = parts.origin - parts.first * layout.device.lanes
    starts = changes(seen.segment, origin, place)
    run_counts = np.bincount(seen.segment[starts])
    first = parts.first[starts]
    return Loads(
        query=seen.segment_read,
        ptr=offsets(run_counts),
        burst=first,
        count=end[np.append(starts, len(end))[1:] - 1] - first,
        origin=parts.origin[starts],
    )


def _results(layout: Layout, query: Ints, element: Ints) -> ResultTable:
    return ResultTable(query, element, layout.device.banks, 1)


def _assembled(placed: PlacedStep, schedule: Schedule, work: Work) -> Entries:
    registers = schedule.registers_of(placed.layout.device.result_registers)
    return assemble(work, frame_of(placed.layout), registers)


def _ordered(
    placed: PlacedStep, schedule: Schedule, products: Products, results: ResultTable
) -> Entries:
    frame, device = frame_of(placed.layout), placed.layout.device
    registers = schedule.registers_of(device.result_registers)
    return order_products(products, results, frame, schedule.sv, registers)


def _stream(
    placed: PlacedStep,
    phase: Phase,
    entries: Entries,
    loads: Loads,
    results: ResultTable,
) -> CommandStream:
    reads = query_reads(placed)
    queries = Queries(reads.request, reads.start, reads.end)
    return entries.stream(placed, phase, loads=loads, results=results, queries=queries)
