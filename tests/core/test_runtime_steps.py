"""A step as a whole: sharing, drafts, windows, and plans in time (layout 4).

Clauses STEP-SHARED, STEP-PLACED and STEP-STALE.
"""

from __future__ import annotations

import pytest

from patton.errors import (
    BlockStateError,
    RequestError,
    SharedBlockError,
    StaleBindingError,
    StepOrderError,
    UnwrittenReadError,
)
from patton.steps import Step
from tests.core.llama import llama, place, start


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


def test_the_last_tokens_may_be_written_again() -> None:
    """Confirmed ones, to the same end: they were in the block and are."""
    runtime = llama()
    start(runtime, 1, [0, 1], 20)
    plan = runtime.write(1, 18, 2)

    assert [(1, 2, 2)] == [(s.block, s.start, s.tokens) for s in plan.segments]
    assert (4, 4) == (place(runtime, 1).written, place(runtime, 1).confirmed)


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


def test_a_step_that_is_only_followed_leaves_the_same_state() -> None:
    planning, following = llama(), llama()
    first = Step(grants=[(1, [], [0, 1])], writes=[(1, 0, 20)])
    drafts = Step(writes=[(1, 20, 3)], drafts={1: 2})
    for step in (first, Step(writes=[(1, 20, 1)]), drafts, Step(writes=[(1, 21, 11)])):
        planning.apply_step(step)
        following.follow(step)

        assert planning.snapshot() == following.snapshot()
    with pytest.raises(RequestError):
        following.follow(Step(writes=[(1, 32, 1)]))
    following.check()


def test_appending_looks_anew_at_a_block_that_others_read() -> None:
    """It was the writer's alone when it was last written."""
    runtime = llama()
    start(runtime, 1, [0], 4)
    runtime.write(1, 4, 1)
    runtime.share(2, 0)
    with pytest.raises(UnwrittenReadError):
        runtime.write(1, 5, 1)
    runtime.write(1, 5, 11)
    with pytest.raises(SharedBlockError):
        runtime.write(1, 15, 1)
    runtime.check()


def test_appending_looks_anew_at_a_block_that_was_given_up() -> None:
    runtime = llama()
    start(runtime, 1, [0], 4)
    runtime.release(1, 0)
    with pytest.raises(SharedBlockError):
        runtime.write(1, 4, 1)
    runtime.check()


def test_a_sharer_that_leaves_in_its_step_leaves_nothing_behind() -> None:
    """The partial block is neither owed to it nor sealed, and may be written on."""
    runtime = llama()
    start(runtime, 1, [0], 4)
    runtime.share(2, 0)
    runtime.release(2, 0)
    runtime.apply_step(Step(finishes=[2], writes=[(1, 4, 1)]))
    runtime.write(1, 5, 1)

    assert place(runtime, 0).written == 6
    runtime.check()


def test_a_block_is_not_shortened_in_the_step_that_shares_it() -> None:
    runtime = llama()
    start(runtime, 1, [0], 16)
    step = Step(grants=[(2, [0], [1])], writes=[(1, 10, 2), (2, 16, 1)])
    with pytest.raises(SharedBlockError):
        runtime.apply_step(step)


def test_a_shared_block_may_be_written_anew_to_its_end_in_that_step() -> None:
    runtime = llama()
    start(runtime, 1, [0], 16)
    step = Step(grants=[(2, [0], [1])], writes=[(1, 10, 6), (2, 16, 1)])
    runtime.apply_step(step)

    assert place(runtime, 0).written == 16


def test_a_rewrite_that_ends_earlier_takes_no_shared_block() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1], 32)
    runtime.apply_step(Step(grants=[(2, [1], [3])], writes=[(2, 16, 1)]))
    with pytest.raises(SharedBlockError):
        runtime.write(1, 5, 2)


def test_a_block_full_of_drafts_may_be_shared() -> None:
    runtime = llama()
    step = Step(grants=[(1, [], [0])], writes=[(1, 0, 10)], drafts={1: 2})
    runtime.apply_step(step)
    step = Step(grants=[(2, [0], [1])], writes=[(1, 10, 6), (2, 16, 1)])
    runtime.apply_step(step)

    assert place(runtime, 0).references == 2


def test_nothing_is_published_that_no_plan_has_copied() -> None:
    runtime = llama()
    step = Step(grants=[(1, [], [0])], writes=[(1, 0, 16)], drafts={1: 1})
    runtime.apply_step(step)
    runtime.confirm(1, 16)
    with pytest.raises(BlockStateError):
        runtime.commit(0)
    runtime.publish(runtime.apply_step(Step()))

    assert place(runtime, 0).slot is None


def test_a_copy_older_than_the_last_write_is_not_published() -> None:
    runtime = llama()
    start(runtime, 1, [0], 15)
    old = runtime.write(1, 15, 1)
    runtime.apply_step(Step(writes=[(1, 15, 1)], drafts={1: 1}))
    runtime.confirm(1, 16)
    runtime.publish(old)
    assert place(runtime, 0).slot == 0
    plan = runtime.apply_step(Step())
    runtime.publish(old)
    assert place(runtime, 0).slot == 0
    runtime.publish(plan)

    assert place(runtime, 0).slot is None


def test_placements_are_taken_before_anything_else_happens() -> None:
    runtime = llama()
    start(runtime, 1, [0], 15)
    plan = runtime.apply_step(Step(writes=[(1, 15, 1)], reads=[(1, 0, 16)]))
    runtime.publish(plan)
    with pytest.raises(StepOrderError):
        plan.place()


def test_a_block_given_up_has_no_place_in_the_tables() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1], 20)
    runtime.release(1, 0)
    tables = runtime.apply_step(Step(reads=[(1, 16, 20)])).place().tables

    assert [[-1, 1], [-1, 0], [0, 4]] == [
        list(column) for column in (tables.granule, tables.slot, tables.opened)
    ]
