"""The pool of pairs by itself, against the plainest statement of each choice."""

from __future__ import annotations

import numpy as np
import pytest

from patton.layout import Layout
from patton.pairs import CHOICES, Choice, PairPool
from tests.core.llama import llama, start
from tests.core.strategies import random_layout

SEEDS = range(12)


def key_channel(layout: Layout, pair: int, place: int) -> int:
    return (pair * layout.pair_blocks + place) % layout.channels_per_head


def plainest_place(layout: Layout, pair: int, free: set[int]) -> int:
    held = [
        key_channel(layout, pair, place)
        for place in range(layout.pair_blocks)
        if place not in free
    ]
    return min(
        free, key=lambda place: (held.count(key_channel(layout, pair, place)), place)
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_place_is_the_first_on_the_channel_with_fewest_blocks(
    seed: int,
) -> None:
    """Of any places left free, twice: what was found before is found again."""
    rng = np.random.default_rng(seed)
    layout = random_layout(rng)
    pool = PairPool.of(layout, "spread")
    for _ in range(200):
        pair = int(rng.integers(layout.pairs))
        free = {p for p in range(layout.pair_blocks) if rng.random() < 0.6}
        if free:
            pool.free_places[pair] = sum(1 << place for place in free)
            place = plainest_place(layout, pair, free)
            assert place == pool.occupy_next(pair)
            assert free - {place} == {
                p for p in range(layout.pair_blocks) if pool.free_places[pair] >> p & 1
            }


def plainest_pair(pool: PairPool, free: set[int], after: int | None) -> int | None:
    if not free:
        return None
    by_set = {s: [p for p in sorted(free) if pool.set_of[p] == s] for s in pool.set_of}
    near = -1 if after is None or pool.choice != "spread" else after + 1
    if near in free and pool.set_of[near] == pool.set_of[near - 1]:
        return near
    held = {s: len(pairs) for s, pairs in by_set.items() if pairs}
    wanted = (max if pool.choice == "spread" else min)(held.values())
    return by_set[min(s for s, count in held.items() if count == wanted)][0]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_next_pair_is_the_plainest_choice(seed: int, choice: Choice) -> None:
    rng = np.random.default_rng(seed)
    layout = random_layout(rng)
    pool = PairPool.of(layout, choice)
    free = set(range(layout.pairs))
    place_in: dict[int, int] = {}
    for _ in range(8 * layout.pairs):
        pair = int(rng.integers(layout.pairs))
        if pair in free:
            pool.own(pair, "r")
            place_in[pair] = pool.occupy_next(pair)
            free.remove(pair)
        else:
            pool.disown(pair)
            pool.vacate(pair, place_in[pair])
            free.add(pair)
        for after in (None, *range(layout.pairs)):
            assert plainest_pair(pool, free, after) == pool.choose(after)


def test_a_pool_that_holds_something_keeps_the_choice() -> None:
    layout = llama(gib=0.5).layout
    pool = PairPool.holding(layout, "packed", [], {}, [0] * layout.pairs)

    assert "packed" == pool.choice


def test_stale_ranks_do_not_pile_up() -> None:
    """Revived and released again and again, pairs leave ranks that mean nothing.

    The order is right whenever it is asked for, also just after they were dropped.
    """
    layout = llama(gib=0.5).layout
    for end in range(layout.pairs, 12 * layout.pairs):
        pool = PairPool.of(layout, "spread")
        for pair in range(layout.pairs):
            pool.own(pair, pair)
            pool.occupy_next(pair)
            pool.disown(pair)
        for time in range(1, end + 1):
            pair = time * 5 % layout.pairs
            if not pool.referenced[pair]:
                pool.reference(pair)
            pool.unreference(pair, time)
            assert len(pool._heap) <= 4 * layout.pairs + 65
        by_age = sorted(range(layout.pairs), key=lambda pair: pool.last_release[pair])

        assert layout.pairs == len(set(pool.last_release))
        assert by_age == list(pool.eviction_candidates())


def test_candidates_may_be_asked_for_while_they_are_named() -> None:
    """Several times over, to the end or not, and while stale ranks are dropped."""
    runtime = llama(gib=0.5)
    for request in range(4):
        start(runtime, request, [40 * request], 16)
    for request in (2, 0, 3, 1):
        runtime.finish(request)
    by_age = [runtime.placements.pair_of(40 * request) for request in (2, 0, 3, 1)]
    outer, found = runtime.eviction_candidates(), list[int]()
    for pair in outer:
        found.append(pair)
        assert by_age == list(runtime.eviction_candidates())
        assert by_age[0] == next(runtime.eviction_candidates())
        runtime.placements.pool._drop_stale_ranks()
        runtime.check()

    assert by_age == found == list(runtime.eviction_candidates())


def test_the_facts_have_names() -> None:
    """Those by which an inconsistency is reported."""
    pool = llama(gib=0.5).placements.pool

    assert list(pool.facts()) == [
        "free places",
        "owners",
        "referenced blocks",
        "free pairs",
        "evictable pairs",
        "free pairs by set",
        "sets by free pairs",
        "numbers of free pairs",
        "candidates",
    ]


def test_references_of_a_pair_are_counted() -> None:
    """A revived pair with two of them is evictable after the second is lost."""
    layout = llama(gib=0.5).layout
    pool = PairPool.of(layout, "spread")
    pool.own(0, 1)
    pool.occupy_next(0)
    pool.occupy_next(0)
    pool.disown(0)
    pool.unreference(0, 1)
    pool.unreference(0, 2)
    for _ in range(2):
        pool.reference(0)
    pool.unreference(0, 3)

    assert (1, False) == (pool.referenced[0], pool.is_evictable(0))
    pool.unreference(0, 4)
    assert ([0], 1) == (list(pool.eviction_candidates()), pool.evictable_pairs)
