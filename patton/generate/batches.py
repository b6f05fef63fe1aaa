"""Products in the order that a schedule asks for: steps, batches and their entries.

In a pass every channel goes through its units row by row; a step is one unit of every
channel that takes part; a batch is as many steps as there are result registers, between
two changes of the register mode: all WRBIAS, then rows and MACABs, then all RDMAC.
Where rows are gone through backwards they hold different elements (SV) or positions
(QK), so that no sum changes its order.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import Frame, Op, ResultTable
from patton.generate.assembly import Entries
from patton.generate.passes import (
    Parts,
    Passes,
    Products,
    cut_products,
    groups_of,
    passes_of,
)
from patton.generate.ragged import (
    changes,
    lengths,
    merged,
    numbers,
    offsets,
    owners,
    ranges,
)
from patton.generate.schedule import Order
from patton.generate.vectors import Units
from patton.steps import Ints

Flags = NDArray[np.bool_]


def order_products(
    products: Products,
    results: ResultTable,
    frame: Frame,
    order: Order,
    registers: int,
) -> Entries:
    """The entries of all products and heads, `registers` steps to a batch."""
    parts = cut_products(products, frame, order, registers)
    groups = groups_of(parts, order)
    passes = passes_of(parts, groups, frame.heads_per_kv, order)
    sequence = _sequence(products, parts, passes, frame, order)
    batches = _batches(sequence, registers)
    cells = _Cells.of(batches)
    pieces = [
        _loads(products, parts, passes, cells, frame, reload=order.reload),
        *_unit_pieces(products.units, sequence, batches, results, cells),
    ]
    return cells.filled(pieces, frame)


# --- steps and batches ----------------------------------------------------------------


@attrs.frozen(eq=False)
class _Sequence:
    """All units of all heads in order, [units * heads].

    rank: of its pass; step: the number of its step;
    lane: a pass, or a channel of one where channels take turns.
    """

    heads: int
    unit: Ints
    head: Ints
    rank: Ints
    lane: Ints
    step: Ints


def _sequence(
    products: Products, parts: Parts, passes: Passes, frame: Frame, order: Order
) -> _Sequence:
    units, heads = products.units, frame.heads_per_kv
    size, width = len(units.row), frame.channels_per_head
    group = passes.group[parts.of_unit]
    nth = _nth(group, units.row, units.channel, frame)
    span = int(nth.max()) + 1
    rank, backward = passes.rank[group], passes.backward[group]
    row, channel = units.row[:, None], units.channel[:, None]
    row = np.where(backward, frame.rows_per_plane - 1 - row, row)
    lane = rank if order.channels == "together" else rank * width + channel
    step_key = (lane * frame.rows_per_plane + row) * span + nth[:, None]
    index = np.argsort((step_key * width + channel).ravel(), kind="stable")
    step_key = step_key.ravel()[index]
    return _Sequence(
        heads=heads,
        unit=index // heads,
        head=index % heads,
        rank=rank.ravel()[index],
        lane=lane.ravel()[index],
        step=numbers(changes(step_key), size * heads),
    )


def _nth(group: Ints, row: Ints, channel: Ints, frame: Frame) -> Ints:
    """How many units of the same group, row and channel come before each."""
    key = (group * frame.rows_per_plane + row) * frame.channels_per_head + channel
    order = np.argsort(key, kind="stable")
    starts = changes(key[order])
    nth = np.empty_like(key)
    nth[order] = np.arange(len(key)) - starts[numbers(starts, len(key))]
    return nth


@attrs.frozen(eq=False)
class _Batches:
    """of_step, register [steps]; first_step, rank (of its pass) [batches]."""

    of_step: Ints
    register: Ints
    first_step: Ints
    rank: Ints


def _batches(sequence: _Sequence, registers: int) -> _Batches:
    first = changes(sequence.step)
    lane, size = sequence.lane[first], len(first)
    starts = changes(lane)
    place = np.arange(size) - starts[numbers(starts, size)]
    register = place % registers
    first_step = np.flatnonzero(register == 0)
    of_step = numbers(first_step, size)
    return _Batches(of_step, register, first_step, sequence.rank[first][first_step])


# --- entries --------------------------------------------------------------------------


@attrs.frozen(eq=False)
class _Piece:
    """Entries of one kind, in order. cell [entries], ascending."""

    op: Op
    cell: Ints
    fields: dict[str, Any]


@attrs.frozen(eq=False)
class _Cells:
    """Places for entries, in the order of the stream.

    Of a batch: its loads, its WRBIAS, then ACTs and MACABs of each step, its RDMAC.
    """

    first: Ints  # [batches + 1]
    batches: _Batches

    @classmethod
    def of(cls, batches: _Batches) -> _Cells:
        ends = np.append(batches.first_step, len(batches.of_step))
        return cls(3 * np.arange(len(ends)) + 2 * ends, batches)

    def before(self, step: Ints, stage: int) -> Ints:
        """Loads (0) or WRBIAS (1) of the batch of each step."""
        return self.first[self.batches.of_step[step]] + stage

    def of_step(self, step: Ints, stage: int) -> Ints:
        """ACTs (0) or MACABs (1) of each step."""
        return 3 * self.batches.of_step[step] + 2 * step + 2 + stage

    def after(self, step: Ints) -> Ints:
        """RDMACs of the batch of each step."""
        return self.first[self.batches.of_step[step] + 1] - 1

    def filled(self, pieces: list[_Piece], frame: Frame) -> Entries:
        """All entries in their places."""
        counts = sum(np.bincount(p.cell, minlength=self.first[-1]) for p in pieces)
        entries = Entries.of(int(np.sum(counts)), frame)
        begin = offsets(np.asarray(counts))
        # Kinds never share a cell, so that each fills its cells alone.
        for piece in pieces:
            starts = changes(piece.cell)
            nth = np.arange(len(piece.cell)) - starts[numbers(starts, len(piece.cell))]
            entries.put(piece.op, begin[piece.cell] + nth, **piece.fields)
        return entries


def _loads(
    products: Products,
    parts: Parts,
    passes: Passes,
    cells: _Cells,
    frame: Frame,
    *,
    reload: bool,
) -> _Piece:
    """The operands of each pass, or only those that no earlier one left in place."""
    heads, runs = frame.heads_per_kv, parts.loads
    segment = parts.segment[runs.group]
    rank = passes.rank[passes.group[runs.group]]
    order = np.argsort(rank.ravel(), kind="stable")
    run, head, rank = order // heads, order % heads, rank.ravel()[order]
    reference = products.pattern[segment][run] * heads + head
    channel = products.load_channel[segment][run]
    counts = runs.count[run]
    owner, burst = owners(counts), ranges(runs.first[run], counts)
    place = channel[owner] * frame.bursts_per_row + burst
    kept = np.ones(len(place), np.bool_)
    if not reload:
        kept = ~_is_loaded(place, reference[owner])
    new = merged(owner[kept], burst[kept], 1, frame.bursts_per_row)
    first_batch = np.searchsorted(cells.batches.rank, rank[new.group])
    return _Piece(
        Op.WRGB,
        cells.first[first_batch],
        {
            "channel": channel[new.group],
            "channels": products.load_channels,
            "burst": new.first,
            "count": new.count,
            "reference": reference[new.group],
        },
    )


def _is_loaded(place: Ints, content: Ints) -> Flags:
    """Whether what was last loaded to the same place, earlier, is the same."""
    order = np.argsort(place, kind="stable")
    place, content = place[order], content[order]
    same = np.zeros(len(place), np.bool_)
    same[1:] = (place[1:] == place[:-1]) & (content[1:] == content[:-1])
    loaded = np.empty_like(same)
    loaded[order] = same
    return loaded


def _unit_pieces(
    units: Units,
    sequence: _Sequence,
    batches: _Batches,
    results: ResultTable,
    cells: _Cells,
) -> list[_Piece]:
    """All but the loads. Neighbouring channels that do the same are one command."""
    unit, step = sequence.unit, sequence.step
    assert isinstance(units.channels, int)
    where = _Where(units.channel[unit], units.channels, batches.register[step])
    beside = np.zeros(len(unit), np.bool_)
    beside[1:] = where.channel[1:] == where.channel[:-1] + units.channels
    beside[1:] &= step[1:] == step[:-1]
    row = units.row[unit]
    opening = _opening(where.channel, row)
    opened, opened_channels = where.joined(beside, opening)
    started, started_channels = where.joined(beside)
    read, read_channels = where.joined(beside & _continued(results, unit))
    reference = unit * sequence.heads + sequence.head
    acts = {"row": row[opened]}
    return [
        _Piece(
            Op.WRBIAS,
            cells.before(step[started], 1),
            where.fields(started, started_channels),
        ),
        _Piece(
            Op.ACT,
            cells.of_step(step[opened], 0),
            {**where.fields(opened, opened_channels), "register": 0, **acts},
        ),
        _multiplications(units, sequence, where, beside, cells),
        _Piece(
            Op.RDMAC,
            cells.after(step[read]),
            {**where.fields(read, read_channels), "reference": reference[read]},
        ),
    ]


@attrs.frozen(eq=False)
class _Where:
    """Channels and register of each unit in sequence."""

    channel: Ints
    channels: int
    register: Ints

    def joined(self, joins: Flags, chosen: Flags | None = None) -> tuple[Ints, Ints]:
        """The first of the chosen units of each command, and the command's channels.

        joins: whether a unit may be in one command with the unit before it.
        """
        if chosen is None:
            chosen = np.ones(len(joins), np.bool_)
        index = np.flatnonzero(chosen)
        starts = np.flatnonzero(~(joins[index] & chosen[index - 1]))
        return index[starts], lengths(starts, len(index)) * self.channels

    def fields(self, first: Ints, channels: Ints) -> dict[str, Any]:
        """The columns of commands that begin with these units."""
        channel, register = self.channel[first], self.register[first]
        return {"channel": channel, "channels": channels, "register": register}


def _opening(channel: Ints, row: Ints) -> Flags:
    """Whether the channel had another row open, or none."""
    order = np.argsort(channel, kind="stable")
    opening = np.zeros(len(row), np.bool_)
    opening[order[changes(channel[order], row[order])]] = True
    return opening


def _continued(results: ResultTable, unit: Ints) -> Flags:
    """Whether the result goes on from that of the unit before, a channel further."""
    query, origin = results.query[unit], results.origin[unit]
    continued = np.zeros(len(unit), np.bool_)
    continued[1:] = origin[1:] == origin[:-1] + results.channel_stride
    continued[1:] &= query[1:] == query[:-1]
    return continued


def _multiplications(
    units: Units, sequence: _Sequence, where: _Where, beside: Flags, cells: _Cells
) -> _Piece:
    unit, counts = sequence.unit, np.diff(units.runs)
    burst = units.burst
    count = np.broadcast_to(np.asarray(units.count), burst.shape)
    first_run, single = units.runs[unit], counts[unit] == 1
    same = np.zeros(len(unit), np.bool_)
    same[1:] = single[1:] & single[:-1] & beside[1:]
    same[1:] &= burst[first_run[1:]] == burst[first_run[:-1]]
    first, channels = where.joined(same)
    runs_of = counts[unit[first]]
    run, owner = ranges(first_run[first], runs_of), first.repeat(runs_of)
    return _Piece(
        Op.MACAB,
        cells.of_step(sequence.step[owner], 1),
        {
            **where.fields(owner, channels.repeat(runs_of)),
            "row": units.row[unit[owner]],
            "burst": burst[run],
            "count": count[run],
        },
    )
