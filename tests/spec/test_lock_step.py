"""An allocator that places Keys and Values each by itself is refused (MAP-INDEX).

The paper makes O2K and O2V equal in size so that neither cache can trigger eviction by
itself (Paper 4.2). That does not follow, as two traces show in which a pair is free for
Keys and none for Values. The second keeps every rule within each of the two caches, so
only the one granule index for both rules it out.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from spec.invariants import invariants
from spec.logic import Finite
from spec.machine import after, move_of
from spec.state import State, empty
from tests.spec.walk import false, flat

TOKENS = 4


def logic() -> Finite:
    """Two pairs of two places, for two requests."""
    universe: dict[str, Any] = {"b": range(6), "i": range(2), "p": range(2)}
    return Finite(tokens=TOKENS, aligned=lambda *_: True, universe=universe)


@attrs.define
class Cache:
    """The machine for one of the two caches."""

    lg: Finite = attrs.field(factory=logic)
    s: State = attrs.field(factory=empty)

    def take(self, name: str, *arguments: Any) -> set[str]:
        """Take a transition; the clauses that refuse it."""
        move = move_of(self.lg, self.s, name, *arguments)
        refused = {clause for clause, allowed in move.guard.items() if not allowed}
        if not refused:
            self.s = flat(after(self.s, move))
        return refused

    def bind(self, r: int, b: int, p: int, i: int) -> set[str]:
        """Bind a block there, in the way that the pair's owner asks for."""
        return self.take("bind_own" if self.s.owns(r, p) else "bind_fresh", r, b, p, i)

    def fill(self, r: int, b: int) -> None:
        """One step writes the whole block."""
        for name, *arguments in (
            *(("begin_writes",), ("write_whole", r, b)),
            *(("begin_reads",), ("end_step",)),
        ):
            assert set() == self.take(name, *arguments)

    def evict(self, r: int, b: int) -> None:
        """The request gives up a full block, which is then evicted."""
        assert set() == self.take("cache", r, b) | self.take("evict", b)

    def has_room(self, r: int) -> bool:
        """A new block of the request would find a place."""
        return any(
            all(move_of(self.lg, self.s, way, r, 5, p, i).guard.values())
            for way in ("bind_own", "bind_fresh")
            for p in range(2)
            for i in range(2)
        )


Place = tuple[int, int]


def run(events: list[Any], cache: Cache, column: int) -> set[str]:
    """Play a trace on one cache; the clauses that refuse it, if any do."""
    for event in events:
        if isinstance(event, int):
            cache.evict(0, event)
            continue
        block, places = event
        refused = cache.bind(0, block, *places[column])
        if refused:
            return refused
        cache.fill(0, block)
    return set()


# Block with its place for Keys and for Values, or a block that is given up and evicted.
NEEDLESS: list[Any] = [(0, ((0, 0), (0, 0))), (1, ((0, 1), (1, 0)))]
HOLES: list[Any] = [
    *((0, ((0, 0), (0, 0))), (1, ((0, 1), (0, 1)))),
    *((2, ((1, 0), (1, 0))), (3, ((1, 1), (1, 1)))),
    *(0, 2),
    (4, ((0, 0), (1, 0))),  # each cache reuses a hole, not the same one
    1,
]


def test_a_needless_second_pair_is_refused_in_the_cache_that_takes_it() -> None:
    keys, values = Cache(), Cache()
    keys.take("start", 0)
    values.take("start", 0)

    assert set() == run(NEEDLESS, keys, 0)
    assert {"LIFE-FILL"} == run(NEEDLESS, values, 1)


def test_each_cache_alone_allows_what_starves_one_of_them() -> None:
    """Twelve steps by the rules: a new request finds a pair for Keys or for Values."""
    keys, values = Cache(), Cache()
    for cache, column in ((keys, 0), (values, 1)):
        cache.take("start", 0)
        assert set() == run(HOLES, cache, column)
        cache.take("start", 1)

    assert [False, True] == [keys.has_room(1), values.has_room(1)]


def both(keys: State, values: State) -> State:
    """The unpaired caches as one state: a place is taken if either of them has it."""
    used, occupied = keys.used.union(values.used), keys.occupied.union(values.occupied)
    block_at = keys.block_at
    for key in values.occupied.support():  # type: ignore[attr-defined]
        block_at = block_at.set(key, values.block_at(*key))
    state = attrs.evolve(keys, used=used, occupied=occupied, block_at=block_at)
    return flat(state)


@pytest.mark.parametrize(
    ("trace", "good"), [(NEEDLESS, 1), (HOLES, 6)], ids=["needless", "holes"]
)
def test_one_granule_index_refuses_the_unpaired_allocator(
    trace: list[Any], good: int
) -> None:
    """Seen as one state, the caches have a place that is no block's granule index."""
    keys, values = Cache(), Cache()
    for cache in (keys, values):
        cache.take("start", 0)
        cache.take("start", 1)
    broken: list[set[str]] = []
    for event in trace:
        run([event], keys, 0)
        if {"LIFE-FILL"} == run([event], values, 1):
            block, places = event  # the allocator of the trace does not ask
            move = move_of(values.lg, values.s, "bind_fresh", 0, block, *places[1])
            values.s = flat(after(values.s, move))
        broken.append({*false(invariants(keys.lg, both(keys.s, values.s)))})

    assert [set[str]()] * good == broken[:good]
    assert "INV-PLACE" in broken[good]


def test_the_paired_allocator_passes_the_same_checks() -> None:
    """With one place for both, availability is the same by construction."""
    keys, values = Cache(), Cache()
    paired = [
        event if isinstance(event, int) else (event[0], (event[1][0],) * 2)
        for event in HOLES
    ]
    for cache, column in ((keys, 0), (values, 1)):
        cache.take("start", 0)
        assert set() == run(paired, cache, column)

    assert [] == [*false(invariants(keys.lg, both(keys.s, values.s)))]
    assert keys.has_room(1) == values.has_room(1)
