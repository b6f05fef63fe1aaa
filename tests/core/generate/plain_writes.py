"""The slow generator, second part: writes, commits and read-backs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from patton.commands import Op
from patton.steps import PlacedStep
from tests.core.generate.plain import Entry, Shape, blocks_of, runs


@attrs.frozen
class Segment:
    g: int
    slot: int
    start: int
    count: int
    request: int
    position: int

    def token(self, t: int) -> tuple[int, int]:
        """Request and position of token t of the block."""
        return self.request, self.position + t - self.start


def written(placed: PlacedStep) -> list[Segment]:
    columns = (
        placed.write_granule,
        placed.write_slot,
        placed.write_start,
        placed.write_count,
        placed.write_request,
        placed.write_position,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [Segment(*row) for row in rows]


def committed(placed: PlacedStep) -> list[Segment]:
    columns = (
        placed.commit_granule,
        placed.commit_slot,
        placed.commit_request,
        placed.commit_position,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    size = placed.layout.block_tokens
    return [Segment(g, slot, 0, size, r, p) for g, slot, r, p in rows]


def read_back(placed: PlacedStep) -> list[list[Segment]]:
    """Range by range the pieces of its blocks."""
    size, ranges = placed.layout.block_tokens, []
    columns = (placed.readback_request, placed.readback_start, placed.readback_end)
    for r, start, end in zip(*(column.tolist() for column in columns), strict=True):
        pieces = []
        for block in blocks_of(placed, r):
            tokens = [t for t in range(size) if start <= block.j * size + t < end]
            if tokens:
                position = block.j * size + tokens[0]
                piece = (block.g, block.slot, tokens[0], len(tokens), r, position)
                pieces.append(Segment(*piece))
        ranges.append(pieces)
    return ranges


def by_row(entries: list[Entry], banks: int) -> Iterator[Entry]:
    """Rows in ascending order, channel by channel, each opened in the banks used."""
    for row, channel in sorted({(entry.row, entry.channel) for entry in entries}):
        here = [e for e in entries if (e.row, e.channel) == (row, channel)]
        used = {b for e in here for b in range(e.bank, e.bank + e.banks)}
        for bank, count in runs(used):
            yield Entry(Op.ACT, channel, here[0].channels, bank, count, row)
        yield from here


def keys(shape: Shape, op: Op, segments: list[Segment]) -> list[Entry]:
    entries = []
    for segment in segments:
        channel, row, burst = shape.key(segment.g)
        tokens = range(segment.start, segment.start + segment.count)
        for tg in range(shape.T // shape.banks):
            mine = [t for t in tokens if t // shape.banks == tg]
            if mine:
                where = (channel, 1, mine[0] % shape.banks, len(mine), row)
                meaning = [
                    [
                        [
                            (segment.token(t), k * shape.lanes + lane)
                            for lane in range(shape.lanes)
                        ]
                        for k in range(shape.dk)
                    ]
                    for t in mine
                ]
                first = burst + tg * shape.dk
                every = (1 << shape.lanes) - 1
                fill = True if op is Op.WR else None
                data: dict[str, Any] = {"lanes": every, "fill": fill}
                entries.append(
                    Entry(op, *where, first, shape.dk, meaning=[meaning], **data)
                )
    return entries


def values(
    shape: Shape, op: Op, segments: list[Segment], *, whole: bool = False
) -> list[Entry]:
    entries = []
    for segment in segments:
        tokens = list(range(segment.start, segment.start + segment.count))
        if whole:  # bursts that were begun before are written from lane 0 again
            begun = segment.start // shape.lanes * shape.lanes
            tokens = [*range(begun, segment.start), *tokens]
        for i in range(shape.rv):
            channel, row, burst = shape.place(segment.g, segment.slot, i)
            for part in _parts(tokens, shape.lanes):
                lanes = {t % shape.lanes for t in part}
                first, last = part[0] // shape.lanes, part[-1] // shape.lanes
                fill = 0 in lanes if op is Op.WR else None
                entries.append(
                    Entry(
                        op,
                        channel,
                        shape.cv,
                        0,
                        shape.banks,
                        row,
                        burst + first,
                        last - first + 1,
                        meaning=_value_meaning(shape, segment, part, i),
                        lanes=sum(1 << lane for lane in lanes),
                        fill=fill,
                    )
                )
    return entries


def _parts(tokens: list[int], lanes: int) -> list[list[int]]:
    """A burst begun before, whole bursts together, a burst left open."""
    bursts: dict[int, list[int]] = {}
    for t in tokens:
        bursts.setdefault(t // lanes, []).append(t)
    parts: list[list[int]] = []
    was_whole = False
    for members in bursts.values():
        is_whole = len(members) == lanes
        if is_whole and was_whole:
            parts[-1] += members
        else:
            parts.append(list(members))
        was_whole = is_whole
    return parts


def _value_meaning(shape: Shape, segment: Segment, part: list[int], i: int) -> Any:
    bursts = sorted({t // shape.lanes for t in part})
    return [
        [
            [
                [
                    (segment.token(t), (i * shape.cv + k) * shape.banks + b)
                    for t in part
                    if t // shape.lanes == burst
                ]
                for burst in bursts
            ]
            for b in range(shape.banks)
        ]
        for k in range(shape.cv)
    ]


def copies(shape: Shape, segments: list[Segment], buffer: int) -> Iterator[Entry]:
    """Commits inside the device, for a Global Buffer of so many bursts."""
    width = shape.rv * shape.wv
    places = sorted(
        {(shape.slot(s.slot, 0)[1], shape.slot(s.slot, 0)[0]) for s in segments}
    )
    for row, channel in places:
        mine = [s for s in segments if shape.slot(s.slot, 0)[:2] == (channel, row)]
        mine.sort(key=lambda s: shape.slot(s.slot, 0)[2])
        many = min(shape.banks, buffer // (len(mine) * width))
        for bank in range(0, shape.banks, many):
            banks = range(bank, min(shape.banks, bank + many))
            yield Entry(Op.ACT, channel, shape.cv, bank, len(banks), row)
            at: dict[tuple[int, int], int] = {}
            for b in banks:
                for s in mine:
                    at[b, s.slot] = len(at) * width
                    burst = shape.slot(s.slot, 0)[2]
                    where = (channel, shape.cv, b, 1, row)
                    meaning = at[b, s.slot]
                    yield Entry(Op.RDCP, *where, burst, width, meaning=meaning)
            for target in sorted(
                {shape.value(s.g, i)[1] for s in mine for i in range(shape.rv)}
            ):
                yield Entry(Op.ACT, channel, shape.cv, bank, len(banks), target)
                for s in mine:
                    for i in range(shape.rv):
                        if shape.value(s.g, i)[1] == target:
                            burst = shape.value(s.g, i)[2]
                            for b in banks:
                                meaning = at[b, s.slot] + i * shape.wv
                                where = (channel, shape.cv, b, 1, target)
                                yield Entry(
                                    Op.WRCP, *where, burst, shape.wv, meaning=meaning
                                )
