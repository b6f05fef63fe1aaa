"""Streams that multiply vectors with memory: rows opened, vectors loaded, results read.

What QK, SV and partial blocks have in common (Paper 4.3 and 4.4): visits to a row,
segments of one query token in a visit, and in every segment, per query head, loads of
the Global Buffer and then units, each one value per bank: WRBIAS, MACABs, RDMAC.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from patton.commands import Frame, Op
from patton.generate.assembly import Entries, typed
from patton.generate.ragged import changes, numbers, offsets, owners
from patton.steps import Ints


@attrs.frozen(eq=False)
class Visits:
    """Rows opened: ACT entries [acts], in order of their visit."""

    visit: Ints
    channel: Ints
    channels: Ints | int
    row: Ints


@attrs.frozen(eq=False)
class BufferLoads:
    """WRGB entries of each segment, for one head: a CSR by ptr over [loads]."""

    ptr: Ints
    burst: Ints
    count: Ints
    channel: Ints
    channels: Ints | int


@attrs.frozen(eq=False)
class Units:
    """Results of each segment, for one head: a CSR by ptr over [units].

    row [units]; runs: CSR over the MACAB entries of units, and their bursts.
    """

    ptr: Ints
    channel: Ints
    channels: Ints | int
    row: Ints
    runs: Ints
    burst: Ints
    count: Ints | int


@attrs.frozen(eq=False)
class Work:
    """All that a stream does. segment_visit, pattern [segments], in order of visits.

    Every visit has a segment; pattern is what its loads carry.
    """

    visits: Visits
    segment_visit: Ints
    pattern: Ints
    loads: BufferLoads
    units: Units


def assemble(work: Work, frame: Frame, registers: int) -> Entries:
    """The entries of the work; `registers` units of a channel run between loads."""
    heads, loads, units = frame.heads_per_kv, work.loads, work.units
    load_counts, unit_counts = np.diff(loads.ptr), np.diff(units.ptr)
    length = load_counts + 2 * unit_counts + np.diff(units.runs[units.ptr])
    before = heads * offsets(length)
    acts = offsets(np.bincount(work.visits.visit))
    entries = Entries.of(int(acts[-1] + before[-1]), frame)
    _put_acts(entries, work.visits, before[changes(work.segment_visit)])
    start = acts[work.segment_visit + 1] + before[:-1]
    _put_loads(entries, work, start, length, heads)
    start += load_counts
    _put_units(entries, units, start, length, heads, registers)
    return entries


def _put_acts(entries: Entries, visits: Visits, before: Ints) -> None:
    at = np.arange(len(visits.visit)) + before[visits.visit]
    channel, channels, row = visits.channel, visits.channels, visits.row
    entries.put(Op.ACT, at, channel=channel, channels=channels, row=row)


def _put_loads(
    entries: Entries, work: Work, start: Ints, length: Ints, heads: int
) -> None:
    loads = work.loads
    counts = np.diff(loads.ptr)
    at = np.arange(loads.ptr[-1]) + (start - loads.ptr[:-1]).repeat(counts)
    step = length.repeat(counts)
    reference = (work.pattern * heads).repeat(counts)
    rectangle = typed(
        channel=loads.channel,
        channels=loads.channels,
        burst=loads.burst,
        count=loads.count,
    )
    for head in range(heads):
        entries.put(Op.WRGB, at, reference=reference + head, **rectangle)
        at += step


def _put_units(
    entries: Entries,
    units: Units,
    start: Ints,
    length: Ints,
    heads: int,
    registers: int,
) -> None:
    counts = np.diff(units.ptr)
    base = start - 2 * units.ptr[:-1] - units.runs[units.ptr[:-1]]
    base = base.repeat(counts)
    step = length.repeat(counts)
    batch = _batches(units, registers)
    bias_at = base + batch.first + batch.index + units.runs[batch.first]
    read_at = base + batch.first + batch.index + batch.size
    read_at += units.runs[batch.first + batch.size]
    run_at = _per_run(units, base + 2 * batch.first + batch.size)
    run_at += np.arange(len(units.burst))
    run_step = _per_run(units, step)
    where = typed(
        channel=units.channel, channels=units.channels, register=batch.register
    )
    rectangle = {name: _per_run(units, values) for name, values in where.items()}
    row = _per_run(units, units.row)
    rectangle |= typed(row=row, burst=units.burst, count=units.count)
    reference = batch.index * heads
    for head in range(heads):
        entries.put(Op.WRBIAS, bias_at, **where)
        entries.put(Op.MACAB, run_at, **rectangle)
        entries.put(Op.RDMAC, read_at, reference=reference + head, **where)
        bias_at += step
        run_at += run_step
        read_at += step


@attrs.frozen(eq=False)
class _Batches:
    """Per unit: its index, first unit and size of its batch, its register."""

    index: Ints
    first: Ints
    size: Ints | int
    register: Ints | int


def _batches(units: Units, registers: int) -> _Batches:
    """Units of a segment and channel in groups of as many as there are registers."""
    size = int(units.ptr[-1])
    index = np.arange(size)
    if registers == 1:
        return _Batches(index, index, 1, 0)
    segment = owners(np.diff(units.ptr))
    starts = changes(segment, units.channel)
    group = numbers(starts, size)
    register = (index - starts[group]) % registers
    first = index - register
    ends = np.append(starts, size)[1:][group]
    return _Batches(index, first, np.minimum(ends - first, registers), register)


def _per_run(units: Units, values: Any) -> Any:
    """Values of units for each of their MACAB entries."""
    one_each = len(units.burst) == len(units.runs) - 1
    if one_each or not isinstance(values, np.ndarray):
        return values
    return values.repeat(np.diff(units.runs))
