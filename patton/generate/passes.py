"""Passes: what one filling of the Global Buffer serves, in the order of a schedule.

A pass is a query head of one query token, or of several whose operands lie side by
side in the buffer. Summands of an output keep their order: segments of a query stay in
the order given, and spans never change places.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import Frame
from patton.generate.costs import better_by_row
from patton.generate.ragged import (
    Runs,
    changes,
    distinct,
    lengths,
    merged,
    numbers,
    owners,
    ranges,
)
from patton.generate.schedule import Order
from patton.generate.vectors import Units
from patton.steps import Ints

Flags = NDArray[np.bool_]


@attrs.frozen(eq=False)
class Products:
    """What is to be multiplied, for one head.

    units: CSR over segments, each a query token in a span; unit k gives the result of
    index k. span [segments], ascending: the rows that a load may serve, and the
    requests that may share it. pattern [segments]: what loads carry. load_channel
    [segments], load_channels: where operands go.
    """

    units: Units
    span: Ints
    pattern: Ints
    load_channel: Ints
    load_channels: int


@attrs.frozen(eq=False)
class Parts:
    """Segments, cut at rows where loads serve one row each.

    of_unit [units]: the part of each unit; span, segment, cut [parts]; loads: the
    bursts of each part's operand.
    """

    of_unit: Ints
    span: Ints
    segment: Ints
    cut: Flags
    loads: Runs


def cut_products(
    products: Products, frame: Frame, order: Order, registers: int
) -> Parts:
    """The segments of products, cut at rows where the order, or cost, has it so."""
    spans = changes(products.span)
    span = numbers(spans, len(products.span))
    by_row = np.full(len(spans), order.loads == "row")
    if order.loads == "cheaper":
        by_row = better_by_row(products.units, span, frame, order, registers)
    return _cut(products.units, span, frame, by_row[span])


def _cut(units: Units, span: Ints, frame: Frame, cut: Flags) -> Parts:
    of_unit = owners(np.diff(units.ptr))
    segment = np.arange(len(span))
    if cut.any():
        visit = span[of_unit] * frame.rows_per_plane + units.row * cut[of_unit]
        key = visit * len(segment) + of_unit
        _, first, of_unit = np.unique(key, return_index=True, return_inverse=True)
        segment = key[first] % len(segment)
        span, cut = numbers(changes(visit[first]), len(first)), cut[segment]
    of_run = of_unit.repeat(np.diff(units.runs))
    loads = merged(
        *_bursts(of_run, units.burst, units.count, len(segment), frame.bursts_per_row),
        1,
        frame.bursts_per_row,
    )
    return Parts(of_unit, span, segment, cut, loads)


def _bursts(
    group: Ints, first: Ints, count: Ints | int, groups: int, width: int
) -> tuple[Ints, Ints]:
    """The distinct bursts of each group's runs."""
    counts = np.broadcast_to(np.asarray(count), first.shape)
    return distinct(group.repeat(counts), ranges(first, counts), groups, width)


def groups_of(parts: Parts, order: Order) -> Ints:
    """The group of each part: neighbours of a span that load different bursts."""
    size = len(parts.span)
    if order.requests == "apart":
        return np.arange(size)
    spans = {*changes(parts.span).tolist()}
    starts: list[int] = []
    for part, rival in enumerate(_latest_rival(parts).tolist()):
        if part in spans or rival >= starts[-1]:
            starts.append(part)
    return numbers(np.array(starts), size)


def _latest_rival(parts: Parts) -> Ints:
    """The last part before each that loads any of its bursts; negative for none."""
    loads = parts.loads
    owner, burst = loads.group.repeat(loads.count), ranges(loads.first, loads.count)
    order = np.argsort(burst, kind="stable")
    owner, burst = owner[order], burst[order]
    same = burst[1:] == burst[:-1]
    latest = np.full(len(parts.span), -1)
    np.maximum.at(latest, owner[1:][same], owner[:-1][same])
    return latest


@attrs.frozen(eq=False)
class Passes:
    """Passes in order. group [parts]; rank [groups, heads]: place of each pass.

    backward [groups, heads]: whether rows are gone through in descending order.
    """

    group: Ints
    rank: Ints
    backward: Flags


def passes_of(parts: Parts, group: Ints, heads: int, order: Order) -> Passes:
    """The passes of groups, head by head; every other one turned round if so asked."""
    starts = changes(group)
    span = parts.span[starts].repeat(heads)
    first = changes(span)
    size = lengths(first, len(span))
    spans = numbers(first, len(span))
    place = np.arange(len(span)) - first[spans]
    cut = parts.cut[starts].repeat(heads)
    backward = ~cut & (place % 2 == 1) & order.turning
    turned = cut & (spans % 2 == 1) & order.turning
    rank = first[spans] + np.where(turned, size[spans] - 1 - place, place)
    shape = len(starts), heads
    return Passes(group, rank.reshape(shape), backward.reshape(shape))
