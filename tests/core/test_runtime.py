"""The runtime's lifecycle: worked cases of layout section 4, and random runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patton.config import aim_gddr6, model_preset
from patton.errors import (
    BlockRangeError,
    BlockStateError,
    ConfigError,
    OutOfPairsError,
    PattonError,
    RequestError,
    SharedBlockError,
    SnapshotError,
    StaleBindingError,
    StepOrderError,
    UnwrittenReadError,
)
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Placement, Step
from tests.core.driver import RandomEngine
from tests.core.strategies import random_layout


def llama(**options: Any) -> Runtime:
    """A runtime for the paper's configuration, on a small part of the device."""
    device = aim_gddr6().scaled(options.pop("gib", 4))
    return Runtime.of(Layout.of(device, model_preset("llama3-8b")), **options)


def place(runtime: Runtime, block: int) -> Placement:
    """The placement of a block that is bound."""
    found = runtime.placement(block)
    assert found is not None
    return found


def start(runtime: Runtime, request: int, blocks: list[int], tokens: int) -> None:
    """Bind and write the first tokens of a request, commits published."""
    step = Step(grants=[(request, [], blocks)], writes=[(request, 0, tokens)])
    runtime.publish(runtime.apply_step(step))


def test_a_fresh_pair_fills_in_order() -> None:
    runtime = llama()
    start(runtime, 1, list(range(16)), 256)

    assert list(range(16)) == [place(runtime, b).granule for b in range(16)]


def test_full_blocks_bypass_the_commit_zone_and_a_tail_goes_there() -> None:
    runtime = llama()
    start(runtime, 1, [7, 8], 20)

    assert Placement(7, 1, 0, None, 16, 16, 1) == runtime.placement(7)
    assert Placement(8, 1, 1, 0, 4, 4, 1) == runtime.placement(8)


def test_token_15_makes_a_commit_due_and_publication_frees_the_slot() -> None:
    runtime = llama()
    start(runtime, 1, [3], 15)
    plan = runtime.write(1, 15, 1)

    assert [(3, 0)] == [(c.block, c.slot) for c in plan.commits]
    assert place(runtime, 3).slot == 0
    runtime.publish(plan)
    assert place(runtime, 3).slot is None


def test_an_unpublished_commit_comes_again() -> None:
    runtime = llama()
    start(runtime, 1, [3], 15)
    first = runtime.write(1, 15, 1)
    second = runtime.apply_step(Step())

    assert first.commits == second.commits
    runtime.publish(second)
    runtime.publish(first)
    assert runtime.apply_step(Step()).commits == []


def test_a_commit_whose_block_was_rebound_is_passed_over() -> None:
    runtime = llama()
    start(runtime, 1, [3], 15)
    plan = runtime.write(1, 15, 1)
    runtime.finish(1)
    runtime.evict(3)
    start(runtime, 2, [3], 5)
    runtime.publish(plan)

    assert place(runtime, 3).slot == 0


def test_the_lowest_free_slot_is_taken_and_reused_in_the_same_step() -> None:
    runtime = llama()
    for request in range(3):
        start(runtime, request, [request], 1)
    step = Step(finishes=[1], grants=[(9, [], [9])], writes=[(9, 0, 3)])
    runtime.apply_step(step)

    assert [0, 2, 1] == [place(runtime, b).slot for b in (0, 2, 9)]


def test_without_a_free_slot_the_block_is_written_straight_to_its_place() -> None:
    runtime = llama()
    for request in range(runtime.layout.slots + 1):
        start(runtime, request, [request], 1)

    assert place(runtime, runtime.layout.slots).slot is None


def test_without_a_commit_zone_nothing_is_staged() -> None:
    runtime = llama(commit_zone=False)
    start(runtime, 1, [3], 5)

    assert place(runtime, 3).slot is None


def test_a_block_begun_in_its_place_stays_there() -> None:
    runtime = llama()
    for request in range(runtime.layout.slots + 1):
        start(runtime, request, [request], 1)
    runtime.finish(0)
    runtime.write(runtime.layout.slots, 1, 1)

    assert place(runtime, runtime.layout.slots).slot is None


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


def test_a_block_may_be_shared_in_the_step_that_fills_it() -> None:
    runtime = llama()
    start(runtime, 1, [0], 4)
    step = Step(
        grants=[(2, [0], [1])],
        writes=[(1, 4, 12), (2, 16, 2)],
        reads=[(2, 0, 18), (1, 0, 16)],
    )
    plan = runtime.apply_step(step)

    assert list(plan.place().tables.slot) == [0, 0, 1]
    runtime.publish(plan)
    runtime.check()


def test_a_shared_block_that_the_step_does_not_fill_is_a_read_of_nothing() -> None:
    runtime = llama()
    start(runtime, 1, [0], 4)
    before = runtime.snapshot()
    step = Step(grants=[(2, [0], [1])], writes=[(1, 4, 11), (2, 16, 2)])
    with pytest.raises(UnwrittenReadError) as refusal:
        runtime.apply_step(step)

    error = refusal.value
    assert (2, 15, 0, 1) == (error.request, error.position, error.block, error.step)
    assert runtime.snapshot() == before


def test_a_block_shared_before_the_step_is_never_written() -> None:
    runtime = llama()
    start(runtime, 1, [0], 16)
    runtime.apply_step(Step(grants=[(2, [0], [1])], writes=[(2, 16, 1)]))
    with pytest.raises(SharedBlockError):
        runtime.write(1, 15, 1)


