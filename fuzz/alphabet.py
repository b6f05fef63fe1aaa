"""Every operation that there is to try in a state, up to names that make no difference.

Requests that do not run are alike, and so are ids of blocks that are not bound: one of
them is tried, and counts for all. Besides what makes sense there is of every operation
what does not: the wrong request, a block that is elsewhere, a position too far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import attrs

from fuzz.world import Event, World
from patton.requests import NEVER
from patton.steps import Request, Step

NOBODY = "nobody"  # a request that never runs


@attrs.frozen
class Operation:
    """An event to try. ways: how many it stands for, with other names."""

    event: Event
    ways: int


@attrs.frozen
class Form:
    """Another form of operations. parts: they, one after the other, lead where it does.

    If one of them is refused, so is all of it.
    """

    event: Event
    parts: Sequence[Event]


@attrs.define
class Alphabet:
    """What can be tried in a world. names: of requests, 0 to names - 1."""

    world: World
    names: int

    @property
    def size(self) -> int:
        """Tokens of a block."""
        return self.world.runtime.layout.block_tokens

    def tokens(self, request: int) -> int:
        """How far a request is written."""
        table = self.world.refinement.tables.get(request)
        return table.tokens if table else 0

    def room(self, request: int) -> int:
        """Positions of its table."""
        table = self.world.refinement.tables.get(request)
        return self.size * len(table.blocks) if table else 0

    def running(self) -> list[int]:
        """Requests that run."""
        return sorted(int(r) for r in self.world.refinement.tables)

    def requests(self) -> list[tuple[int, int]]:
        """Requests that run, and one of the others, with how many it stands for."""
        running = self.running()
        others = [name for name in range(self.names) if name not in running]
        return [(name, 1) for name in running] + [
            (name, len(others)) for name in others[:1]
        ]

    def blocks(self) -> list[tuple[int, int]]:
        """Bound blocks, one of the others and one that there is not."""
        granules = self.world.runtime.placements.granule
        free = [block for block, granule in enumerate(granules) if granule < 0]
        bound = [(block, 1) for block in range(len(granules)) if block not in free]
        return [*bound, *((b, len(free)) for b in free[:1]), (len(granules), 1)]

    def pairs(self) -> list[tuple[int, int, int]]:
        """A request and a block."""
        return [
            (request, block, some * many)
            for request, some in self.requests()
            for block, many in self.blocks()
        ]

    # --- operations ---------------------------------------------------------------

    def operations(self) -> Iterator[Operation]:
        """What makes the sequences."""
        for event, ways in self.events():
            yield Operation(event, ways)
        for block, ways in self.blocks():
            yield Operation(("commit", (block,)), ways)
        for number in plans_by_effect(self.world).values():
            yield Operation(("publish", (number,)), 1)
        yield Operation(("restore", ()), 1)
        yield Operation(("step", (Step(),)), 1)
        for step, ways in (*self.writes(), *self.reads()):
            yield Operation(("step", (step,)), ways)

    def events(self) -> Iterator[tuple[Event, int]]:
        """What an engine does while it plans a step, or with it."""
        for request, block, ways in self.pairs():
            for name in ("bind", "share", "release"):
                yield (name, (request, block)), ways
        for block, ways in self.blocks():
            yield ("evict", (block,)), ways
        for request, ways in self.requests():
            yield ("finish", (request,)), ways
            for tokens in range(self.tokens(request) + 2):
                yield ("confirm", (request, tokens)), ways

    def writes(self) -> Iterator[tuple[Step, int]]:
        """One range of a request, its last tokens drafts or not; or two requests'."""
        for request, ways in self.requests():
            for start, count in self.ranges(request):
                for drafts in range(count + 1):
                    given: dict[Request, int] = {request: drafts} if drafts else {}
                    yield Step(writes=[(request, start, count)], drafts=given), ways
        running = self.running()
        for one in running:
            for two in running:
                both = [(one, self.tokens(one), 1), (two, self.tokens(two), 1)]
                yield Step(writes=both), 1

    def reads(self) -> Iterator[tuple[Step, int]]:
        """All ranges of a request, and beside them those that are too long."""
        for request, ways in self.requests():
            end = self.tokens(request) + 1
            for first, last in combinations(range(end + 1), 2):
                yield Step(reads=[(request, first, last)]), ways
                yield Step(readbacks=[(request, first, last)]), ways

    def ranges(self, request: int) -> Iterator[tuple[int, int]]:
        """All that may be written, and beside it too little, too late and too much."""
        tokens, room = self.tokens(request), self.room(request)
        for start in range(tokens + 1):
            yield from ((start, end - start) for end in range(start + 1, room + 1))
        yield from ((tokens, 0), (tokens + 1, 1), (tokens, room - tokens + 1))

    # --- other forms of them ------------------------------------------------------

    def forms(self) -> Iterator[Form]:
        """A step may bring its events with it: all of it is carried out, or none.

        A step that is refused for its write must undo its event.
        """
        for event, _ in self.events():
            with_event = brought(event)
            for write in self.appended(event):
                step = attrs.evolve(with_event, writes=write)
                after: Event = ("step", (Step(writes=write),))
                yield Form(("step", (step,)), (event, after))

    def appended(self, event: Event) -> Iterator[Sequence[tuple[Any, int, int]]]:
        """Nothing, a token of a request, or one of no request."""
        name, (first, *_) = event
        yield []
        yield [(NOBODY, 0, 1)]
        writers = {*self.running()}
        if name in {"bind", "share"}:
            writers.add(first)
        for writer in sorted(writers):
            more = self.size if (name, first) == ("share", writer) else 0
            yield [(writer, self.tokens(writer) + more, 1)]


def brought(event: Event) -> Step:
    """A step that brings an event with it."""
    name, arguments = event
    first, *rest = arguments
    parts: dict[str, dict[str, Any]] = {
        "bind": {"grants": [(first, [], rest)]},
        "share": {"grants": [(first, rest, [])]},
        "release": {"releases": [arguments]},
        "evict": {"evicts": [first]},
        "finish": {"finishes": [first]},
        "confirm": {"confirms": [arguments]},
    }
    return Step(**parts[name])


def plans_by_effect(world: World) -> dict[tuple[int, ...], int]:
    """Plans that are kept, by the granules whose commits they would publish.

    Of plans that would publish the same only one is tried; they do so for ever, as a
    copy that is made later counts for neither.
    """
    state = world.runtime.placements
    return {
        tuple(
            state.granule[commit.block]
            for commit in plan.commits
            if state.epoch[commit.block] == commit.epoch
            and state.copied.get(commit.block, NEVER) <= plan.step
        ): number
        for number, plan in world.plans.items()
    }
