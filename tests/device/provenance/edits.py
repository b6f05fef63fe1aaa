"""Faults to be planted in streams: how they are registered, and how streams are edited.

A plant changes a stream as a faulty generator might have made it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from patton.commands import CommandStream, Op, Phase
from patton.device.provenance import Fault
from tests.device.provenance.runs import Moment

TERMS = {
    Fault.FOREIGN,
    Fault.DOUBLED,
    Fault.MISSING,
    Fault.OPERAND,
    Fault.UNWRITTEN,
    Fault.ZERO,
}
PLACES = {Fault.PLACE, Fault.FOREIGN, Fault.DOUBLED, Fault.MISSING}
VECTORS = {Phase.QK, Phase.SV, Phase.PARTIAL}
VALUES = {Phase.SV, Phase.PARTIAL}
WRITES = {Phase.KEY_WRITE, Phase.VALUE_WRITE, Phase.COMMIT}
READS = {Phase.READ_KEY, Phase.READ_VALUE}

Change = Callable[[np.random.Generator, Moment], CommandStream | None]


@attrs.frozen
class Plant:
    """A fault: the phases it is planted in, what it is called, how it is planted."""

    phases: set[Phase]
    faults: set[Fault]
    change: Change
    protocol: bool = False


PLANTS: dict[str, Plant] = {}


def plant(
    name: str, phases: set[Phase], faults: set[Fault], *, protocol: bool = False
) -> Callable[[Change], Change]:
    """Register a fault; protocol: whether the device itself may refuse it."""

    def register(change: Change) -> Change:
        PLANTS[name] = Plant(phases, faults, change, protocol)
        return change

    return register


# --- editing streams ------------------------------------------------------------------


def edited(stream: CommandStream, at: Any, **values: Any) -> CommandStream:
    """The stream with other fields in some entries."""
    columns = {name: getattr(stream, name).copy() for name in values}
    for name, value in values.items():
        columns[name][at] = value
    return attrs.evolve(stream, **columns)


def arranged(stream: CommandStream, order: Any) -> CommandStream:
    """The stream of these entries in this order."""
    columns = {name: column[order] for name, column in stream.columns().items()}
    return attrs.evolve(stream, **columns)


def without(stream: CommandStream, entries: Any) -> CommandStream:
    return arranged(stream, np.delete(np.arange(len(stream)), entries))


def repeated(stream: CommandStream, entries: Any) -> CommandStream:
    """The stream with some entries given once more, after the last of them."""
    every = np.arange(len(stream))
    return arranged(stream, np.insert(every, max(entries) + 1, entries))


def some(rng: np.random.Generator, stream: CommandStream, op: Op, **least: int) -> Any:
    """An entry of a kind, with at least these values in its fields; None if none is."""
    fits = stream.op == op
    for name, value in least.items():
        fits = fits & (getattr(stream, name) >= value)
    entries = np.flatnonzero(fits)
    return int(rng.choice(entries)) if len(entries) else None


def unit(stream: CommandStream, result: int) -> list[int]:
    """The entries that make one result: WRBIAS, MACABs, RDMAC."""
    same = (stream.channel == stream.channel[result]) & (
        stream.register == stream.register[result]
    )
    before = np.flatnonzero(same[:result] & (stream.op[:result] == Op.WRBIAS))
    first = int(before[-1])
    mine = np.flatnonzero(same & np.isin(stream.op, (Op.WRBIAS, Op.MACAB)))
    return [*mine[(mine >= first) & (mine < result)].tolist(), result]


def visit(rng: np.random.Generator, stream: CommandStream) -> list[int]:
    """ACTs and what follows them up to the next ones."""
    acts = stream.op == Op.ACT
    first = np.flatnonzero(acts & ~np.append(False, acts[:-1]))
    which = int(rng.integers(len(first)))
    return list(range(first[which], np.append(first, len(stream))[which + 1]))


def opened_wide(stream: CommandStream) -> CommandStream:
    """The same with all banks opened, so that no wrong bank is closed."""
    acts = stream.op == Op.ACT
    return edited(stream, acts, bank=0, banks=stream.frame.banks)
