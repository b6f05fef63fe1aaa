"""Random placed steps, without a runtime: any placement that the rules allow.

Requests share full blocks, have given up the first ones, hold several slots, have
blocks that are bound and not yet written, partial ones in slots and in O1Vs, and any
number of queries with any visible range among what is left.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from patton.layout import Layout
from patton.steps import Ints, PlacedStep, Tables

NOWHERE = -1


@attrs.define
class Block:
    granule: int
    slot: int
    opened: int


def ints(values: Any) -> Ints:
    return np.array(values, np.int64).reshape(-1)


class Memory:
    """Granules and slots not yet given away."""

    def __init__(self, rng: np.random.Generator, layout: Layout) -> None:
        self.rng, self.layout = rng, layout
        order = np.arange(layout.granules)
        if rng.random() < 0.6:
            order = rng.permutation(order)
        self.granules = order[::-1].tolist()  # taken from the end
        slots = [
            z * layout.stripes + stripe
            for stripe in range(layout.stripes)
            for z in range(layout.slots)
        ]
        self.slots = rng.permutation(np.array(slots, np.int64)).tolist()

    def slot(self, granule: int) -> int:
        """A free slot of the stripe of the granule's O1V, if there is one."""
        stripes = self.layout.stripes
        fitting = [s for s in self.slots if s % stripes == granule % stripes]
        if not fitting:
            return NOWHERE
        self.slots.remove(fitting[0])
        return int(fitting[0])

    def table(self, tokens: int, shared: list[Block]) -> list[Block]:
        """Blocks of a request that begins with the shared ones."""
        size = self.layout.block_tokens
        table = list(shared)
        while len(table) * size < tokens + int(self.rng.integers(0, 2)) * size:
            if not self.granules:
                break
            granule = int(self.granules.pop())
            opened = min(size, max(0, tokens - len(table) * size))
            slot = NOWHERE
            if self.rng.random() < (0.8 if opened < size else 0.3):
                slot = self.slot(granule)
            table.append(Block(granule, slot, opened))
        return table


@attrs.define
class Draft:
    """A step while it is being drawn; rows as in `PlacedStep`."""

    writes: list[tuple[int, ...]] = attrs.field(factory=list)
    commits: list[tuple[int, ...]] = attrs.field(factory=list)
    reads: list[tuple[int, ...]] = attrs.field(factory=list)
    readbacks: list[tuple[int, ...]] = attrs.field(factory=list)
    tables: list[list[Block]] = attrs.field(factory=list)


def random_step(rng: np.random.Generator, layout: Layout) -> PlacedStep:
    """A step of up to five requests on this layout."""
    memory, draft = Memory(rng, layout), Draft()
    size = layout.block_tokens
    writing, reading = rng.choice([0, 0.7, 1], 2, p=[0.1, 0.4, 0.5])
    for request in range(int(rng.integers(1, 6))):
        shared: list[Block] = []
        if draft.tables and rng.random() < 0.3:
            other = draft.tables[int(rng.integers(len(draft.tables)))]
            full = [b.granule != NOWHERE and b.opened == size for b in other]
            count = full.index(False) if False in full else len(full)
            shared = other[: int(rng.integers(0, count + 1))]
        tokens = len(shared) * size + int(rng.integers(1, 4 * size))
        table = memory.table(tokens, shared)
        tokens = sum(block.opened for block in table)
        first = len(shared)
        if tokens > first * size and rng.random() < writing:
            _write(rng, draft, table, request, (first * size, tokens), size)
        released = int(rng.integers(0, len(table) + 1)) if rng.random() < 0.3 else 0
        # What a table says beside a granule that is gone means nothing.
        gone = Block(NOWHERE, int(rng.choice([NOWHERE, 0])), int(rng.choice([0, size])))
        draft.tables.append([gone] * released + table[released:])
        if rng.random() < reading:
            _read(rng, draft, request, released * size, tokens)
    return _placed(rng, layout, draft)


def _write(
    rng: np.random.Generator,
    draft: Draft,
    table: list[Block],
    request: int,
    positions: tuple[int, int],
    size: int,
) -> None:
    start = int(rng.integers(positions[0], positions[1]))
    for place in range(start // size, -(-positions[1] // size)):
        low, block = max(start - place * size, 0), table[place]
        count, position = block.opened - low, place * size
        row = (block.granule, block.slot, low, count, request, position + low)
        draft.writes.append(row)
        if block.opened == size and block.slot != NOWHERE:
            draft.commits.append((block.granule, block.slot, request, position))


def _read(
    rng: np.random.Generator, draft: Draft, request: int, first: int, tokens: int
) -> None:
    for ranges in (draft.reads, draft.reads, draft.reads, draft.readbacks):
        if tokens > first and rng.random() < 0.6:
            start = int(rng.integers(first, tokens))
            start = first if rng.random() < 0.5 else start
            end = int(rng.integers(start + 1, tokens + 1))
            end = tokens if rng.random() < 0.5 else end
            ranges.append((request, start, end))


def _placed(rng: np.random.Generator, layout: Layout, draft: Draft) -> PlacedStep:
    reads = [draft.reads[k] for k in rng.permutation(len(draft.reads))]
    columns = [
        np.array(rows, np.int64).reshape(len(rows), width).T.copy()
        for rows, width in (
            (draft.writes, 6),
            (draft.commits, 4),
            (reads, 3),
            (draft.readbacks, 3),
        )
    ]
    blocks = [block for table in draft.tables for block in table]
    tables = Tables(
        ints(np.cumsum([0, *(len(table) for table in draft.tables)])),
        ints([block.granule for block in blocks]),
        ints([block.slot for block in blocks]),
        ints([block.opened for block in blocks]),
    )
    arrays: Any = [column for group in columns for column in group]
    requests = tuple(f"request {k}" for k in range(len(draft.tables)))
    return PlacedStep(layout, 9, requests, tables, *arrays)
