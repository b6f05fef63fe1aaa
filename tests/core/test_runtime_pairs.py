"""Pairs and places: filling, choice, adoption, eviction (layout 3)."""

from __future__ import annotations

import pytest

from patton.errors import (
    OutOfPairsError,
)
from patton.steps import Step
from tests.core.llama import llama, place, start


def test_a_fresh_pair_fills_in_order() -> None:
    runtime = llama()
    start(runtime, 1, list(range(16)), 256)

    assert list(range(16)) == [place(runtime, b).granule for b in range(16)]


def test_a_turn_adopts_the_pair_in_which_its_hit_ends() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1, 2], 48)
    runtime.finish(1)
    step = Step(grants=[(2, [0, 1, 2], [5, 6])], writes=[(2, 48, 20)])
    runtime.apply_step(step)

    assert [3, 4] == [place(runtime, b).granule for b in (5, 6)]
    assert runtime.placements.adopted == 1


def test_the_pair_of_a_running_owner_is_not_adopted() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1, 2], 48)
    runtime.apply_step(Step(grants=[(2, [0, 1, 2], [5])], writes=[(2, 48, 16)]))

    assert runtime.layout.pair_of(place(runtime, 5).granule) == 1


def test_adoption_can_be_switched_off() -> None:
    runtime = llama(adoption=False)
    start(runtime, 1, [0, 1, 2], 48)
    runtime.finish(1)
    runtime.apply_step(Step(grants=[(2, [0, 1, 2], [5])], writes=[(2, 48, 16)]))

    assert runtime.layout.pair_of(place(runtime, 5).granule) != 0


def test_spread_starts_in_the_emptiest_set_and_goes_on_to_the_neighbour() -> None:
    runtime = llama()
    start(runtime, 1, list(range(17)), 17 * 16)
    start(runtime, 2, [20], 16)

    pairs = [runtime.layout.pair_of(place(runtime, b).granule) for b in (0, 16, 20)]
    assert pairs == [0, 1, 4]


def test_packed_fills_the_fullest_set() -> None:
    runtime = llama(choice="packed")
    for request in range(5):
        start(runtime, request, [request], 16)

    pairs = [runtime.layout.pair_of(place(runtime, b).granule) for b in range(5)]
    # The last set of this device has only two pairs, so it is the fullest at first.
    assert pairs == [124, 125, 0, 1, 2]


def test_a_place_goes_to_the_least_occupied_key_channel() -> None:
    runtime = llama()
    start(runtime, 1, list(range(10)), 160)
    for block in (1, 5):
        runtime.release(1, block)
        runtime.evict(block)
    runtime.bind(1, 20)

    # Held are places 0, 2 to 4, 6 to 9: one block on channel 1, elsewhere two or three.
    assert place(runtime, 20).granule == 1


def test_the_last_unbound_block_frees_the_pair() -> None:
    runtime = llama()
    free = runtime.free_pairs
    start(runtime, 1, [0, 1], 32)
    runtime.finish(1)
    assert free - 1 == runtime.free_pairs
    runtime.evict(0)
    runtime.evict(1)

    assert free == runtime.free_pairs


def test_finishing_drops_the_partial_tail_and_keeps_full_blocks() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1], 20)
    runtime.finish(1)

    assert runtime.placement(1) is None
    assert place(runtime, 0).references == 0


def test_candidates_are_named_oldest_first_and_tail_first() -> None:
    runtime = llama()
    start(runtime, 1, list(range(17)), 17 * 16)
    start(runtime, 2, [20], 16)
    runtime.finish(2)
    runtime.finish(1)

    named = [runtime.blocks_of_pair(p) for p in runtime.eviction_candidates()]
    assert named == [[20], [16], list(range(15, -1, -1))]
    assert runtime.evictable_pairs == 3


def test_a_revived_pair_is_as_young_as_its_latest_release() -> None:
    runtime = llama()
    for request in range(3):
        start(runtime, request, [2 * request, 2 * request + 1], 32)
    for request in range(3):
        runtime.finish(request)
    runtime.apply_step(Step(grants=[(7, [0], [9])], writes=[(7, 16, 1)]))
    assert [[3, 2], [5, 4]] == [
        runtime.blocks_of_pair(p) for p in runtime.eviction_candidates()
    ]
    runtime.finish(7)

    named = [runtime.blocks_of_pair(p) for p in runtime.eviction_candidates()]
    assert named == [[3, 2], [5, 4], [1, 0]]


def test_out_of_pairs_names_what_to_evict() -> None:
    runtime = llama(gib=0.5)
    pairs, size = runtime.layout.pairs, runtime.layout.pair_blocks
    for pair in range(pairs):
        start(runtime, pair, list(range(pair * size, pair * size + 1)), 16)
    runtime.finish(0)
    with pytest.raises(OutOfPairsError) as refusal:
        runtime.bind("new", 1)

    assert refusal.value.candidates == (0,)
    assert runtime.bindable("new") == 0
    assert runtime.bindable("new", [0]) == size - 1


def test_bindable_counts_own_places_and_free_pairs() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1, 2], 48)
    size = runtime.layout.pair_blocks

    assert runtime.bindable(1) == size - 3 + runtime.free_pairs * size
