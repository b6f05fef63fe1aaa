"""Units of work as commands: every channel works off its own, all side by side.

In a step each channel that has work left does one unit: it loads what the unit's vector
lacks, clears a register, opens the row if it is not open, multiplies, returns the
result. Neighbouring channels that do the same are one multicast command; whatever their
queries, their registers are cleared and read together. The rule is the same for all
systems but PATTON, which has orders of its own (`patton.generate.schedule`): rows in
order, in a row queries in order, all query heads of each in turn.
Channels that do the same rows for the same vectors stay together; one that has less to
do in a row waits for the others.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import COLUMNS, Op, ResultTable
from patton.generate.ragged import changes, lengths, numbers, offsets, ranges
from patton.steps import Ints
from patton.systems.work import Work

Flags = NDArray[np.bool_]

# Of a step, in this order; the number of each is its place.
STAGES = (Op.WRGB, Op.WRBIAS, Op.ACT, Op.MACAB, Op.RDMAC)


@attrs.frozen(eq=False)
class _Sequence:
    """All units of all query heads, by step and then channel; arrays [units * G]."""

    unit: Ints
    head: Ints
    step: Ints
    channel: Ints
    row: Ints
    opens: Flags


def lockstep(work: Work) -> tuple[dict[str, Any], ResultTable]:
    """The columns of the stream of some work, and what its results are."""
    sequence = _sequence(work)
    unit, head = sequence.unit, sequence.head
    heads = work.frame.heads_per_kv
    burst, count = work.burst[unit], work.count[unit]
    group = np.arange(len(unit))
    join = _Joiner(sequence, work.channels)
    same_bursts = join.equal(sequence.row, burst, count)
    parts = [
        _loads(work, sequence),
        join.part(Op.WRBIAS, join.beside),
        join.part(
            Op.ACT, join.equal(sequence.row), chosen=sequence.opens, row=sequence.row
        ),
        join.part(Op.MACAB, same_bursts, row=sequence.row, burst=burst, count=count),
        join.part(Op.RDMAC, join.equal(head), reference=group * heads + head),
    ]
    results = ResultTable(
        query=work.loads.query[work.pattern[unit]],
        origin=work.origin[unit],
        channel_stride=work.frame.banks if work.channels > 1 else 0,
        bank_stride=1,
        group_stride=0 if work.channels > 1 else 1,
    )
    return _together(parts, work.frame.banks), results


def _sequence(work: Work) -> _Sequence:
    heads = work.frame.heads_per_kv
    starts = changes(work.channel, work.row, work.pattern)
    sizes = lengths(starts, len(work.row)).repeat(heads)
    unit = ranges(starts.repeat(heads), sizes)
    head = np.tile(np.arange(heads), len(starts)).repeat(sizes)
    channel, row = work.channel[unit], work.row[unit]
    first = changes(channel)
    if work.alike:
        first = changes(channel, row, work.pattern[unit], head)
    step = np.arange(len(unit)) - first[numbers(first, len(unit))]
    if work.alike:
        keys = (step, head, work.pattern[unit], row)
        order = np.lexsort(keys)
        starts = changes(*(key[order] for key in keys))
        step = np.empty_like(step)
        step[order] = numbers(starts, len(step))
    opens = np.zeros(len(unit), np.bool_)
    opens[changes(channel, row)] = True
    order = np.lexsort((channel, step))
    return _Sequence(
        unit[order],
        head[order],
        step[order],
        channel[order],
        row[order],
        opens[order],
    )


@attrs.frozen(eq=False)
class _Part:
    """Entries of one kind, in the order of their steps."""

    op: Op
    step: Ints
    fields: dict[str, Any]


class _Joiner:
    """Units of neighbouring channels in a step that are one command."""

    def __init__(self, sequence: _Sequence, channels: int) -> None:
        self.sequence, self.channels = sequence, channels
        self.beside = np.zeros(len(sequence.unit), np.bool_)
        # Wider units hold several components of a result, and are read one by one.
        if channels == 1:
            self.beside[1:] = np.diff(sequence.channel) == 1
            self.beside[1:] &= np.diff(sequence.step) == 0

    def equal(self, *fields: Ints) -> Flags:
        """Whether these are the same as in the channel before."""
        same = self.beside.copy()
        for field in fields:
            same[1:] &= np.diff(field) == 0
        return same

    def part(
        self, op: Op, joins: Flags, chosen: Flags | None = None, **fields: Ints
    ) -> _Part:
        """A command for each run of (chosen) units that join."""
        size = len(joins)
        index = np.arange(size) if chosen is None else np.flatnonzero(chosen)
        follows = joins[index]
        follows[1:] &= np.diff(index) == 1
        follows[:1] = False
        first = np.flatnonzero(~follows)
        at = index[first]
        columns = {name: values[at] for name, values in fields.items()}
        columns["channel"] = self.sequence.channel[at]
        columns["channels"] = lengths(first, len(index)) * self.channels
        return _Part(op, self.sequence.step[at], columns)


def _loads(work: Work, sequence: _Sequence) -> _Part:
    """What units lack of their vectors, just before them."""
    owner, burst, count = work.missing_loads()
    runs = offsets(np.bincount(owner, minlength=len(work.row)))
    unit = sequence.unit
    counts = np.diff(runs)[unit]
    place = np.arange(len(unit)).repeat(counts)
    run = ranges(runs[unit], counts)
    step, channel = sequence.step[place], sequence.channel[place]
    heads = work.frame.heads_per_kv
    reference = work.pattern[unit[place]] * heads + sequence.head[place]
    burst, count = burst[run], count[run]
    # Channels beside each other that lack the same are next to each other so.
    order = np.lexsort((channel, burst, reference, step))
    columns = [column[order] for column in (step, channel, reference, burst, count)]
    step, channel, *others = columns
    joins = np.zeros(len(step), np.bool_)
    joins[1:] = (np.diff(step) == 0) & (np.diff(channel) == work.channels)
    for column in others:
        joins[1:] &= np.diff(column) == 0
    first = np.flatnonzero(~joins)
    reference, burst, count = (column[first] for column in others)
    return _Part(
        Op.WRGB,
        step[first],
        {
            "channel": channel[first],
            "channels": lengths(first, len(step)) * work.channels,
            "reference": reference,
            "burst": burst,
            "count": count,
        },
    )


def _together(parts: list[_Part], banks: int) -> dict[str, Any]:
    """The columns of all parts, step by step and stage by stage."""
    stage = np.concatenate(
        [part.step * len(STAGES) + STAGES.index(part.op) for part in parts]
    )
    order = np.argsort(stage, kind="stable")
    defaults = {"banks": banks, "count": 1}
    columns = {}
    for name, kind in COLUMNS.items():
        values = [
            np.broadcast_to(
                part.op
                if name == "op"
                else part.fields.get(name, defaults.get(name, 0)),
                part.step.shape,
            )
            for part in parts
        ]
        columns[name] = np.concatenate(values)[order].astype(kind)
    return columns
