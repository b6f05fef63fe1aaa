"""A stream's data flow, looked up for all of its commands at once.

Where the plain device has state, a plan has an index: which accumulation a MACAB
belongs to, which load its operand came from, which read a write repeats. It depends on
the stream alone, not on layer, head or data. The stream must have passed
`patton.device.protocol`.

Slots number every burst that a Global Buffer or a write can be given: first the
payload's, then those that RDCP copies, then those that RD returns.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import CommandStream, Op
from patton.device import rules
from patton.device.cells import (
    Flags,
    Ints,
    Spread,
    last_before,
    runs_of,
    split_points,
    spread,
    spread_over,
)
from patton.device.products import Products
from patton.device.protocol import buffer_first, is_op

WRITERS = frozenset({Op.WR, Op.WRCP})


@attrs.frozen(eq=False)
class Items:
    """Bursts of banks that single commands touch, in stream order [items].

    entry; row: index into the plan's rows; place: bank * bursts_per_row + burst;
    number: flat number of the command; within: place in the data of the entry.
    """

    entry: Ints
    row: Ints
    place: Ints
    number: Ints
    within: Ints

    def __len__(self) -> int:
        return len(self.entry)

    def edges(self, cuts: Ints) -> list[int]:
        """Where the items of each segment begin, and their number."""
        inner: list[int] = np.searchsorted(self.entry, cuts).tolist()
        return [0, *inner, len(self)]


@attrs.frozen(eq=False)
class Writes:
    """Bursts that are written, with what, in stream order [items].

    lanes: those that the slot's burst replaces; fill: whether the others become zero.
    turn: how many earlier writes of the segment go to the same burst. Writes of one
    turn touch different bursts, so that their order is free.
    """

    items: Items
    slot: Ints
    lanes: NDArray[np.uint64]
    fill: Flags
    turn: Ints


@attrs.frozen(eq=False)
class Returns:
    """Results of RDMAC: row of the results, accumulation, command number [rows]."""

    row: Ints
    chain: Ints
    number: Ints


@attrs.frozen(eq=False)
class Plan:
    """What `ReferenceDevice` does for a stream.

    row_channel, row_number: the rows that are touched, relative to head and plane.
    cuts: entries where a new segment begins. Inside a segment nothing is read that it
    has written, so that all reads may be done first and all writes last.
    """

    row_channel: Ints
    row_number: Ints
    cuts: Ints
    copies: Items
    reads: Items
    writes: Writes
    products: Products
    returns: Returns
    chains: int
    commands: int


def plan_of(stream: CommandStream) -> Plan:
    """The plan of a legal stream."""
    return _Planner(stream).plan()


class _Planner:
    """Steps of planning that share the entries' offsets and touched rows."""

    def __init__(self, stream: CommandStream) -> None:
        self.stream = stream
        self.has_commands = stream.command_counts() > 0
        self.number = stream.command_offsets()
        self.payload_first = stream.payload_offsets()
        chosen = self._entries(rules.OPEN_ROW)
        self.touch_first = np.zeros(len(stream), np.int64)
        many = stream.channels[chosen].astype(np.int64)
        self.touch_first[chosen] = np.cumsum(many) - many
        channels = self._channels(chosen)
        self.entry, self.channel = chosen[channels.source], channels.value
        rows = stream.frame.rows_per_plane
        keys = self.channel * rows + stream.row[self.entry]
        self.rows, self.row = np.unique(keys, return_inverse=True)

    def plan(self) -> Plan:
        stream = self.stream
        cuts = self._cuts()
        copies, reads = self._items(Op.RDCP), self._items(Op.RD)
        self.copy_slot = int(self.payload_first[-1])
        self.read_slot = self.copy_slot + len(copies)
        uses = self._uses()
        returns, chain_of = self._accumulations()
        macs = uses.of(stream.op[uses.entry] == Op.MACAB)
        touch = self._touch(macs.entry, macs.channel)
        products = Products.of(
            macs.first,
            macs.count,
            row=self.row[touch],
            slot_base=macs.base,
            segment=np.searchsorted(cuts, macs.entry, side="right"),
            chain=chain_of[touch],
        )
        rows_per_plane = stream.frame.rows_per_plane
        return Plan(
            row_channel=self.rows // rows_per_plane,
            row_number=self.rows % rows_per_plane,
            cuts=cuts,
            copies=copies,
            reads=reads,
            writes=self._writes(uses, cuts),
            products=products,
            returns=returns,
            chains=int(stream.channels[stream.op == Op.WRBIAS].sum(dtype=np.int64)),
            commands=int(self.number[-1]),
        )

    def _entries(self, ops: frozenset[Op]) -> Ints:
        return np.flatnonzero(is_op(self.stream, ops) & self.has_commands)

    def _channels(self, entries: Ints) -> Spread:
        return spread(self.stream.channel[entries], self.stream.channels[entries])

    def _touch(self, entry: Ints, channel: Ints) -> Ints:
        return self.touch_first[entry] + channel - self.stream.channel[entry]

    def _cuts(self) -> Ints:
        """Entries that read a row which was written since the cut before."""
        writing = is_op(self.stream, WRITERS)[self.entry]
        if writing.all() or not writing.any():
            return np.zeros(0, np.int64)
        last = last_before(self.row, writing)
        late = np.flatnonzero(~writing & (last >= 0))
        cuts = [0]
        for entry, written in zip(
            self.entry[late].tolist(), self.entry[last[late]].tolist(), strict=True
        ):
            if written >= cuts[-1]:
                cuts.append(entry)
        return np.array(cuts[1:], np.int64)

    def _items(self, op: Op) -> Items:
        """Bank bursts of all entries of a kind, by channel, then bank, then burst."""
        stream = self.stream
        touches = np.flatnonzero(stream.op[self.entry] == op)
        entry = self.entry[touches]
        size = stream.count[entry].astype(np.int64)
        size *= stream.banks[entry]  # of a copy, which has one bank, too
        cells = spread(np.zeros(len(size), np.int64), size)
        touch, inside = touches[cells.source], cells.value
        entry = self.entry[touch]
        bank, burst = np.divmod(inside, stream.count[entry])
        bank += stream.bank[entry]
        burst += stream.burst[entry]
        offset = self.channel[touch] - stream.channel[entry]
        return Items(
            entry=entry,
            row=self.row[touch],
            place=bank * stream.frame.bursts_per_row + burst,
            number=self.number[entry] + inside,
            within=offset * size[cells.source] + inside,
        )

    def _uses(self) -> _Uses:
        """What MACAB and WRCP take from the Global Buffer, by channel and interval."""
        stream = self.stream
        chosen = self._entries(rules.LOADS | rules.OPERANDS)
        first = buffer_first(stream)
        channels = self._channels(chosen)
        entry = chosen[channels.source]
        points = split_points(first[chosen], stream.count[chosen])
        cells = spread_over(points, first[entry], stream.count[entry])
        entry, channel = entry[cells.source], channels.value[cells.source]
        loading = is_op(stream, rules.LOADS)[entry]
        last = last_before(channel * len(points) + cells.value, loading)
        use = np.flatnonzero(~loading)
        load = last[use]
        interval = cells.value[use]
        begin = points[interval]
        return _Uses(
            entry=entry[use],
            channel=channel[use],
            first=begin,
            count=points[interval + 1] - begin,
            base=self._slot_base(entry[load], channel[load]),
        )

    def _slot_base(self, load: Ints, channel: Ints) -> Ints:
        """Slot of Global Buffer burst 0, if the load had begun there."""
        stream = self.stream
        copied = np.zeros(len(stream), np.int64)
        copies = self._entries(frozenset({Op.RDCP}))
        copied[copies] = stream.count[copies]
        copied[copies] *= stream.channels[copies]
        offset = (channel - stream.channel[load]) * stream.count[load]
        copy_first = (np.cumsum(copied) - copied)[load] + offset
        from_host = stream.op[load] == Op.WRGB
        first = np.where(
            from_host, self.payload_first[load], self.copy_slot + copy_first
        )
        return first - buffer_first(stream)[load]

    def _accumulations(self) -> tuple[Returns, Ints]:
        """Results by accumulation, and the accumulation of each touch of a MACAB."""
        stream = self.stream
        chosen = self._entries(rules.REGISTERS)
        channels = self._channels(chosen)
        entry, channel = chosen[channels.source], channels.value
        starting = stream.op[entry] == Op.WRBIAS
        place = channel * 2**8 + stream.register[entry]
        last = last_before(place, starting)
        chain = (np.cumsum(starting) - 1)[last]
        ended = stream.op[entry] == Op.RDMAC
        at = entry[ended]
        rows = stream.mac_offsets()[at] + channel[ended] - stream.channel[at]
        chain_of = np.zeros(len(self.entry), np.int64)
        multiplied = stream.op[entry] == Op.MACAB
        touch = self._touch(entry[multiplied], channel[multiplied])
        chain_of[touch] = chain[multiplied]
        return Returns(rows, chain[ended], self.number[at]), chain_of

    def _writes(self, uses: _Uses, cuts: Ints) -> Writes:
        """Bursts written by the host or from the Global Buffer."""
        stream = self.stream
        hosted, copied = self._items(Op.WR), self._items(Op.WRCP)
        if stream.source == "read-back":
            base = self.read_slot + stream.reference.astype(np.int64)
        else:
            base = self.payload_first
        back = uses.of(stream.op[uses.entry] == Op.WRCP)
        cells = spread(back.first, back.count)
        slots = [
            base[hosted.entry] + hosted.within,
            back.base[cells.source] + cells.value,
        ]
        items = _joined(hosted, copied)
        order = np.argsort(items.entry, kind="stable")
        items, slot = _chosen(items, order), np.concatenate(slots)[order]
        by_host = stream.op[items.entry] == Op.WR
        lanes = np.full(len(items), np.uint64(2**stream.frame.lanes - 1))
        fill = np.zeros(len(items), np.bool_)
        if stream.lanes is not None and stream.fill is not None:
            lanes[by_host] = stream.lanes[items.entry[by_host]]
            fill[by_host] = stream.fill[items.entry[by_host]]
        segment = np.searchsorted(cuts, items.entry, side="right")
        return Writes(items, slot, lanes, fill, self._turns(items, segment))

    def _turns(self, items: Items, segment: Ints) -> Ints:
        frame = self.stream.frame
        burst = segment * len(self.rows) + items.row
        burst = burst * (frame.banks * frame.bursts_per_row) + items.place
        order = np.argsort(burst, kind="stable")
        runs = runs_of(burst[order])
        turn = np.empty(len(items), np.int64)
        turn[order] = np.arange(len(items)) - np.repeat(runs[:-1], np.diff(runs))
        return turn


@attrs.frozen(eq=False)
class _Uses:
    """Uses of Global Buffer bursts [first, first + count), in stream order [uses].

    base: the slot of burst b is base + b.
    """

    entry: Ints
    channel: Ints
    first: Ints
    count: Ints
    base: Ints

    def of(self, chosen: Flags) -> _Uses:
        return _Uses(*(column[chosen] for column in _fields(self)))


def _fields(columns: Items | _Uses) -> tuple[Ints, ...]:
    return tuple(getattr(columns, field.name) for field in attrs.fields(type(columns)))


def _joined(first: Items, second: Items) -> Items:
    pairs = zip(_fields(first), _fields(second), strict=True)
    return Items(*(np.concatenate(pair) for pair in pairs))


def _chosen(items: Items, order: Ints) -> Items:
    return Items(*(column[order] for column in _fields(items)))