def test_only_the_binder_writes() -> None:
    runtime = llama()
    start(runtime, 1, [0], 16)
    runtime.finish(1)
    runtime.apply_step(Step(grants=[(2, [0], [1])], writes=[(2, 16, 1)]))
    with pytest.raises(SharedBlockError):
        runtime.write(2, 3, 14)


def test_drafts_are_not_committed_until_confirmed() -> None:
    runtime = llama()
    start(runtime, 1, [0], 14)
    step = Step(grants=[(1, [], [1])], writes=[(1, 14, 5)], drafts={1: 4})
    runtime.publish(runtime.apply_step(step))
    assert place(runtime, 0).written == 16
    assert place(runtime, 0).confirmed == 15
    plan = runtime.apply_step(Step(confirms=[(1, 17)], writes=[(1, 17, 1)]))

    assert [0] == [c.block for c in plan.commits]
    assert place(runtime, 1).written == 2


def test_a_rewrite_after_rejection_lowers_what_is_written() -> None:
    runtime = llama()
    start(runtime, 1, [0], 14)
    step = Step(grants=[(1, [], [1])], writes=[(1, 14, 5)], drafts={1: 4})
    runtime.publish(runtime.apply_step(step))
    runtime.write(1, 15, 1)

    assert place(runtime, 0).confirmed == 16
    assert place(runtime, 1).written == 0
    runtime.check()


def test_a_committed_block_rewritten_while_private_stays_in_its_place() -> None:
    runtime = llama()
    start(runtime, 1, [0], 15)
    runtime.publish(runtime.write(1, 15, 1))
    plan = runtime.write(1, 15, 1)

    assert [-1] == [s.slot for s in plan.segments]


def test_windows_release_in_the_middle_and_reads_of_it_are_refused() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1, 2], 40)
    runtime.release(1, 0)
    plan = runtime.apply_step(Step(writes=[(1, 40, 1)], reads=[(1, 16, 41)]))
    assert [-1, 1, 2] == list(plan.place().tables.granule)
    with pytest.raises(RequestError):
        runtime.apply_step(Step(reads=[(1, 15, 41)]))


def test_a_plan_is_placed_in_its_own_step_only() -> None:
    runtime = llama()
    start(runtime, 1, [0], 4)
    plan = runtime.write(1, 4, 1)
    runtime.apply_step(Step())
    with pytest.raises(StepOrderError):
        plan.place()


def test_a_plan_whose_block_was_bound_anew_is_stale() -> None:
    runtime = llama()
    start(runtime, 1, [0], 4)
    plan = runtime.write(1, 4, 1)
    runtime.finish(1)
    runtime.bind(2, 0)
    with pytest.raises(StaleBindingError):
        plan.place()


@pytest.mark.parametrize(
    ("event", "arguments", "error"),
    [
        ("bind", (1, 10**6), BlockRangeError),
        ("bind", (1, -1), BlockRangeError),
        ("bind", (1, 0), BlockStateError),
        ("share", (2, 9), BlockStateError),
        ("share", (1, 1), RequestError),
        ("release", (1, 9), RequestError),
        ("release", (8, 0), RequestError),
        ("evict", (0,), BlockStateError),
        ("evict", (9,), BlockStateError),
        ("finish", (8,), RequestError),
        ("confirm", (1, 99), RequestError),
        ("confirm", (1, 3), RequestError),
        ("commit", (0,), BlockStateError),
        ("write", (8, 0, 1), RequestError),
        ("write", (1, 30, 1), RequestError),
        ("write", (1, 20, 99), RequestError),
        ("write", (1, 20, 0), RequestError),
    ],
)
def test_a_refused_event_changes_nothing(
    event: str, arguments: tuple[Any, ...], error: type[PattonError]
) -> None:
    runtime = llama()
    start(runtime, 1, [0, 1], 20)
    before = runtime.snapshot()
    with pytest.raises(error):
        getattr(runtime, event)(*arguments)

    assert runtime.snapshot() == before
    runtime.check()


@pytest.mark.parametrize("blocks", [0, -1, 1.5, True])
def test_a_runtime_needs_blocks(blocks: Any) -> None:
    with pytest.raises(ConfigError):
        llama(blocks=blocks)


def test_a_snapshot_of_another_layout_is_refused() -> None:
    small, large = llama(gib=2), llama(gib=4)
    with pytest.raises(SnapshotError):
        large.restore(small.snapshot())


def test_a_damaged_snapshot_is_refused() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1], 20)
    good = runtime.snapshot()
    for name in ("requests", "bound", "due", "epochs"):
        damaged = good | {name: good["bound"] if name == "due" else {"0": [1]}}
        with pytest.raises(SnapshotError):
            runtime.restore(damaged)
    assert runtime.snapshot() == good


@pytest.mark.parametrize("seed", range(12))
def test_random_runs_stay_consistent_and_refusals_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    layout = random_layout(rng)
    options: dict[str, Any] = {
        "choice": ("spread", "packed")[seed % 2],
        "adoption": seed % 3 > 0,
        "commit_zone": seed % 4 > 0,
    }
    engine = RandomEngine(Runtime.of(layout, **options), rng)
    for number in range(60):
        engine.step()
        engine.runtime.check()
        if number % 10 == 0:
            engine.try_refusals()
    twin = Runtime.of(layout, **options)
    twin.restore(engine.runtime.snapshot())

    assert twin.snapshot() == engine.runtime.snapshot()
    assert engine.accepted > 20
