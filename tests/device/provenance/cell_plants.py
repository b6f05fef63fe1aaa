"""Faults of streams that write, commit and read back."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import numpy as np

from patton.commands import CommandStream, Op, Phase, Tokens
from patton.device.provenance import Fault
from tests.device.provenance.edits import (
    PLACES,
    READS,
    WRITES,
    edited,
    opened_wide,
    plant,
    repeated,
    some,
    visit,
    without,
)
from tests.device.provenance.runs import Moment

LOST = {Fault.ZERO, Fault.MISSING}
WRONG_BURST = {Fault.FOREIGN, Fault.UNWRITTEN, Fault.ZERO}


@plant("write one burst too far", WRITES, PLACES, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    at = some(rng, moment.stream, Op.WR)
    if at is None:
        return None
    return edited(moment.stream, at, burst=moment.stream.burst[at] + 1)


@plant("write to another granule of the row", WRITES, PLACES, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream, layout = moment.stream, moment.placed.layout
    at = some(rng, stream, Op.WR)
    if at is None:
        return None
    is_key = stream.phase == Phase.KEY_WRITE
    width = layout.key_width if is_key else layout.value_width
    burst = int(stream.burst[at])
    return edited(stream, at, burst=burst - width if burst >= width else burst + width)


@plant("write to the next bank", {Phase.KEY_WRITE}, PLACES, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = opened_wide(moment.stream)
    at = some(rng, stream, Op.WR)
    return edited(stream, at, bank=stream.bank[at] + 1)


@plant("write to the next row", WRITES, PLACES, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    entries = visit(rng, moment.stream)
    row = int(moment.stream.row[entries[0]])
    if Op.RD in moment.stream.op[entries] or Op.RDCP in moment.stream.op[entries]:
        return None
    return edited(moment.stream, entries, row=row - 1 if row else row + 1)


@plant("write to another channel", WRITES, PLACES)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    width = stream.frame.channels_per_head
    mirrored = width - stream.channel - stream.channels
    if np.array_equal(mirrored, stream.channel) or stream.source != "host":
        return None
    return attrs.evolve(stream, channel=mirrored.astype(np.uint16))


def with_lanes(
    rng: np.random.Generator, moment: Moment, change: Callable[[int], int]
) -> CommandStream | None:
    """Other lanes in a write that holds elements of the head."""
    stream = moment.stream
    if stream.lanes is None or stream.element is None:
        return None
    inside = (stream.op == Op.WR) & (stream.element < stream.frame.head_dim)
    at = int(rng.choice(np.flatnonzero(inside)))
    lanes = int(stream.lanes[at])
    return edited(stream, at, lanes=change(lanes)) if change(lanes) != lanes else None


@plant("lane left out", {Phase.VALUE_WRITE, Phase.COMMIT}, LOST)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return with_lanes(rng, moment, lambda lanes: lanes & (lanes - 1))


@plant("one lane more", {Phase.VALUE_WRITE}, {Fault.FOREIGN})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    full = 2**moment.stream.frame.lanes - 1
    return with_lanes(
        rng, moment, lambda lanes: (lanes | lanes + (lanes & -lanes)) & full
    )


@plant("an earlier token written again", {Phase.VALUE_WRITE}, {Fault.PLACE})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    """The same data in the same lane, which nobody asked for."""
    stream, placed = moment.stream, moment.placed
    lane = int(placed.write_start[0]) % stream.frame.lanes
    if not placed.layout.device.write_masks or lane == 0 or stream.tokens is None:
        return None
    tokens = stream.tokens
    position = np.append(tokens.position, placed.write_position[0] - 1)
    request = np.append(tokens.request, placed.write_request[0])
    assert stream.lanes is not None
    first = (stream.op == Op.WR) & (stream.reference == -lane)
    at = int(rng.choice(np.flatnonzero(first)))
    # The token goes before all others, so that it is the lane's neighbour.
    order = np.roll(np.arange(len(position)), 1)
    moved = attrs.evolve(
        stream,
        reference=np.where(stream.op == Op.WR, stream.reference + 1, 0).astype("i4"),
        tokens=Tokens(request[order], position[order]),
    )
    return edited(moved, at, lanes=int(stream.lanes[at]) | 1 << (lane - 1))


def with_fill(
    rng: np.random.Generator, moment: Moment, fill: bool
) -> CommandStream | None:
    stream = moment.stream
    if stream.lanes is None or stream.fill is None:
        return None
    part = stream.lanes != 2**stream.frame.lanes - 1
    entries = np.flatnonzero((stream.op == Op.WR) & part & (stream.fill != fill))
    return edited(stream, rng.choice(entries), fill=fill) if len(entries) else None


@plant("earlier tokens erased", {Phase.VALUE_WRITE}, {Fault.ZERO, Fault.PLACE})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return with_fill(rng, moment, True)


@plant("stale lanes kept", {Phase.VALUE_WRITE}, {Fault.MISSING}, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    return with_fill(rng, moment, False)


@plant("next token written", WRITES, {Fault.FOREIGN})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    at = some(rng, stream, Op.WR)
    if stream.source != "host" or stream.element is None:
        return None
    if stream.element[at] >= stream.frame.head_dim:
        return None
    return edited(stream, at, reference=stream.reference[at] + 1)


@plant("next element written", WRITES, {Fault.FOREIGN, Fault.ZERO})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    at = some(rng, stream, Op.WR)
    if stream.source != "host" or stream.element is None:
        return None
    if stream.element[at] >= stream.frame.head_dim:
        return None
    return edited(stream, at, element=stream.element[at] + 1)


@plant("token of another position written", WRITES, {Fault.FOREIGN})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    tokens = moment.stream.tokens
    if tokens is None or moment.stream.source != "host":
        return None
    position = tokens.position.copy()
    position[rng.integers(len(position))] += 1 + 2 * moment.placed.layout.block_tokens
    return attrs.evolve(moment.stream, tokens=Tokens(tokens.request, position))


@plant("write left out", WRITES, {Fault.MISSING})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    op = Op.WRCP if moment.stream.source == "copy" else Op.WR
    return without(moment.stream, some(rng, moment.stream, op))


@plant("write given twice", WRITES, {Fault.DOUBLED})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    op = Op.WRCP if moment.stream.source == "copy" else Op.WR
    return repeated(moment.stream, [some(rng, moment.stream, op)])


# --- commits inside the device, or by what it returned --------------------------------


@plant("commit of a wrong slot", {Phase.COMMIT}, WRONG_BURST, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    op = Op.RDCP if stream.source == "copy" else Op.RD
    at = some(rng, stream, op)
    if at is None:
        return None
    if stream.element is not None and stream.element[at] >= stream.frame.head_dim:
        return None
    burst = int(stream.burst[at])
    return edited(stream, at, burst=burst - 1 if burst else burst + 1)


@plant("copy to the wrong part of a granule", {Phase.COMMIT}, WRONG_BURST | PLACES)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    at = some(rng, moment.stream, Op.WRCP, reference=1)
    if at is None:
        return None
    reference = moment.stream.reference[at] - 1
    return edited(moment.stream, at, reference=reference)


@plant("copy to a wrong bank", {Phase.COMMIT}, PLACES)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = opened_wide(moment.stream)
    at = some(rng, stream, Op.WRCP)
    if at is None or stream.frame.banks == 1:
        return None
    return edited(stream, at, bank=(int(stream.bank[at]) + 1) % stream.frame.banks)


@plant("stale copy in the Global Buffer", {Phase.COMMIT}, WRONG_BURST, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    at = some(rng, moment.stream, Op.RDCP)
    return None if at is None else without(moment.stream, at)


# --- read-backs -----------------------------------------------------------------------


@plant("read-back of a wrong burst", READS, WRONG_BURST, protocol=True)
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    at = some(rng, stream, Op.RD)
    assert stream.element is not None
    if stream.element[at] >= stream.frame.head_dim:
        return None
    burst = int(stream.burst[at])
    return edited(stream, at, burst=burst - 1 if burst else burst + 1)


@plant("read-back left out", READS, {Fault.MISSING})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    at = some(rng, stream, Op.RD)
    assert stream.element is not None
    padding = stream.element[at] >= stream.frame.head_dim
    return None if padding else without(stream, at)


@plant("read-back twice", READS, {Fault.DOUBLED})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    stream = moment.stream
    at = some(rng, stream, Op.RD)
    assert stream.element is not None
    padding = stream.element[at] >= stream.frame.head_dim
    return None if padding else repeated(stream, [at])


@plant("read-back in another order", READS, {Fault.TABLE})
def _(rng: np.random.Generator, moment: Moment) -> CommandStream | None:
    tokens = moment.stream.tokens
    assert tokens is not None
    if len(tokens.position) < 2:
        return None
    order = np.roll(np.arange(len(tokens.position)), 1)
    changed = Tokens(tokens.request[order], tokens.position[order])
    return attrs.evolve(moment.stream, tokens=changed)
