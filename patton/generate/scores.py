"""QK: every query times the Keys it sees (Paper 4.3, layout 5).

The paper's order: request, Key row, query token, query head. A row is opened once per
request, in the channels that are used; the query is loaded at the bursts of the Keys
there; then channel by channel, Keys in ascending order. Other orders: `batches`.
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.addresses import key_address
from patton.commands import CommandStream, Loads, Phase, Queries, ResultTable
from patton.generate.assembly import frame_of
from patton.generate.batches import order_products
from patton.generate.passes import Products
from patton.generate.ragged import (
    changes,
    distinct,
    merged,
    numbers,
    offsets,
    ranges,
    sorting,
)
from patton.generate.schedule import PAPER, PAPER_ORDER, Order, Schedule
from patton.generate.seen import Blocks, Seen, query_reads, see, table_blocks
from patton.generate.vectors import BufferLoads, Units, Visits, Work, assemble
from patton.layout import Layout
from patton.steps import Ints, PlacedStep


def score_stream(
    placed: PlacedStep, schedule: Schedule = PAPER
) -> CommandStream | None:
    """The QK stream of a step; None if no query sees a written token.

    A unit is one group of as many tokens of a block as there are banks; groups in which
    a query sees nothing are left out for it.
    """
    layout, reads, order = placed.layout, query_reads(placed), schedule.qk
    is_paper = order == PAPER_ORDER
    blocks, token = _token_groups(layout, table_blocks(placed, reads))
    at = key_address(layout.map, 0, 0, blocks.granule, token, 0)
    places = sorting(_order_key(layout, blocks.request, at.row, at.channel, at.burst))
    blocks = blocks[places]
    channel, row, burst = at.channel[places], at.row[places], at.burst[places]
    # Elsewhere than in the paper's order a segment is a query with all of its rows.
    keys = (blocks.request, row) if is_paper else (blocks.request,)
    seen = see(reads, changes(*keys), blocks.request, blocks.position, blocks.opened)
    if not len(seen.segment):
        return None
    channel, row, burst = channel[seen.index], row[seen.index], burst[seen.index]
    results = ResultTable(
        query=seen.segment_read[seen.segment],
        origin=blocks.position[seen.index],
        channel_stride=layout.block_tokens,
        bank_stride=1,
    )
    units, frame = _units(layout, seen, channel, row, burst), frame_of(layout)
    registers = schedule.registers_of(layout.device.result_registers)
    if is_paper:
        entries = assemble(_work(layout, seen, units), frame, registers)
    else:
        products = _products(layout, seen, units, order)
        entries = order_products(products, results, frame, order, registers)
    return entries.stream(
        placed,
        Phase.QK,
        loads=_loads(layout, len(reads.request)),
        results=results,
        queries=Queries(reads.request, reads.start, reads.end),
    )


def _products(layout: Layout, seen: Seen, units: Units, order: Order) -> Products:
    """One span for all requests that may share rows, else one for each."""
    zeros = np.zeros_like(seen.segment_group)
    return Products(
        units=units,
        span=seen.segment_group if order.requests == "apart" else zeros,
        pattern=seen.segment_read,
        load_channel=zeros,
        load_channels=layout.channels_per_head,
    )


def _token_groups(layout: Layout, blocks: Blocks) -> tuple[Blocks, Ints | int]:
    """Blocks cut into groups of `banks` tokens, and the first token of each group."""
    groups, banks = layout.map.token_groups, layout.device.banks
    if groups == 1:
        return blocks, 0
    token = np.tile(np.arange(groups) * banks, len(blocks.request))
    parts = blocks[np.repeat(np.arange(len(blocks.request)), groups)]
    position, opened = parts.position + token, parts.opened - token
    return attrs.evolve(
        parts, position=position, opened=np.minimum(opened, banks)
    ), token


def _order_key(
    layout: Layout, request: Ints, row: Ints, channel: Ints, burst: Ints
) -> Ints:
    """A number that sorts by request, row, channel and burst."""
    place = channel * layout.device.bursts_per_row + burst
    span = layout.channels_per_head * layout.device.bursts_per_row
    return (request * layout.rows_per_plane + row) * span + place


def _units(layout: Layout, seen: Seen, channel: Ints, row: Ints, burst: Ints) -> Units:
    size = len(seen.segment)
    return Units(
        ptr=np.append(changes(seen.segment), size),
        channel=channel,
        channels=1,
        row=row,
        runs=np.arange(size + 1),
        burst=burst,
        count=layout.key_bursts,
    )


def _work(layout: Layout, seen: Seen, units: Units) -> Work:
    counts = np.diff(units.ptr)
    visits = changes(seen.segment_group)
    segment_visit = numbers(visits, len(counts))
    channel, channels = units.channel, layout.channels_per_head
    used = segment_visit.repeat(counts)
    pairs = distinct(used, channel, len(visits), channels)
    acts = merged(*pairs, 1, channels)
    row = units.row[units.ptr[visits]][acts.group]
    return Work(
        visits=Visits(acts.group, acts.first, acts.count, row),
        segment_visit=segment_visit,
        pattern=seen.segment_read,
        loads=_buffer_loads(layout, seen.segment, channel, units.burst, len(counts)),
        units=units,
    )


def _buffer_loads(
    layout: Layout, segment: Ints, channel: Ints, burst: Ints, segments: int
) -> BufferLoads:
    """The query at the bursts of the Keys used, in all channels that hold any of them.

    One command fills all channels, so that the union of their bursts costs no more than
    the bursts of one.
    """
    width, height = layout.device.bursts_per_row, layout.channels_per_head
    bursts = merged(
        *distinct(segment, burst, segments, width), layout.key_bursts, width
    )
    channels = merged(*distinct(segment, channel, segments, height), 1, height)
    runs = np.bincount(bursts.group)
    repeats = runs[channels.group]
    index = ranges(offsets(runs)[channels.group], repeats)
    return BufferLoads(
        ptr=offsets(np.bincount(channels.group) * runs),
        channel=channels.first.repeat(repeats),
        channels=channels.count.repeat(repeats),
        burst=bursts.first[index],
        count=bursts.count[index],
    )


def _loads(layout: Layout, queries: int) -> Loads:
    """The pattern of every query: itself at the bursts of every Key of a row."""
    keys = layout.keys_per_row * layout.map.token_groups
    ptr = np.arange(queries + 1) * keys
    return Loads(
        query=np.arange(queries),
        ptr=ptr,
        burst=np.tile(np.arange(keys) * layout.key_bursts, queries),
        count=np.full(queries * keys, layout.key_bursts),
        origin=np.zeros(queries * keys, np.int64),
    )
