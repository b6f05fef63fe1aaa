"""The Commit Zone: who takes a slot, and until when (Paper 4.4, layout 4)."""

from __future__ import annotations

from patton.steps import Placement, Step
from tests.core.llama import llama, place, start


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


def test_the_first_of_two_copies_is_as_good() -> None:
    """An engine with two steps under way publishes a plan after the next is made."""
    runtime = llama()
    start(runtime, 1, [3], 15)
    first = runtime.write(1, 15, 1)
    runtime.apply_step(Step())
    runtime.publish(first)

    assert place(runtime, 3).slot is None


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
