"""An event with the states before and after it: what situations are told from.

Not for production: the facts before are copied, which small devices make cheap.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import attrs

from fuzz.world import World
from patton.errors import PattonError
from patton.placements import Placements
from patton.requests import RequestState
from patton.steps import Request, SegmentRow, Step, StepPlan


@attrs.frozen(eq=False)
class Before:
    """What the runtime held before an event."""

    granule: array[int]
    slot: array[int]
    written: array[int]
    confirmed: list[int]
    references: list[int]
    epoch: list[int]
    binder: list[RequestState | None]
    block_at: list[int]
    owner: list[Request | None]
    due: set[int]
    copied: set[int]
    tables: dict[Request, tuple[list[int], int, int]]
    adopted: int

    @classmethod
    def of(cls, state: Placements) -> Before:
        """Copies of the facts."""
        return cls(
            granule=state.granule[:],
            slot=state.slot[:],
            written=state.written[:],
            confirmed=[*state.confirmed],
            references=[*state.references],
            epoch=[*state.epoch],
            binder=[*state.binder],
            block_at=[*state.block_at],
            owner=[*state.pool.owner],
            due={*state.due},
            copied={*state.copied},
            tables={
                r: ([*q.blocks], q.tokens, q.confirmed)
                for r, q in state.requests.items()
            },
            adopted=state.adopted,
        )


@attrs.define(eq=False)
class Past:
    """Of one world: blocks committed, by binding, and plans published, by number."""

    committed: set[tuple[int, int]] = attrs.field(factory=set)
    published: set[int] = attrs.field(factory=set)


@attrs.define(eq=False)
class Moment:
    """One event that was carried out, or refused with an error."""

    event: str
    arguments: tuple[Any, ...]
    was: Before
    world: World
    past: Past
    plan: StepPlan | None = None
    error: PattonError | None = None

    @property
    def now(self) -> Placements:
        """The state after it."""
        return self.world.runtime.placements

    @property
    def size(self) -> int:
        """Tokens of a block."""
        return self.now.layout.block_tokens

    @property
    def step(self) -> Step:
        """The engine step, without parts for other events."""
        return self.arguments[0] if self.event == "step" else Step()

    @property
    def rows(self) -> list[SegmentRow]:
        """What the step writes, block by block."""
        return self.plan.rows if self.plan else []

    @property
    def commits(self) -> list[int]:
        """Blocks that the step copies."""
        return [commit.block for commit in self.plan.commits] if self.plan else []

    def pair(self, granule: int) -> int:
        """The pair of a granule index."""
        return granule // self.now.pool.blocks_per_pair

    def place(self, granule: int) -> int:
        """Its place in the pair."""
        return granule % self.now.pool.blocks_per_pair

    def blocks_before(self, pair: int) -> list[int]:
        """The blocks that lay in a pair before."""
        size = self.now.pool.blocks_per_pair
        return [
            b for b in self.was.block_at[pair * size : pair * size + size] if b >= 0
        ]

    def bound(self) -> Iterator[int]:
        """Blocks bound by the event."""
        for block, epoch in enumerate(self.now.epoch):
            if epoch != self.was.epoch[block] and self.now.granule[block] >= 0:
                yield block

    def freed(self) -> Iterator[int]:
        """Blocks that lost their place, which may be bound anew."""
        for block, granule in enumerate(self.was.granule):
            gone = self.now.granule[block] < 0
            if granule >= 0 and (
                gone or self.now.epoch[block] != self.was.epoch[block]
            ):
                yield block

    def shares(self) -> Iterator[tuple[Request, int]]:
        """References that running requests gained to blocks of others."""
        if self.event == "share":
            yield self.arguments
        for request, shares, _ in self.step.grants:
            yield from ((request, block) for block in shares)

    def releases(self) -> Iterator[tuple[Request, int]]:
        """Blocks given up by requests that go on."""
        if self.event == "release":
            yield self.arguments
        yield from self.step.releases

    def finishes(self) -> Iterator[Request]:
        """Requests that ended."""
        if self.event == "finish":
            yield self.arguments[0]
        yield from self.step.finishes

    def evicts(self) -> Iterator[int]:
        """Blocks whose content was dropped."""
        if self.event == "evict":
            yield self.arguments[0]
        yield from self.step.evicts

    def confirms(self) -> Iterator[Request]:
        """Requests whose tokens were verified."""
        if self.event == "confirm":
            yield self.arguments[0]
        yield from (request for request, _ in self.step.confirms)


Recognise = Callable[[Moment], bool]


@attrs.define(eq=False)
class Situations:
    """Counts how often each situation occurs: the watcher of a world.

    known: situations by name, each with the events that it may occur at.
    """

    known: dict[str, tuple[frozenset[str], Recognise]]
    counts: Counter[str] = attrs.field(factory=Counter)
    _world: World | None = None
    _past: Past = attrs.field(factory=Past)
    _before: Before | None = None

    def before(self, world: World, _event: str, _arguments: tuple[Any, ...]) -> None:
        """An event is about to be tried."""
        if world is not self._world:
            self._world, self._past = world, Past()
        self._before = Before.of(world.runtime.placements)

    def after(
        self, event: str, arguments: tuple[Any, ...], plan: StepPlan | None
    ) -> None:
        """Count the situations that it was, then remember what later ones need."""
        moment = self._moment(event, arguments)
        moment.plan = plan
        self._count(event, moment)
        for block in moment.was.due - {*moment.now.due}:
            if moment.now.epoch[block] == moment.was.epoch[block]:
                self._past.committed.add((block, moment.now.epoch[block]))
        if event == "publish":
            self._past.published.add(arguments[0])

    def refused(
        self, event: str, arguments: tuple[Any, ...], error: PattonError
    ) -> None:
        """Count those that are refusals."""
        moment = self._moment(event, arguments)
        moment.error = error
        self._count("refused", moment)

    def _moment(self, event: str, arguments: tuple[Any, ...]) -> Moment:
        assert self._world is not None
        assert self._before is not None
        return Moment(event, arguments, self._before, self._world, self._past)

    def _count(self, kind: str, moment: Moment) -> None:
        for name, (events, recognise) in self.known.items():
            if kind in events and recognise(moment):
                self.counts[name] += 1


KNOWN: dict[str, tuple[frozenset[str], Recognise]] = {}


def situation(name: str, *events: str) -> Callable[[Recognise], Recognise]:
    """Register a recogniser; events: at which it is asked."""

    def register(recognise: Recognise) -> Recognise:
        KNOWN[name] = frozenset(events), recognise
        return recognise

    return register
