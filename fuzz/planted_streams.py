"""Faults of generators, and of the order of streams.

A generator's fault is planted into the streams that it gives out: off-by-one columns,
wrong rows, loads and resets left out, blocks dropped or doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from fuzz import world
from fuzz.bugs import Wrong, bug
from patton.commands import CommandStream, Op, Phase
from patton.generate import StepStreams, passes, values

Edit = Callable[[CommandStream], CommandStream]

FIELD_OF = {
    Phase.KEY_WRITE: "key_write",
    Phase.VALUE_WRITE: "value_write",
    Phase.READ_KEY: "read_key",
    Phase.READ_VALUE: "read_value",
    Phase.QK: "qk",
    Phase.SV: "sv",
    Phase.PARTIAL: "partial",
    Phase.COMMIT: "commit",
}


def generator(name: str, clause: str, phase: Phase) -> Callable[[Edit], Edit]:
    """Register a fault of the streams of one phase."""
    field = FIELD_OF[phase]

    def register(edit: Edit) -> Edit:
        def wrong(old: Wrong) -> Wrong:
            def generate(placed: Any, **options: Any) -> StepStreams:
                streams: StepStreams = old(placed, **options)
                stream = getattr(streams, field)
                changed = stream and edit(stream)
                return attrs.evolve(streams, **{field: changed})

            return generate

        bug(name, clause, world, "generate_step", finder="streams", budget=5_000)(wrong)
        return edit

    return register


def entries(stream: CommandStream, op: Op) -> Any:
    """Indices of all entries of a kind."""
    return np.flatnonzero(stream.op == op)


def edited(stream: CommandStream, at: Any, **values: Any) -> CommandStream:
    """Other fields in some entries."""
    columns = {name: getattr(stream, name).copy() for name in values}
    for name, value in values.items():
        columns[name][at] = value
    return attrs.evolve(stream, **columns)


def arranged(stream: CommandStream, order: Any) -> CommandStream:
    """These entries in this order."""
    columns = {name: column[order] for name, column in stream.columns().items()}
    return attrs.evolve(stream, **columns)


def without(stream: CommandStream, at: Any) -> CommandStream:
    """All entries but some."""
    return arranged(stream, np.delete(np.arange(len(stream)), at))


@generator("QK reads one column too far", "CMD-SCORES", Phase.QK)
def _(stream: CommandStream) -> CommandStream:
    at = entries(stream, Op.MACAB)[-1:]
    return edited(stream, at, burst=np.maximum(stream.burst[at], 1) - 1)


@generator("QK forgets a burst of the head", "CMD-SCORES", Phase.QK)
def _(stream: CommandStream) -> CommandStream:
    return without(stream, entries(stream, Op.MACAB)[-1:])


@generator("SV drops the last block of a run", "CMD-SUMS", Phase.SV)
def _(stream: CommandStream) -> CommandStream:
    long = [k for k in entries(stream, Op.MACAB) if stream.count[k] > 1]
    return edited(stream, long[:1], count=stream.count[long[:1]] - 1)


@generator("SV adds a block twice", "CMD-SUMS", Phase.SV)
def _(stream: CommandStream) -> CommandStream:
    at = entries(stream, Op.MACAB)[:1]
    return arranged(stream, np.insert(np.arange(len(stream)), at + 1, at))


@generator("SV opens the row before", "CMD-SUMS", Phase.SV)
def _(stream: CommandStream) -> CommandStream:
    moved = (stream.op == Op.ACT) | (stream.op == Op.MACAB)
    return edited(stream, moved, row=np.maximum(stream.row[moved], 1) - 1)


@generator("PARTIAL takes the slot beside", "CMD-SUMS", Phase.PARTIAL)
def _(stream: CommandStream) -> CommandStream:
    at = entries(stream, Op.MACAB)
    return edited(stream, at, burst=np.maximum(stream.burst[at], 1) - 1)


@generator("the Global Buffer is kept across Value Row Sets", "CMD-BUFFER", Phase.SV)
def _(stream: CommandStream) -> CommandStream:
    return without(stream, entries(stream, Op.WRGB)[1:2])


@generator("a stale Global Buffer in QK", "CMD-BUFFER", Phase.QK)
def _(stream: CommandStream) -> CommandStream:
    return without(stream, entries(stream, Op.WRGB)[-1:])


@generator("an accumulator is not reset", "DEV-PROTOCOL", Phase.SV)
def _(stream: CommandStream) -> CommandStream:
    return without(stream, entries(stream, Op.WRBIAS)[-1:])


@generator("a row is not opened", "DEV-PROTOCOL", Phase.QK)
def _(stream: CommandStream) -> CommandStream:
    return without(stream, entries(stream, Op.ACT)[:1])


@generator("a result is given twice", "DEV-PROTOCOL", Phase.QK)
def _(stream: CommandStream) -> CommandStream:
    at = entries(stream, Op.RDMAC)[-1:]
    return arranged(stream, np.insert(np.arange(len(stream)), at + 1, at))


@generator("a Key goes one column too far", "CMD-WRITE", Phase.KEY_WRITE)
def _(stream: CommandStream) -> CommandStream:
    at = entries(stream, Op.WR)[:1]
    return edited(stream, at, burst=np.maximum(stream.burst[at], 1) - 1)


@generator("a Key of the next token", "CMD-WRITE", Phase.KEY_WRITE)
def _(stream: CommandStream) -> CommandStream:
    at = entries(stream, Op.WR)[:1]
    return edited(stream, at, reference=stream.reference[at] + 1)


@generator("a Value lane is left out", "CMD-WRITE", Phase.VALUE_WRITE)
def _(stream: CommandStream) -> CommandStream:
    if stream.lanes is None:
        return stream
    at = entries(stream, Op.WR)[:1]
    return edited(stream, at, lanes=stream.lanes[at] & (stream.lanes[at] - 1))


@generator("a burst of a Value is not written", "CMD-WRITE", Phase.VALUE_WRITE)
def _(stream: CommandStream) -> CommandStream:
    return without(stream, entries(stream, Op.WR)[-1:])


@generator("a first write leaves what was there", "CMD-FIRST", Phase.VALUE_WRITE)
def _(stream: CommandStream) -> CommandStream:
    if stream.fill is None:
        return stream
    return edited(stream, entries(stream, Op.WR), fill=False)


@generator("a commit to a wrong row", "CMD-COMMIT", Phase.COMMIT)
def _(stream: CommandStream) -> CommandStream:
    lowest = stream.row == stream.row.min()
    return edited(stream, lowest, row=stream.row[lowest] + 1)


@generator("a commit forgets its last burst", "CMD-COMMIT", Phase.COMMIT)
def _(stream: CommandStream) -> CommandStream:
    writes = (stream.op == Op.WR) | (stream.op == Op.WRCP)
    return without(stream, np.flatnonzero(writes)[-1:])


@generator("read-back gives the burst before", "CMD-READBACK", Phase.READ_VALUE)
def _(stream: CommandStream) -> CommandStream:
    at = entries(stream, Op.RD)
    return edited(stream, at, burst=np.maximum(stream.burst[at], 1) - 1)


@bug("commits are forgotten", "STEP-ORDER", world, "generate_step", finder="streams")
def _(old: Wrong) -> Wrong:
    return lambda placed, **options: attrs.evolve(old(placed, **options), commit=None)


@bug("reads come before writes", "STEP-ORDER", StepStreams, "present", finder="streams")
def _(old: Wrong) -> Wrong:
    return lambda streams: old(streams)[::-1]


@bug(
    "a run ends with every block",
    *("CMD-RUNS", values, "changes"),
    finder="streams",
    budget=5_000,
)
def _(_: Wrong) -> Wrong:
    """Sums come out right, but of as many accumulators as there are blocks."""
    return lambda *keys: np.arange(len(keys[0]))


@bug(
    "two requests load the same burst of the Global Buffer",
    *("CMD-BUFFER", passes, "_latest_rival"),
    finder="streams",
    budget=5_000,
)
def _(_: Wrong) -> Wrong:
    """In schedules that load the vectors of several requests side by side."""
    return lambda parts: np.full(len(parts.span), -1)
