"""Streams that write, copy and read, executed over tags in the order of commands."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import CommandStream, Op
from patton.device.cells import Flags, Ints, spread
from patton.device.memory import flags_of
from patton.device.plan import Items, Writes, plan_of
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.tags import ZERO


@attrs.frozen(eq=False)
class Data:
    """What the lanes of RD or WR bursts are, by the stream's own tables [bursts, E].

    token: index into the stream's tokens; carries: whether the lane is one of them.
    """

    token: Ints
    element: Ints
    carries: Flags


def data_of(stream: CommandStream, op: Op) -> Data:
    """The data of all RDs or WRs, in the order of a result or a payload."""
    assert stream.axes is not None
    assert stream.element is not None
    assert stream.lanes is not None
    entries = np.flatnonzero(stream.op == op)
    count = stream.count[entries].astype(np.int64)
    banks = stream.banks[entries] * count
    size = spread(np.zeros_like(count), stream.channels[entries] * banks)
    of = size.source
    channel, rest = np.divmod(size.value, banks[of])
    bank, burst = np.divmod(rest, count[of])
    lane = np.arange(stream.frame.lanes)
    token, element = (
        (channel * step.channel + bank * step.bank + burst * step.burst)[:, None]
        + lane * step.lane
        for step in (stream.axes.token, stream.axes.element)
    )
    entry = entries[of]
    return Data(
        token + stream.reference[entry].astype(np.int64)[:, None],
        element + stream.element[entry].astype(np.int64)[:, None],
        flags_of(stream.lanes[entry], stream.frame.lanes),
    )


@attrs.frozen(eq=False)
class Executed:
    """What a stream has done: its writes and reads, and the cells that they touch.

    written, read: cell of each item of `writes.items` and `reads`; tags: read
    [reads, E].
    """

    writes: Writes
    written: Ints
    reads: Items
    read: Ints
    tags: Ints


def execute(
    memory: TagMemory, stream: CommandStream, payload: Ints, stop: int | None = None
) -> Executed:
    """Carry out all commands before number `stop`.

    payload: tags [bursts, E] that the host sends for the stream's WRs.
    """
    plan = plan_of(stream)
    end = plan.commands if stop is None else stop
    rows = (plan.row_channel * memory.rows + plan.row_number) * memory.bursts

    def cells(items: Items) -> Ints:
        bank, burst = np.divmod(items.place, memory.bursts)
        return (rows[items.row] + burst) * memory.banks + bank

    copies, reads, writes = plan.copies, plan.reads, plan.writes
    copied, read, written = cells(copies), cells(reads), cells(writes.items)
    hosted = len(payload)
    sources = np.zeros((hosted + len(copies) + len(reads), stream.frame.lanes), int)
    sources[:hosted] = payload
    edges = [items.edges(plan.cuts) for items in (copies, reads, writes.items)]
    for segment in range(len(plan.cuts) + 1):
        # What a segment reads it has not written before, so that all reads come first.
        some, more, now = (slice(e[segment], e[segment + 1]) for e in edges)
        sources[hosted:][some] = memory.read(copied[some])
        sources[hosted + len(copies) :][more] = memory.read(read[more])
        chosen = np.arange(now.start, now.stop)
        chosen = chosen[writes.items.number[chosen] < end]
        _write(memory, writes, written, sources, chosen)
    return Executed(writes, written, reads, read, sources[hosted + len(copies) :])


def _write(
    memory: TagMemory, writes: Writes, cells: Ints, sources: Ints, chosen: Ints
) -> None:
    """The writes of a segment, turn by turn, so that the later one stays."""
    turn = writes.turn[chosen]
    for i in range(int(turn.max(initial=-1)) + 1):
        now = chosen[turn == i]
        tags = sources[writes.slot[now]]
        lanes = flags_of(writes.lanes[now], tags.shape[1])
        if not lanes.all():
            before = memory.read(cells[now])
            before[writes.fill[now]] = ZERO
            tags = np.where(lanes, tags, before)
        memory.write(cells[now], tags)


def touched_lanes(writes: Writes, lanes: int) -> NDArray[np.uint64]:
    """Masks of the lanes that each write replaces."""
    return np.where(writes.fill, np.uint64(2**lanes - 1), writes.lanes)
