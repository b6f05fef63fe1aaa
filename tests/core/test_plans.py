"""What a step's plan and its placements say, number by number."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from patton.errors import (
    ArgumentError,
    BlockStateError,
    PairRangeError,
    RequestError,
    StaleBindingError,
    StepOrderError,
)
from patton.steps import Commit, PlacedStep, Request, Step
from tests.core.llama import llama, place, start


def plain(placed: PlacedStep, kind: str) -> list[list[int]]:
    """The columns whose names begin so, row by row."""
    columns = [
        getattr(placed, field.name)
        for field in attrs.fields(PlacedStep)
        if field.name.startswith(f"{kind}_")
    ]
    assert all(column.dtype == np.int64 for column in columns)
    return np.array(columns).T.tolist()  # type: ignore[no-any-return]


def test_a_placed_step_has_every_number_in_its_place() -> None:
    """Writers are numbered first, then whose commits are due, then readers."""
    runtime = llama(gib=0.5)
    start(runtime, "w", [0, 1], 20)
    start(runtime, "r", [2, 3], 30)
    start(runtime, "g", [5, 6, 7], 48)
    runtime.release("g", 5)
    runtime.evict(5)
    runtime.apply_step(Step(writes=[("r", 30, 2)]))
    plan = runtime.apply_step(
        Step(
            writes=[("w", 20, 14)],
            grants=[("w", [], [9])],
            reads=[("g", 17, 40), ("w", 3, 34)],
            readbacks=[("r", 1, 31)],
        )
    )
    placed = plan.place()

    assert (plan.step, 4) == (placed.step, plan.step)
    assert placed.layout is runtime.layout
    assert ("w", "r", "g") == placed.requests
    assert placed is plan.place()
    assert [[1, 0, 4, 12, 0, 20], [2, 2, 0, 2, 0, 32]] == plain(placed, "write")
    assert [[65, 1, 1, 16], [1, 0, 0, 16]] == plain(placed, "commit")
    assert [[2, 17, 40], [0, 3, 34]] == plain(placed, "read")
    assert [[1, 1, 31]] == plain(placed, "readback")
    tables = placed.tables
    assert [0, 3, 5, 8] == tables.ptr.tolist()
    assert [0, 1, 2, 64, 65, -1, 129, 130] == tables.granule.tolist()
    assert [-1, 0, 2, -1, 1, -1, -1, -1] == tables.slot.tolist()
    assert [16, 16, 2, 16, 16, 0, 16, 16] == tables.opened.tolist()


def test_only_readers_have_tables() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 5)
    start(runtime, 2, [1], 5)
    step = Step(writes=[(1, 5, 1), (2, 5, 1)], readbacks=[(2, 0, 1)])
    tables = runtime.apply_step(step).place().tables

    assert [0, 0, 1] == tables.ptr.tolist()


def test_a_segment_names_its_parts() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 5)
    (segment,) = runtime.apply_step(Step(writes=[(1, 5, 3)])).segments

    assert (0, 1, 0, 0, 5, 3, 1, 5) == tuple(segment)


def test_a_late_plan_says_what_is_different() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 4)
    plan = runtime.apply_step(Step(writes=[(1, 4, 1)]))
    runtime.apply_step(Step())
    with pytest.raises(StepOrderError) as order:
        plan.place()
    runtime.finish(1)
    runtime.bind(2, 0)
    with pytest.raises(StaleBindingError) as stale:
        plan.place()

    assert (1, 3) == attrs.astuple(order.value)
    assert (0, 1, 2) == attrs.astuple(stale.value)


def test_a_commit_of_an_earlier_binding_is_stale() -> None:
    """The plan writes nothing, it only commits."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 4)
    runtime.apply_step(Step(writes=[(1, 4, 12)]))
    plan = runtime.apply_step(Step())
    assert [Commit(0, 1, 0, 0, 1, 0)] == plan.commits
    runtime.finish(1)
    runtime.evict(0)
    runtime.bind(2, 0)
    with pytest.raises(StaleBindingError):
        plan.place()


def test_the_quick_way_of_writing_knows_the_position() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1], 20)

    plan = runtime.apply_step(Step(writes=[(1, 20, 12)]))
    assert [Commit(1, 1, 1, 0, 1, 16)] == plan.commits


def test_unconfirmed_tokens_stay_so_when_writing_goes_on() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 4)
    for first, drafts in ((4, 2), (6, 0), (7, 1)):
        count = max(drafts, 1)
        some: dict[Request, int] = {1: drafts} if drafts else {}
        step = Step(writes=[(1, first, count)], drafts=some)
        runtime.apply_step(step)
        assert 4 == place(runtime, 0).confirmed
        runtime.check()
    assert 8 == place(runtime, 0).written


def test_a_snapshot_orders_requests_by_kind_and_name() -> None:
    runtime = llama(gib=0.5)
    names: list[Request] = ["b", 2, "a", 10, 1]
    for block, name in enumerate(names):
        runtime.bind(name, block)
    found = runtime.snapshot()

    assert [1, 2, 10, "a", "b"] == [row[0] for row in found["requests"]]
    assert "b" == found["bound"]["0"][-1]


@pytest.mark.parametrize("pair", [-1, 14, True, 1.0])
def test_pairs_are_numbers_of_the_layout(pair: int) -> None:
    runtime = llama(gib=0.5)
    with pytest.raises(PairRangeError) as raised:
        runtime.blocks_of_pair(pair)

    assert (pair, 13) == attrs.astuple(raised.value)
    assert [] == runtime.blocks_of_pair(13)


def test_what_could_be_bound_depends_on_what_is_shared_first() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1, 2], 48)
    start(runtime, 2, [5], 16)
    free = 12 * 16
    assert (free + 13, free + 15, free) == tuple(map(runtime.bindable, (1, 2, 3)))
    runtime.finish(1)
    assert free == runtime.bindable(3)
    assert free + 13 == runtime.bindable(3, [0, 1])
    assert free == runtime.bindable(3, [1, 5])
    runtime.share(3, 0)
    assert free + 13 == runtime.bindable(3)
    assert free == runtime.bindable(3, [5])


def test_what_cannot_be_bound_is_refused_by_the_same_words() -> None:
    runtime = llama(gib=0.5)
    with pytest.raises(RequestError) as request:
        runtime.bindable(1.5)  # type: ignore[arg-type]
    with pytest.raises(BlockStateError) as block:
        runtime.bindable(1, [9])

    assert ("bindable", 1.5) == attrs.astuple(request.value)[:2]
    assert ("share", 9, "unbound", "a bound block") == attrs.astuple(block.value)


def test_a_step_of_another_form_is_refused_as_such() -> None:
    runtime = llama(gib=0.5)
    with pytest.raises(ArgumentError) as raised:
        runtime.apply_step(Step(writes=[5]))  # type: ignore[list-item]

    found = raised.value
    assert ("apply_step", "writes", 5) == attrs.astuple(found)[:3]


def test_a_block_evicted_from_its_slot_leaves_no_copy_behind() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 4)
    runtime.apply_step(Step(writes=[(1, 4, 12)]))
    assert {0: 1} == runtime.placements.copied
    runtime.finish(1)
    runtime.evict(0)
    runtime.check()

    assert {} == runtime.placements.copied
