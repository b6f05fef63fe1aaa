"""What an engine did in one step, and what that means physically.

`Step` is the engine's side: logical blocks and token positions. `Runtime.apply_step`
turns it into a `StepPlan`; `StepPlan.place()` takes down the placements of that step as
plain arrays, from which command streams are generated. A `PlacedStep` refers to no
runtime, so an asynchronous engine may execute it while later steps are planned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.layout import Layout

Request = int | str
Ints = NDArray[np.int64]


@attrs.define
class Step:
    """One engine step, in the order in which the runtime applies its parts (layout 4).

    finishes: requests that ended or were preempted; their references go, tail first.
    releases: (request, block) given up by a running request (sliding windows).
    evicts: cached blocks whose content goes.
    confirms: (request, tokens) verified so far, where an engine speculates.
    grants: (request, shared blocks, newly bound blocks) in the engine's order.
    writes: (request, first position, tokens) whose K and V are written.
    drafts: request -> trailing tokens of its write that are not confirmed by it.
    reads: (request, start, end), the visible range of one query token each.
    readbacks: (request, start, end), positions whose K and V return to the host.
    """

    finishes: Sequence[Request] = attrs.field(factory=list)
    releases: Sequence[tuple[Request, int]] = attrs.field(factory=list)
    evicts: Sequence[int] = attrs.field(factory=list)
    confirms: Sequence[tuple[Request, int]] = attrs.field(factory=list)
    grants: Sequence[tuple[Request, Sequence[int], Sequence[int]]] = attrs.field(
        factory=list
    )
    writes: Sequence[tuple[Request, int, int]] = attrs.field(factory=list)
    drafts: dict[Request, int] = attrs.field(factory=dict)
    reads: Sequence[tuple[Request, int, int]] = attrs.field(factory=list)
    readbacks: Sequence[tuple[Request, int, int]] = attrs.field(factory=list)

    @property
    def has_events(self) -> bool:
        """Whether more happens in it than writes and reads."""
        lifecycle = self.finishes, self.releases, self.evicts, self.grants
        return any(map(len, (*lifecycle, self.confirms)))


@attrs.frozen
class Placement:
    """Where one block is, for people and checks (Paper 4.5).

    slot: the Commit Zone slot that is the visible Value placement, None if that is the
    O1V of `granule`. written, confirmed: tokens of the block. references: requests.
    """

    block: int
    epoch: int
    granule: int
    slot: int | None
    written: int
    confirmed: int
    references: int


class Segment(NamedTuple):
    """Consecutive tokens of one block that a step writes.

    slot: Commit Zone slot, or NO_SLOT for the block's O1V; start, tokens: the range
    inside the block; position: of its first token in the request.
    """

    block: int
    epoch: int
    granule: int
    slot: int
    start: int
    tokens: int
    request: Request
    position: int


# A Segment as a bare tuple: a step writes up to thousands of them.
SegmentRow = tuple[int, int, int, int, int, int, Request, int]


class Commit(NamedTuple):
    """A full block to be copied from its slot to its O1V.

    position: of the block's token 0 in the request that wrote it.
    """

    block: int
    epoch: int
    granule: int
    slot: int
    request: Request
    position: int


@attrs.frozen(eq=False)
class Tables:
    """Block tables of the requests that read, as CSR over `PlacedStep.requests`.

    ptr [requests + 1]; per block: granule (RELEASED where the request gave the block
    up), slot (NO_SLOT: resident in its O1V) and opened, the tokens written so far.
    """

    ptr: Ints
    granule: Ints
    slot: Ints
    opened: Ints


@attrs.frozen(eq=False)
class PlacedStep:
    """Everything that stream generation needs to know of one step; arrays of int64.

    write_* [segments]: as in `Segment`; commit_* [commits]: as in `Commit`; requests
    are indices into `requests`. read_* [queries] and readback_* [ranges]: request index
    and token range [start, end).
    """

    layout: Layout
    step: int
    requests: tuple[Request, ...]
    tables: Tables
    write_granule: Ints
    write_slot: Ints
    write_start: Ints
    write_count: Ints
    write_request: Ints
    write_position: Ints
    commit_granule: Ints
    commit_slot: Ints
    commit_request: Ints
    commit_position: Ints
    read_request: Ints
    read_start: Ints
    read_end: Ints
    readback_request: Ints
    readback_start: Ints
    readback_end: Ints


def columns(rows: Sequence[tuple[int, ...]], width: int) -> Ints:
    """Rows of integers as an array of `width` columns, [width, rows]."""
    return np.array(rows, np.int64).reshape(len(rows), width).T


@attrs.define(eq=False)
class StepPlan:
    """The outcome of one applied step: what to write, commit and read, and where.

    step: its number. rows (see `segments`) and commits carry placements; the tables
    of the readers are taken down by `place`, which is called before anything else
    happens to the runtime; events is how many had happened to it.
    """

    layout: Layout
    step: int
    rows: list[SegmentRow]
    commits: list[Commit]
    reads: Sequence[tuple[Request, int, int]]
    readbacks: Sequence[tuple[Request, int, int]]
    events: int
    _take_tables: Callable[[StepPlan, tuple[Request, ...]], Tables]
    _placed: PlacedStep | None = None

    @property
    def segments(self) -> list[Segment]:
        """The writes of the step, one per block, in the engine's order."""
        return [Segment(*row) for row in self.rows]

    def place(self) -> PlacedStep:
        """The placements of this step as arrays; taken once, then kept.

        Raises StaleBindingError when a block of the plan was bound anew since, and
        StepOrderError when anything else has happened to the runtime.
        """
        if self._placed is None:
            self._placed = self._place()
        return self._placed

    def _place(self) -> PlacedStep:
        index: dict[Request, int] = {}

        def number(request: Request) -> int:
            return index.setdefault(request, len(index))

        writes = columns(
            [
                (granule, slot, start, count, number(request), position)
                for _, _, granule, slot, start, count, request, position in self.rows
            ],
            6,
        )
        commits = columns(
            [(c.granule, c.slot, number(c.request), c.position) for c in self.commits],
            4,
        )
        reads = columns([(number(r), start, end) for r, start, end in self.reads], 3)
        readbacks = columns(
            [(number(r), start, end) for r, start, end in self.readbacks], 3
        )
        requests = tuple(index)
        tables = self._take_tables(self, requests)
        arrays: list[Ints] = [*writes, *commits, *reads, *readbacks]
        return PlacedStep(self.layout, self.step, requests, tables, *arrays)
