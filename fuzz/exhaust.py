"""All sequences of operations up to a length, on geometries as small as they can be.

States that differ only in the names of requests and blocks are one state, explored
once: the blocks are named by their granules, unbound ids are alike, and requests are
put in the order of what they hold. Each sequence leads to one of these states, so that
all of them are covered, and they are counted by the ways that lead to each state. All
checks of the world are on at every operation, also those that are refused.

Merging is sound if nothing else has a say in what happens next. `state_of` has all the
primary facts; what follows from them is compared with them at every operation, and the
order of the heap of candidates, which does not follow, is in it too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from time import process_time
from typing import Any

import attrs

from fuzz.alphabet import Alphabet, plans_by_effect
from fuzz.files import Recorded
from fuzz.processes import processes
from fuzz.world import Event, FailureError, Level, World
from patton.config import DeviceConfig, ModelConfig
from patton.layout import Layout
from patton.placements import Placements
from patton.requests import NEVER, RELEASED, RequestState
from patton.runtime import Runtime
from patton.steps import Request

State = tuple[Any, ...]

NAMES = 3  # of requests
LONGEST = 6  # operations of a sequence, by default


@attrs.frozen
class Geometry:
    """A small runtime: two pairs, blocks of two tokens, a slot in each stripe."""

    channels: int
    head_dim: int
    bursts: int
    pair_blocks: int
    options: Mapping[str, Any]

    def layout(self) -> Layout:
        """On a device with rows for two pairs."""
        device = DeviceConfig(
            "minimal", self.channels, 2, 1 << 10, 4 * self.bursts, burst_bytes=4
        )
        model = ModelConfig("minimal", 1, 1, 1, self.head_dim, 64)
        given = {"block_tokens": 2, "pair_blocks": self.pair_blocks, "slots": 1}
        shapes = Layout.of(device, model, **given)
        rows = sum(shapes.rows_for(2 * self.pair_blocks, 1))
        layout = Layout.of(attrs.evolve(device, rows=rows), model, **given)
        assert (2, 1) == (layout.pairs, layout.slots)
        return layout

    def runtime(self, layout: Layout) -> Runtime:
        """With one id more than there are places."""
        return Runtime.of(layout, blocks=layout.granules + 1, **self.options)


GEOMETRIES = {
    # Values in two rows; a Value row set for each pair; pairs are adopted.
    "two rows": Geometry(1, 4, 2, 2, {}),
    # Two stripes, so slots on either side; three places a pair, begun on each in turn.
    "two stripes": Geometry(2, 2, 1, 3, {"choice": "packed", "adoption": False}),
}


# --- states ---------------------------------------------------------------------------


def state_of(world: World) -> State:
    """All that has a say in what happens next, in names that equal states share."""
    state = world.runtime.placements
    granule = state.granule
    rows = sorted((_table(state, request), name) for name, request in _running(world))
    order: dict[Request, int] = {name: k for k, (_, name) in enumerate(rows)}
    due = [(granule[b], order.get(r, -1), at) for b, (r, at) in state.due.items()]
    owed = sorted((order[r], granule[b]) for r, b in state.owed)
    releases, heap = eviction_order(world)
    return (
        tuple(table for table, _ in rows),
        tuple(sorted(_block(state, block) for block in state.bound_blocks())),
        *(tuple(due), tuple(owed), tuple(sorted(plans_by_effect(world)))),
        *(releases, heap),
    )


def _running(world: World) -> Iterator[tuple[int, RequestState]]:
    for name, request in world.runtime.placements.requests.items():
        yield int(name), request


def _table(state: Placements, request: RequestState) -> State:
    """A request, with the granules of its blocks and those that it has bound."""
    granule = state.granule
    blocks = [b if b == RELEASED else granule[b] for b in request.blocks]
    own = sorted(granule[b] for b, q in enumerate(state.binder) if q is request)
    levels = request.tokens, request.confirmed
    return tuple(blocks), levels, tuple(request.pairs), tuple(own)


def _block(state: Placements, block: int) -> State:
    """A bound block; sealed: before this step, in it, or not at all."""
    sealed = state.sealed[block]
    return (
        *(state.granule[block], state.slot[block]),
        *(state.written[block], state.confirmed[block], block in state.copied),
        (sealed >= state.step) + (sealed == NEVER),
    )


def eviction_order(world: World) -> tuple[State, State]:
    """The order of the times of pairs; and with those of the heap, stale ones too."""
    pool = world.runtime.placements.pool
    entries = pool._heap  # noqa: SLF001 - what is out of date in it shows nowhere else
    times = [*pool.last_release, *(time for time, _ in entries)]
    pairs = tuple(pair for _, pair in entries)
    return _ranks(pool.last_release), (_ranks(times), pairs)


def _ranks(times: Sequence[int]) -> State:
    rank = {time: index for index, time in enumerate(sorted({*times}))}
    return tuple(rank[time] for time in times)


def without_heap(state: State) -> State:
    """What is left of it when all that follows from the facts is derived anew."""
    return state[:-1]


# --- what is found --------------------------------------------------------------------


@attrs.frozen
class Numbers:
    """What a search comes to, by the length of sequences; see `Found`."""

    states: list[int]
    sequences: list[int]

    def up_to(self, depth: int) -> Numbers:
        """The same of a search that ends earlier."""
        return Numbers(self.states[: depth + 1], self.sequences[:depth])


@attrs.define
class Found:
    """What a search came to.

    states: new ones, by the length of the shortest sequence that leads to them, from 0.
    sequences: of operations carried out, by length, from 1. tried: operations executed;
    refused: how many of them; kinds: of those carried out. seconds: of processor time.
    recorded: what leads to the failure, if there is one.
    """

    states: list[int] = attrs.field(factory=list)
    sequences: list[int] = attrs.field(factory=list)
    tried: int = 0
    refused: int = 0
    kinds: Counter[str] = attrs.field(factory=Counter)
    seconds: float = 0.0
    failure: FailureError | None = None
    recorded: Recorded | None = None

    def numbers(self) -> Numbers:
        """What is pinned in `KNOWN`."""
        return Numbers(self.states, self.sequences)

    def lines(self) -> Iterator[str]:
        """For people."""
        yield f"{self.states[0]:12,} state before any operation"
        rows = zip(self.states[1:], self.sequences, strict=False)
        for length, (states, sequences) in enumerate(rows, 1):
            yield f"{states:12,} new states, {sequences:18,} sequences of {length}"
        yield f"{self.tried:12,} operations tried, {self.refused:,} refused"
        yield f"{self.seconds:12.1f} s of processor time"


# Pinned, so that nothing is left out unnoticed.
KNOWN = {
    "two rows": Numbers(
        [1, 2, 11, 73, 508, 3225, 19_312],
        [17, 395, 10_904, 362_486, 15_097_937, 796_118_525],
    ),
    "two stripes": Numbers(
        [1, 2, 11, 72, 487, 3218, 20_937],
        [23, 677, 22_526, 886_220, 43_272_701, 2_709_174_329],
    ),
}


# --- the search -----------------------------------------------------------------------


@attrs.define
class Search:
    """Breadth first: every state is explored once, by one way that leads to it.

    forms: in states that fewer operations lead to, other forms of operations are tried
    too, which takes thrice as long. log: of each state, one of the shortest ways to it;
    edges: where its operations lead, and in how many ways.
    """

    geometry: Geometry
    forms: int = 0
    log: dict[State, tuple[Event, ...]] = attrs.field(factory=dict)
    edges: dict[State, Counter[State]] = attrs.field(factory=dict)
    found: Found = attrs.field(factory=Found)
    latest: World | None = None  # in which something was tried
    layout: Layout = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.layout = self.geometry.layout()

    def run(self, depth: int) -> Found:
        """All sequences of up to `depth` operations; stops at the first failure."""
        begun, found = process_time(), self.found
        first = state_of(self.world(()))
        self.log[first] = ()
        ways, frontier = Counter({first: 1}), [first]
        try:
            for _ in range(depth):
                found.states.append(len(frontier))
                frontier = [new for state in frontier for new in self.explore(state)]
                ways = self._further(ways)
                found.sequences.append(ways.total())
            found.states.append(len(frontier))
        except FailureError as failure:
            found.failure = failure
            found.recorded = Recorded.of(self.latest) if self.latest else None
        found.seconds = process_time() - begun
        return found

    def _further(self, ways: Counter[State]) -> Counter[State]:
        """The sequences one operation longer, by the state that they lead to."""
        longer: Counter[State] = Counter()
        for state, count in ways.items():
            for after, times in self.edges[state].items():
                longer[after] += count * times
        return longer

    def world(self, log: Sequence[Event], level: Level = "everything") -> World:
        """A world after events that were checked before; `level` is for those to come.

        What is watched is the same at either level, but for what costs time.
        """
        world = World.of(self.geometry.runtime(self.layout), "everything")
        world.level = "touched"
        for name, arguments in log:
            world.do(name, *arguments)
        world.level = level
        return world

    def explore(self, state: State) -> list[State]:
        """Try everything in a state; those that were not met before."""
        log, new, refused = self.log[state], list[State](), list[Event]()
        edges = self.edges[state] = Counter()
        world = self.world(log)
        for operation in [*Alphabet(world, NAMES).operations()]:
            done, after = self.attempt(world, operation.event)
            if done:
                edges[after] += operation.ways
            else:
                refused.append(operation.event)
            if after not in self.log and done:
                self.log[after] = (*log, operation.event)
                new.append(after)
            if after != state:
                world = self.world(log)
        if len(log) < self.forms:
            self.compare_forms(state, refused)
        return new

    def attempt(self, world: World, event: Event) -> tuple[bool, State]:
        """Whether an operation is carried out, and the state then. Raises FailureError.

        A step that is refused leaves the state as it was but for stale entries of the
        heap of candidates.
        """
        name, arguments = event
        self.found.tried += 1
        self.latest = world
        done = world.do(name, *arguments)
        self.found.refused += not done
        self.found.kinds[name] += done
        return done, state_of(world)

    def compare_forms(self, state: State, refused: Sequence[Event]) -> None:
        """Other forms of operations lead where those do. Raises FailureError."""
        world = self.world(self.log[state])
        for form in [*Alphabet(world, NAMES).forms()]:
            _, after = self.attempt(world, form.event)
            expected = state
            if form.parts[0] not in refused:
                expected = self._through(state, form.parts)
            if without_heap(after) != without_heap(expected):
                what = f"{form.event} leads elsewhere than {form.parts}"
                raise FailureError("LIFE-SAME", what)
            if after != state:
                world = self.world(self.log[state])

    def _through(self, state: State, parts: Sequence[Event]) -> State:
        """Where events lead one after the other; if one is refused, nowhere."""
        world = self.world(self.log[state], "touched")
        for name, arguments in parts:
            if not world.do(name, *arguments):
                return state
        return state_of(world)


def search(name: str, depth: int, forms: int = 4) -> Found:
    """All sequences on one of the geometries, by its name; forms: see `Search`."""
    return Search(GEOMETRIES[name], forms).run(depth)


def searches(depth: int, jobs: int = 1) -> Iterator[tuple[str, Found]]:
    """On each of the geometries, in processes side by side."""
    with processes(jobs) as pool:
        yield from zip(
            GEOMETRIES, pool.map(search, GEOMETRIES, repeat(depth)), strict=True
        )
