"""The slow generator: streams entry by entry in plain loops, from the layout's text.

Written from sections 1, 2 and 5 of the layout, with its formulas and short names, and
from nothing in the library but its derived numbers. An entry here says what its data
mean instead of a reference, so that only the meaning of references is compared, and
not how tables number things.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from patton.commands import Op
from patton.layout import Layout
from patton.steps import PlacedStep


@attrs.frozen
class Entry:
    """meaning: of WRGB, per burst the query head and first component; of RDMAC, the
    query head and per channel and bank the component; of WR and RD, per channel, bank
    and burst the token and element of each lane that carries one; of RDCP and WRCP the
    buffer burst.
    """

    op: Op
    channel: int
    channels: int
    bank: int
    banks: int
    row: int = 0
    burst: int = 0
    count: int = 1
    register: int = 0
    meaning: Any = None
    lanes: int | None = None
    fill: bool | None = None


Place = tuple[int, int, int]


@attrs.frozen
class Shape:
    """The layout in its own short names."""

    layout: Layout

    def __getattr__(self, name: str) -> int:
        names = {
            "c": "channels_per_head",
            "dk": "key_bursts",
            "kr": "keys_per_row",
            "wk": "key_width",
            "wv": "value_width",
            "vr": "values_per_set",
            "cv": "value_channels",
            "u": "stripes",
            "rv": "rows_per_value",
            "spr": "slots_per_row",
            "nK": "key_rows",
            "nV": "value_rows",
            "T": "block_tokens",
        }
        return int(getattr(self.layout, names[name]))

    @property
    def banks(self) -> int:
        return self.layout.device.banks

    @property
    def lanes(self) -> int:
        return self.layout.device.lanes

    @property
    def query_heads(self) -> int:
        return self.layout.model.query_heads_per_kv

    @property
    def registers(self) -> int:
        return self.layout.device.result_registers

    def key(self, g: int) -> Place:
        """Channel, row and first burst of O1K g."""
        k = g // self.c
        return g % self.c, k // self.kr, k % self.kr * self.wk

    def value(self, g: int, i: int) -> Place:
        """Channel of the stripe, i-th row and first burst of O1V g."""
        v = g // self.u
        row = self.nK + v // self.vr * self.rv + i
        return g % self.u * self.cv, row, v % self.vr * self.wv

    def slot(self, index: int, i: int) -> Place:
        """Channel of the stripe, row and first burst of sub-blocks i of a slot."""
        z, stripe = divmod(index, self.u)
        row = self.nK + self.nV + z // self.spr
        return stripe * self.cv, row, (z % self.spr * self.rv + i) * self.wv

    def place(self, g: int, slot: int, i: int) -> Place:
        return self.value(g, i) if slot < 0 else self.slot(slot, i)


@attrs.frozen
class Block:
    j: int  # place in the request's table
    g: int
    slot: int
    opened: int


def blocks_of(placed: PlacedStep, request: int) -> list[Block]:
    tables = placed.tables
    start, end = tables.ptr[request], tables.ptr[request + 1]
    columns = (tables.granule, tables.slot, tables.opened)
    rows = zip(*(column[start:end].tolist() for column in columns), strict=True)
    return [Block(j, *row) for j, row in enumerate(rows) if row[0] >= 0]


def queries_of(placed: PlacedStep, request: int) -> list[int]:
    return [q for q, r in enumerate(placed.read_request.tolist()) if r == request]


def seen_tokens(placed: PlacedStep, query: int, block: Block) -> list[int]:
    """Tokens of the block that are written and that the query sees."""
    start, end = int(placed.read_start[query]), int(placed.read_end[query])
    base = block.j * placed.layout.block_tokens
    return [t for t in range(block.opened) if start <= base + t < end]


def runs(items: set[int]) -> list[tuple[int, int]]:
    """Sorted runs (first, count) of consecutive numbers."""
    found: list[tuple[int, int]] = []
    for item in sorted(items):
        if found and sum(found[-1]) == item:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append((item, 1))
    return found


# --- QK -------------------------------------------------------------------------


@attrs.frozen(order=True)
class Group:
    """`banks` tokens of an O1K; sorted by channel, granule, group."""

    channel: int
    g: int
    tg: int
    burst: int
    position: int


def qk(placed: PlacedStep) -> list[Entry]:
    shape, entries = Shape(placed.layout), list[Entry]()
    for request in range(len(placed.requests)):
        rows = _groups_by_row(placed, shape, request)
        for row in sorted(rows):
            by_query = rows[row]
            used = {group.channel for groups in by_query.values() for group in groups}
            for channel, channels in runs(used):
                entries.append(Entry(Op.ACT, channel, channels, 0, shape.banks, row))
            for query in sorted(by_query):
                for head in range(shape.query_heads):
                    groups = sorted(by_query[query])
                    entries += _key_loads(shape, groups, (query, head))
                    entries += _score_batches(shape, row, groups, (query, head))
    return entries


def _groups_by_row(
    placed: PlacedStep, shape: Shape, request: int
) -> dict[int, dict[int, list[Group]]]:
    rows: dict[int, dict[int, list[Group]]] = defaultdict(lambda: defaultdict(list))
    for query in queries_of(placed, request):
        for block in blocks_of(placed, request):
            channel, row, burst = shape.key(block.g)
            for tg in sorted(
                {t // shape.banks for t in seen_tokens(placed, query, block)}
            ):
                position = block.j * shape.T + tg * shape.banks
                first = burst + tg * shape.dk
                rows[row][query].append(Group(channel, block.g, tg, first, position))
    return rows


def _key_loads(
    shape: Shape, groups: list[Group], vector: tuple[int, int]
) -> Iterator[Entry]:
    bursts = {
        group.burst + k: k * shape.lanes for group in groups for k in range(shape.dk)
    }
    for channel, channels in runs({group.channel for group in groups}):
        for first, count in runs(set(bursts)):
            meaning = [(vector, bursts[b]) for b in range(first, first + count)]
            yield Entry(
                Op.WRGB,
                channel,
                channels,
                0,
                shape.banks,
                burst=first,
                count=count,
                meaning=meaning,
            )


def _score_batches(
    shape: Shape, row: int, groups: list[Group], vector: tuple[int, int]
) -> Iterator[Entry]:
    for channel in sorted({group.channel for group in groups}):
        mine = [group for group in groups if group.channel == channel]
        for start in range(0, len(mine), shape.registers):
            units = [
                (
                    group.burst,
                    shape.dk,
                    [[group.position + b for b in range(shape.banks)]],
                )
                for group in mine[start : start + shape.registers]
            ]
            yield from _batch(shape, channel, 1, row, units, vector)


def _batch(
    shape: Shape,
    channel: int,
    channels: int,
    row: int,
    units: Sequence[tuple[int, int, Any]],
    vector: tuple[int, int],
) -> Iterator[Entry]:
    """Units (burst, count, components), each in a register of its own."""
    where = (channel, channels, 0, shape.banks)
    for register in range(len(units)):
        yield Entry(Op.WRBIAS, *where, register=register)
    for register, (burst, count, _) in enumerate(units):
        yield Entry(Op.MACAB, *where, row, burst, count, register)
    for register, (_, _, components) in enumerate(units):
        meaning = (vector, components)
        yield Entry(Op.RDMAC, *where, register=register, meaning=meaning)


# --- SV -------------------------------------------------------------------------


def _elements(shape: Shape, i: int) -> list[list[int]]:
    """Head elements of sub-blocks i by channel and bank."""
    return [
        [((i * shape.cv) + k) * shape.banks + b for b in range(shape.banks)]
        for k in range(shape.cv)
    ]


def _weight_bursts(
    placed: PlacedStep, shape: Shape, query: int, block: Block, first: int
) -> dict[int, int]:
    """Bursts of a block, begun at `first`, with something seen, and their position."""
    return {
        first + t // shape.lanes: block.j * shape.T + t // shape.lanes * shape.lanes
        for t in seen_tokens(placed, query, block)
    }


def _weight_loads(
    shape: Shape, channel: int, bursts: dict[int, int], vector: tuple[int, int]
) -> Iterator[Entry]:
    for first, count in runs(set(bursts)):
        meaning = [(vector, bursts[b]) for b in range(first, first + count)]
        where = (channel, shape.cv, 0, shape.banks, 0)
        yield Entry(Op.WRGB, *where, first, count, meaning=meaning)


def sv(placed: PlacedStep) -> list[Entry]:
    shape, entries = Shape(placed.layout), list[Entry]()
    for request in range(len(placed.requests)):
        visits: dict[tuple[int, int], dict[int, dict[int, int]]]
        visits = defaultdict(lambda: defaultdict(dict))
        for query in queries_of(placed, request):
            for block in blocks_of(placed, request):
                channel, row, first = shape.value(block.g, 0)
                bursts = _weight_bursts(placed, shape, query, block, first)
                if block.slot < 0 and bursts:
                    visits[row, channel][query].update(bursts)
        for (row, channel), by_query in sorted(visits.items()):
            for i in range(shape.rv):
                entries += _value_row(shape, channel, row + i, i, by_query)
    return entries


def _value_row(
    shape: Shape, channel: int, row: int, i: int, by_query: dict[int, dict[int, int]]
) -> Iterator[Entry]:
    where = (channel, shape.cv, 0, shape.banks)
    yield Entry(Op.ACT, *where, row)
    vectors = [(q, head) for q in sorted(by_query) for head in range(shape.query_heads)]
    for vector in vectors:
        bursts = by_query[vector[0]]
        if i == 0 or len(vectors) > 1:
            yield from _weight_loads(shape, channel, bursts, vector)
        yield Entry(Op.WRBIAS, *where)
        for first, count in runs(set(bursts)):
            yield Entry(Op.MACAB, *where, row, first, count)
        yield Entry(Op.RDMAC, *where, meaning=(vector, _elements(shape, i)))


def partial(placed: PlacedStep) -> list[Entry]:
    shape, entries = Shape(placed.layout), list[Entry]()
    visits: dict[tuple[int, int], list[tuple[int, int, Block, int]]] = defaultdict(list)
    for request in range(len(placed.requests)):
        for query in queries_of(placed, request):
            for block in blocks_of(placed, request):
                if block.slot >= 0 and seen_tokens(placed, query, block):
                    channel, row, first = shape.slot(block.slot, 0)
                    visits[row, channel].append((request, query, block, first))
    for (row, channel), items in sorted(visits.items()):
        entries.append(Entry(Op.ACT, channel, shape.cv, 0, shape.banks, row))
        for _, query in sorted({item[:2] for item in items}):
            mine = [item[2] for item in items if item[1] == query]
            mine.sort(key=lambda block: shape.slot(block.slot, 0)[2])
            for head in range(shape.query_heads):
                entries += _slots(placed, shape, (channel, row), mine, (query, head))
    return entries


def _slots(
    placed: PlacedStep,
    shape: Shape,
    place: tuple[int, int],
    blocks: list[Block],
    vector: tuple[int, int],
) -> Iterator[Entry]:
    channel, row = place
    loaded: dict[int, int] = {}
    units = []
    for block in blocks:
        for i in range(shape.rv):
            first = shape.slot(block.slot, i)[2]
            bursts = _weight_bursts(placed, shape, vector[0], block, first)
            loaded |= bursts
            units.append((min(bursts), len(bursts), _elements(shape, i)))
    yield from _weight_loads(shape, channel, loaded, vector)
    for start in range(0, len(units), shape.registers):
        batch = units[start : start + shape.registers]
        yield from _batch(shape, channel, shape.cv, row, batch, vector)
