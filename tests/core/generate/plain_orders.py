"""The slow generator for any schedule: spans, passes, steps and batches in plain loops.

What is multiplied comes from the same short rules as in `plain`; the order in which it
happens is worked out here one unit at a time, with the memory of what is loaded and
open that the fast generator has to do without.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from typing import Any

import attrs

from patton.commands import Op
from patton.generate.schedule import Order
from patton.steps import PlacedStep
from tests.core.generate.plain import (
    Entry,
    Shape,
    _elements,
    _groups_by_row,
    _weight_bursts,
    blocks_of,
    queries_of,
    runs,
)


@attrs.frozen
class Unit:
    """One result per bank. stride: of components from channel to channel, to join."""

    channel: int
    channels: int
    row: int
    bursts: tuple[tuple[int, int], ...]
    components: list[list[int]]
    stride: int = 0


@attrs.frozen
class Segment:
    """A query token in a span. content: by burst of the buffer the component."""

    query: int
    channel: int
    units: list[Unit]
    content: dict[int, int]

    def at_row(self, row: int) -> Segment:
        units = [unit for unit in self.units if unit.row == row]
        needed = {
            burst
            for unit in units
            for first, count in unit.bursts
            for burst in range(first, first + count)
        }
        content = {b: c for b, c in self.content.items() if b in needed}
        return Segment(self.query, self.channel, units, content)

    @property
    def rows(self) -> set[int]:
        return {unit.row for unit in self.units}


Span = list[Segment]


# --- what there is to do --------------------------------------------------------------


def qk_spans(placed: PlacedStep, order: Order) -> list[Span]:
    shape, spans = Shape(placed.layout), []
    for request in range(len(placed.requests)):
        rows = _groups_by_row(placed, shape, request)
        span = []
        for query in queries_of(placed, request):
            units, content = [], {}
            for row in sorted(rows):
                for group in sorted(rows[row].get(query, [])):
                    positions = [group.position + b for b in range(shape.banks)]
                    place = (group.channel, 1, row, ((group.burst, shape.dk),))
                    units.append(Unit(*place, [positions], shape.T))
                    for k in range(shape.dk):
                        content[group.burst + k] = k * shape.lanes
            if units:
                span.append(Segment(query, 0, units, content))
        spans += [span] if span else []
    together = order.requests == "together"
    return [list(chain(*spans))] if together and spans else spans


def sv_spans(placed: PlacedStep, order: Order) -> list[Span]:
    shape = Shape(placed.layout)
    found: dict[Any, dict[tuple[int, int], dict[int, int]]]
    found = defaultdict(lambda: defaultdict(dict))
    for request in range(len(placed.requests)):
        for query in queries_of(placed, request):
            for block in blocks_of(placed, request):
                channel, row, first = shape.value(block.g, 0)
                bursts = _weight_bursts(placed, shape, query, block, first)
                if block.slot < 0 and bursts:
                    who = request if order.requests == "apart" else 0
                    found[who, row, channel][request, query].update(bursts)
    return [
        [
            Segment(query, channel, _row_units(shape, channel, row, content), content)
            for (_, query), content in sorted(segments.items())
        ]
        for (_, row, channel), segments in sorted(found.items())
    ]


def _row_units(
    shape: Shape, channel: int, row: int, content: dict[int, int]
) -> list[Unit]:
    bursts = tuple(runs(set(content)))
    return [
        Unit(channel, shape.cv, row + i, bursts, _elements(shape, i))
        for i in range(shape.rv)
    ]


def partial_spans(placed: PlacedStep) -> list[Span]:
    shape = Shape(placed.layout)
    found: dict[Any, dict[tuple[int, int], list[Any]]]
    found = defaultdict(lambda: defaultdict(list))
    for request in range(len(placed.requests)):
        for query in queries_of(placed, request):
            for block in blocks_of(placed, request):
                if block.slot >= 0:
                    channel, row, first = shape.slot(block.slot, 0)
                    if _weight_bursts(placed, shape, query, block, first):
                        found[row, channel][request, query].append((first, block))
    return [
        [
            _slots(placed, shape, place, query, blocks)
            for (_, query), blocks in sorted(segments.items())
        ]
        for place, segments in sorted(found.items())
    ]


def _slots(
    placed: PlacedStep, shape: Shape, place: tuple[int, int], query: int, blocks: Any
) -> Segment:
    row, channel = place
    units, content = [], dict[int, int]()
    for _, block in sorted(blocks, key=lambda item: item[0]):
        for i in range(shape.rv):
            first = shape.slot(block.slot, i)[2]
            bursts = _weight_bursts(placed, shape, query, block, first)
            run = ((min(bursts), len(bursts)),)
            units.append(Unit(channel, shape.cv, row, run, _elements(shape, i)))
            content |= bursts
    return Segment(query, channel, units, content)


# --- in which order -------------------------------------------------------------------


@attrs.frozen
class Pass:
    group: Span
    head: int
    backward: bool


def passes(spans: list[Span], shape: Shape, order: Order) -> Iterator[Pass]:
    number = 0
    for span in spans:
        by_row = order.loads == "row"
        if order.loads == "cheaper":
            by_row = cost(span, shape, order, by_row=True) < cost(
                span, shape, order, by_row=False
            )
        visits = [span]
        if by_row:
            rows = sorted(set().union(*(segment.rows for segment in span)))
            visits = [[s.at_row(row) for s in span if row in s.rows] for row in rows]
        for visit in visits:
            heads = range(shape.query_heads)
            found = [(group, h) for group in groups(visit, order) for h in heads]
            if by_row and order.turning and number % 2:
                found.reverse()
            for k, (group, head) in enumerate(found):
                yield Pass(group, head, order.turning and not by_row and k % 2 == 1)
            number += 1


def groups(visit: Span, order: Order) -> list[Span]:
    found: list[Span] = []
    for segment in visit:
        taken = (
            {burst for other in found[-1] for burst in other.content} if found else ()
        )
        if order.requests == "apart" or not found or taken & segment.content.keys():
            found.append([])
        found[-1].append(segment)
    return found


def cost(span: Span, shape: Shape, order: Order, *, by_row: bool) -> float:
    """Cycles of loads, openings and changes of mode, vectors one after another."""
    heads, costs, r = shape.query_heads, order.costs, shape.registers
    cut = [[s.at_row(row) for row in sorted(s.rows)] for s in span]
    batches = sum(-(-steps(s.units) // r) for rows in cut for s in rows)
    in_rows = sum(len(s.content) for rows in cut for s in rows)
    at_once = sum(len(s.content) for s in span)
    visits = sum(len(rows) for rows in cut)
    mean_rows = visits / len(span)
    if by_row:
        kept = 0.0
        if order.turning and not order.reload and in_rows == at_once * mean_rows:
            kept = at_once / len(span) * (mean_rows - 1)
        loads, openings = heads * in_rows - kept, mean_rows
    else:
        batches = sum(-(-sum(steps(s.units) for s in rows) // r) for rows in cut)
        loads = heads * at_once
        openings = heads * visits - (heads * len(span) - 1) * order.turning
    return (
        costs.load_burst * loads + costs.row * openings + costs.modes * heads * batches
    )


def steps(units: list[Unit]) -> int:
    """Units of the channel that has most."""
    channels = [unit.channel for unit in units]
    return max(channels.count(channel) for channel in channels)


def ordered(
    placed: PlacedStep, spans: list[Span], order: Order, width: int
) -> list[Entry]:
    """All entries. width: channels to which operands go."""
    shape = Shape(placed.layout)
    player = Player(shape, order, width)
    for one in passes(spans, shape, order):
        player.play(one)
    return player.entries


@attrs.define
class Player:
    """The device as the stream goes on: what the buffer holds, which rows are open."""

    shape: Shape
    order: Order
    width: int
    entries: list[Entry] = attrs.field(factory=list)
    loaded: dict[tuple[int, int], Any] = attrs.field(factory=dict)
    opened: dict[int, int] = attrs.field(factory=dict)

    def play(self, one: Pass) -> None:
        for segment in one.group:
            self._load(segment, (segment.query, one.head))
        work = [
            (unit, (segment.query, one.head))
            for segment in one.group
            for unit in segment.units
        ]
        lanes = [work]
        if self.order.channels == "in-turn":
            channels = sorted({unit.channel for unit, _ in work})
            lanes = [[x for x in work if x[0].channel == c] for c in channels]
        for lane in lanes:
            found = list(_steps(lane, backward=one.backward))
            for first in range(0, len(found), self.shape.registers):
                self._batch(found[first : first + self.shape.registers])

    def _load(self, segment: Segment, vector: tuple[int, int]) -> None:
        content, channel = segment.content, segment.channel
        wanted = {burst: (vector, content[burst]) for burst in content}
        for begin, size in runs(set(content)):
            new = {
                burst
                for burst in range(begin, begin + size)
                if self.order.reload
                or self.loaded.get((channel, burst)) != wanted[burst]
            }
            for first, count in runs(new):
                meaning = [wanted[b] for b in range(first, first + count)]
                self._add(Op.WRGB, channel, self.width, 0, first, count, 0, meaning)
                for burst in range(first, first + count):
                    self.loaded[channel, burst] = wanted[burst]

    def _batch(self, batch: list[list[Any]]) -> None:
        for register, step in enumerate(batch):
            for units in _joined(step):
                self._add(Op.WRBIAS, *_channels(units), register=register)
        for register, step in enumerate(batch):
            new = [x for x in step if self.opened.get(x[0].channel) != x[0].row]
            for units in _joined(new):
                self._add(Op.ACT, *_channels(units), units[0][0].row)
                self.opened |= {unit.channel: unit.row for unit, _ in units}
            for units in _joined(step, _same_bursts):
                for first, count in units[0][0].bursts:
                    row = units[0][0].row
                    self._add(Op.MACAB, *_channels(units), row, first, count, register)
        for register, step in enumerate(batch):
            for units in _joined(step, _goes_on):
                components = [x for unit, _ in units for x in unit.components]
                meaning = (units[0][1], components)
                self._add(Op.RDMAC, *_channels(units), 0, 0, 1, register, meaning)

    def _add(
        self,
        op: Op,
        channel: int,
        channels: int,
        row: int = 0,
        burst: int = 0,
        count: int = 1,
        register: int = 0,
        meaning: Any = None,
    ) -> None:
        where = (channel, channels, 0, self.shape.banks)
        self.entries.append(Entry(op, *where, row, burst, count, register, meaning))


def _steps(work: list[Any], *, backward: bool) -> Iterator[list[Any]]:
    """Row by row, the first unit of every channel, then the second, ..."""
    for row in sorted({unit.row for unit, _ in work}, reverse=backward):
        queues = defaultdict(list)
        for unit, vector in work:
            if unit.row == row:
                queues[unit.channel].append((unit, vector))
        for k in range(max(map(len, queues.values()))):
            yield [queues[c][k] for c in sorted(queues) if k < len(queues[c])]


def _joined(step: list[Any], fits: Any = None) -> list[list[Any]]:
    """Neighbouring channels in one command, where they fit."""
    found: list[list[Any]] = []
    for item in step:
        last = found[-1][-1] if found else None
        beside = last and last[0].channel + last[0].channels == item[0].channel
        if last and beside and (fits is None or fits(last, item)):
            found[-1].append(item)
        else:
            found.append([item])
    return found


def _same_bursts(a: Any, b: Any) -> bool:
    return bool(a[0].bursts == b[0].bursts and len(a[0].bursts) == 1)


def _goes_on(a: Any, b: Any) -> bool:
    (unit, vector), (following, other) = a, b
    expected = unit.components[0][0] + unit.stride
    return bool(vector == other and following.components[0][0] == expected)


def _channels(units: list[Any]) -> tuple[int, int]:
    return units[0][0].channel, sum(unit.channels for unit, _ in units)
