"""Faults of streams that multiply, and of what they say of themselves."""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import CommandStream, Op, Phase
from patton.device.provenance import Fault
from tests.device.provenance.edits import (
    READS,
    TERMS,
    VALUES,
    VECTORS,
    edited,
    plant,
    repeated,
    some,
    unit,
    visit,
    without,
)
from tests.device.provenance.runs import Moment


@plant("burst off by one", VECTORS, TERMS, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    at = some(rng, moment.stream, Op.MACAB)
    burst = int(moment.stream.burst[at]) + (1 if rng.random() < 0.5 else -1)
    return edited(moment.stream, at, burst=burst) if burst >= 0 else None


@plant("a burst of another block", {Phase.SV}, TERMS)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    at = some(rng, stream, Op.MACAB)
    mine = np.arange(stream.count[at]) + stream.burst[at]
    before = np.arange(len(stream)) < at
    loads = before & (stream.op == Op.WRGB) & (stream.channel == stream.channel[at])
    loaded = {
        burst
        for k in np.flatnonzero(loads)
        for burst in range(stream.burst[k], stream.burst[k] + stream.count[k])
    }
    others = sorted(loaded - set(mine.tolist()))
    if not others:
        return None
    return edited(stream, at, burst=int(rng.choice(others)), count=1)


@plant("wrong row", VECTORS, TERMS)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    entries = visit(rng, stream)
    with_row = [k for k in entries if stream.op[k] in (Op.ACT, Op.MACAB)]
    row = int(stream.row[entries[0]])
    return edited(stream, with_row, row=row - 1 if row else row + 1)


@plant("wrong channel", VECTORS, TERMS)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    width = stream.frame.channels_per_head
    mirrored = width - stream.channel - stream.channels
    return (
        None
        if np.array_equal(mirrored, stream.channel)
        else attrs.evolve(stream, channel=mirrored.astype(np.uint16))
    )


@plant(
    "Global Buffer kept from another row set", VALUES, {Fault.OPERAND}, protocol=True
)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return without(moment.stream, some(rng, moment.stream, Op.WRGB))


@plant("block dropped at the end of a run", VALUES, {Fault.MISSING})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    at = some(rng, moment.stream, Op.MACAB, count=2)
    if at is None:
        return None
    return edited(moment.stream, at, count=moment.stream.count[at] - 1)


@plant("blocks of a run dropped", {Phase.SV}, {Fault.MISSING})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return without(moment.stream, some(rng, moment.stream, Op.MACAB))


@plant("burst doubled", VECTORS, {Fault.DOUBLED})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return repeated(moment.stream, [some(rng, moment.stream, Op.MACAB)])


@plant("order swapped", VECTORS, {Fault.ORDER})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    at = some(rng, stream, Op.MACAB, count=2)
    if at is None:
        return None
    burst, count = int(stream.burst[at]), int(stream.count[at])
    twice = repeated(stream, [at])
    return edited(twice, [at, at + 1], burst=[burst + 1, burst], count=[count - 1, 1])


@plant("two results accumulated together", VECTORS, TERMS | {Fault.ORDER})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    result = some(rng, stream, Op.RDMAC)
    same = (stream.channel == stream.channel[result]) & (
        stream.register == stream.register[result]
    )
    after = np.flatnonzero(same & (stream.op == Op.WRBIAS))
    after = after[after > result]
    return without(stream, [result, int(after[0])]) if len(after) else None


@plant("result left out", VECTORS, {Fault.MISSING})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    result = some(rng, moment.stream, Op.RDMAC)
    return without(moment.stream, unit(moment.stream, result))


@plant("result given twice", VECTORS, {Fault.DOUBLED})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    result = some(rng, moment.stream, Op.RDMAC)
    return repeated(moment.stream, unit(moment.stream, result))


@plant("result of another query head", VECTORS, {Fault.OPERAND})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return another_head(rng, moment.stream, Op.RDMAC)


@plant("operand of another query head", VECTORS, {Fault.OPERAND})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return another_head(rng, moment.stream, Op.WRGB)


def another_head(
    rng: np.random.Generator, stream: CommandStream, op: Op
) -> CommandStream | None:
    heads, at = stream.frame.heads_per_kv, some(rng, stream, op)
    group, head = divmod(int(stream.reference[at]), heads)
    other = group * heads + (head + 1) % heads
    return edited(stream, at, reference=other) if heads > 1 else None


@plant(
    "results named one too high",
    VECTORS,
    {Fault.FOREIGN, Fault.MISSING, Fault.UNWRITTEN},
)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    results = moment.stream.results
    assert results is not None
    origin = results.origin.copy()
    origin[rng.integers(len(origin))] += 1
    changed = attrs.evolve(results, origin=origin)
    return attrs.evolve(moment.stream, results=changed)


@plant(
    "results of a group of banks named as the next",
    VECTORS,
    {Fault.FOREIGN, Fault.MISSING},
)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    results = moment.stream.results
    assert results is not None
    origin = results.origin.copy()
    origin[rng.integers(len(origin))] += moment.stream.frame.banks
    changed = attrs.evolve(results, origin=origin)
    return attrs.evolve(moment.stream, results=changed)


@plant("results named below zero", VALUES, {Fault.FOREIGN})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    results = moment.stream.results
    assert results is not None
    origin = results.origin.copy()
    origin[rng.integers(len(origin))] = -moment.stream.frame.banks
    changed = attrs.evolve(results, origin=origin)
    return attrs.evolve(moment.stream, results=changed)


@plant("a load that its pattern does not name", VECTORS, {Fault.OPERAND})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream, loads = moment.stream, moment.stream.loads
    assert loads is not None
    at = some(rng, stream, Op.WRGB)
    pattern = int(stream.reference[at]) // stream.frame.heads_per_kv
    runs = np.arange(*loads.ptr[pattern : pattern + 2])
    begins = runs[loads.burst[runs] <= stream.burst[at]]
    gone = begins[np.argmax(loads.burst[begins])]
    columns = {
        name: np.delete(getattr(loads, name), gone)
        for name in ("burst", "count", "origin")
    }
    ptr = loads.ptr - (np.arange(len(loads.ptr)) > pattern)
    return attrs.evolve(stream, loads=attrs.evolve(loads, ptr=ptr, **columns))


def shifted_pattern(
    rng: np.random.Generator, stream: CommandStream, step: int
) -> CommandStream | None:
    loads = stream.loads
    assert loads is not None
    origin = loads.origin.copy()
    origin[rng.integers(len(origin))] += step
    return attrs.evolve(stream, loads=attrs.evolve(loads, origin=origin))


@plant("weights of the next burst", VALUES, {Fault.OPERAND, Fault.ZERO})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return shifted_pattern(rng, moment.stream, moment.stream.frame.lanes)


@plant("weights one lane too far", VALUES, {Fault.OPERAND, Fault.ZERO})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return shifted_pattern(rng, moment.stream, -1 if rng.random() < 0.5 else 1)


# --- what a stream says of itself -----------------------------------------------------


@plant("queries in another order", VECTORS, {Fault.TABLE})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    queries = moment.stream.queries
    assert queries is not None
    return attrs.evolve(
        moment.stream, queries=attrs.evolve(queries, start=queries.start + 1)
    )


@plant("a command of another phase", VECTORS | READS, {Fault.TABLE})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return edited(moment.stream, len(moment.stream) - 1, op=Op.WRCP)


@plant("operand of no query", VECTORS, {Fault.TABLE})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return edited(moment.stream, some(rng, moment.stream, Op.WRGB), reference=10**6)


@plant("result of no query", VECTORS, {Fault.TABLE})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return edited(moment.stream, some(rng, moment.stream, Op.RDMAC), reference=-1)
