"""Streams that multiply, over tags: which operand meets which cells for which result.

The data flow is looked up for the whole stream at once (`patton.device.plan`); terms
stay bursts here, and are taken apart into lanes where they are compared.
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import CommandStream, Op
from patton.device.cells import Ints, spread
from patton.device.plan import plan_of
from patton.device.provenance.memory import TagMemory

NO_COMPONENT = -(2**40)  # of a load that its pattern does not have


@attrs.frozen(eq=False)
class Operands:
    """What the host sends with WRGBs [bursts].

    vector: query * heads_per_kv + query head; component: that of lane 0.
    """

    vector: Ints
    component: Ints


def operands_of(stream: CommandStream) -> Operands:
    """Every burst of every WRGB, in the order of a payload."""
    assert stream.loads is not None
    loads, frame = stream.loads, stream.frame
    width = frame.bursts_per_row
    patterns = len(loads.query)
    pattern_of_run = np.repeat(np.arange(patterns), np.diff(loads.ptr))
    run = spread(loads.burst, loads.count)
    first = loads.origin - loads.burst * frame.lanes
    table = np.full((patterns + 1, width), NO_COMPONENT)
    table[pattern_of_run[run.source], run.value] = (
        first[run.source] + run.value * frame.lanes
    )
    entries = np.flatnonzero(stream.op == Op.WRGB)
    burst = spread(stream.burst[entries], stream.count[entries])
    pattern, head = np.divmod(
        stream.reference[entries].astype(np.int64), frame.heads_per_kv
    )
    known = (pattern >= 0) & (pattern < patterns)
    pattern = np.where(known, pattern, patterns)
    query = np.append(loads.query, -1)[pattern]
    vector = query * frame.heads_per_kv + head
    return Operands(vector[burst.source], table[pattern[burst.source], burst.value])


@attrs.frozen(eq=False)
class Rows:
    """Results, a row per channel of every RDMAC, in stream order [rows].

    component: of bank 0; number: of the command; begin, count: its terms, which are
    bursts in the order of their accumulation.
    """

    vector: Ints
    component: Ints
    number: Ints
    begin: Ints
    count: Ints


@attrs.frozen(eq=False)
class Terms:
    """Bursts of accumulations: of all banks in memory, and of the operand [terms].

    spot: row of the stream * bursts_per_row + burst, so small that a table of all of
    them is no burden; rows: the first place of each of these rows in memory.
    """

    spot: Ints
    rows: Ints
    vector: Ints
    component: Ints


def trace(stream: CommandStream, memory: TagMemory) -> tuple[Rows, Terms]:
    """The results of a stream and what they are made of."""
    assert stream.results is not None
    table, heads = stream.results, stream.frame.heads_per_kv
    plan = plan_of(stream)
    products, returns = plan.products, plan.returns
    begin = np.zeros(plan.chains, np.int64)
    count = np.zeros(plan.chains, np.int64)
    begin[products.chain] = products.begin[:-1]
    count[products.chain] = np.diff(products.begin)
    entries = np.flatnonzero(stream.op == Op.RDMAC)
    channel = spread(np.zeros_like(entries), stream.channels[entries])
    entry = entries[channel.source]
    group, head = np.divmod(stream.reference[entry].astype(np.int64), heads)
    group += channel.value * table.group_stride
    rows = Rows(
        vector=table.query[group] * heads + head,
        component=table.origin[group] + channel.value * table.channel_stride,
        number=returns.number,
        begin=begin[returns.chain],
        count=count[returns.chain],
    )
    row = (plan.row_channel * memory.rows + plan.row_number) * memory.bursts
    operands = operands_of(stream)
    return rows, Terms(
        spot=products.row * memory.bursts + products.burst,
        rows=row,
        vector=operands.vector[products.slot],
        component=operands.component[products.slot],
    )
