"""What seldom happens to a runtime: gaps in tables, memories that are full, odd steps.

Each is met by the fuzzers too; here it is said what must come of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patton import pairs
from patton.errors import (
    ConfigError,
    RequestError,
    SharedBlockError,
    UnwrittenReadError,
)
from patton.pairs import PairPool
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.llama import llama, place, start

T = 16


def windowed(runtime: Runtime) -> None:
    """Request 1 has three blocks, the last partial, and has given up the first."""
    start(runtime, 1, [0, 1, 2], 2 * T + 4)
    runtime.release(1, 0)


# --- tables with gaps -----------------------------------------------------------------


@pytest.mark.parametrize("part", ["reads", "readbacks"])
def test_what_was_given_up_is_not_read(part: str) -> None:
    def step(*row: int) -> Step:
        given: dict[str, Any] = {part: [row]}
        return Step(**given)

    runtime = llama()
    windowed(runtime)
    before = runtime.snapshot()
    with pytest.raises(RequestError, match="block 0 it released"):
        runtime.apply_step(step(1, T - 1, T + 1))

    assert before == runtime.snapshot()
    plan = runtime.apply_step(step(1, T, 2 * T + 4))
    assert [-1] == plan.place().tables.granule[:1].tolist()


def test_what_was_given_up_is_not_written() -> None:
    runtime = llama()
    windowed(runtime)
    with pytest.raises(SharedBlockError, match="which is released") as refusal:
        runtime.write(1, T - 2, 2 * T)

    assert -1 == refusal.value.block


def test_a_release_comes_with_the_step_too() -> None:
    """Then the step already reads without it."""
    runtime = llama()
    start(runtime, 1, [0, 1], 2 * T)
    with pytest.raises(RequestError, match="it released"):
        runtime.apply_step(Step(releases=[(1, 0)], reads=[(1, 0, 2 * T)]))
    runtime.apply_step(Step(releases=[(1, 0)], reads=[(1, T, 2 * T)]))

    assert 0 == place(runtime, 0).references


def test_drafts_beside_a_gap_are_confirmed_and_retracted() -> None:
    """The block given up keeps what it has; those held follow the request."""
    runtime = llama()
    runtime.apply_step(
        Step(
            grants=[(1, [], [0, 1, 2])],
            writes=[(1, 0, 2 * T + 4)],
            drafts={1: 2 * T},
        )
    )
    runtime.share(2, 0)  # so that it stays when its writer lets go
    runtime.release(1, 0)
    levels = place(runtime, 0).written, place(runtime, 0).confirmed
    runtime.confirm(1, T + 8)
    assert (T, 4) == levels
    assert levels == (place(runtime, 0).written, place(runtime, 0).confirmed)
    assert (T, 8) == (place(runtime, 1).written, place(runtime, 1).confirmed)
    runtime.write(1, T + 8, 1)

    assert (9, 0) == (place(runtime, 1).written, place(runtime, 2).written)


def test_a_rewrite_leaves_alone_what_was_given_up_beyond_it() -> None:
    """A draft's last block is given up; the rewrite before it ends earlier."""
    runtime = llama()
    start(runtime, 3, [5, 6], T + 4)
    runtime.release(3, 6)
    plan = runtime.write(3, T - 4, 2)

    assert [5] == [segment.block for segment in plan.segments]
    assert T - 2 == place(runtime, 5).written
    assert runtime.placement(6) is None


def test_the_last_block_to_go_takes_the_ownership_along() -> None:
    """A running request whose pair is emptied owns it no more; a new block gets one."""
    runtime = llama()
    start(runtime, 1, [0], T)
    pair = runtime.layout.pair_of(place(runtime, 0).granule)
    runtime.release(1, 0)
    runtime.evict(0)
    state = runtime.placements
    assert (None, []) == (state.pool.owner[pair], state.requests[1].pairs)
    runtime.bind(1, 7)

    assert 1 == state.pool.owner[runtime.layout.pair_of(place(runtime, 7).granule)]
    runtime.check()


# --- steps that should not be ---------------------------------------------------------


def test_two_ranges_of_one_request_are_refused() -> None:
    runtime = llama()
    start(runtime, 1, [0, 1], 4)
    with pytest.raises(RequestError, match="two ranges in one step"):
        runtime.apply_step(Step(writes=[(1, 4, 1), (1, 4, 2)]))

    assert 4 == place(runtime, 0).written


def test_numbers_of_another_kind_are_refused() -> None:
    """A position of NumPy would go into the log and not come out of it."""
    runtime = llama()
    start(runtime, 1, [0], 4)
    with pytest.raises(RequestError, match="Python's integers"):
        runtime.apply_step(
            Step(writes=[(1, np.int64(4), 1)])  # type: ignore[list-item]
        )


@pytest.mark.parametrize(("end", "block", "written"), [(T, 1, 0), (3 * T, -1, 0)])
def test_a_read_beyond_what_is_written_names_the_block(
    end: int, block: int, written: int
) -> None:
    """The first block without tokens, or none where the table ends."""
    runtime = llama()
    start(runtime, 1, [0], T)
    runtime.bind(1, 1)
    with pytest.raises(UnwrittenReadError) as refusal:
        runtime.apply_step(Step(reads=[(1, max(T, end - 1), end + 1)]))

    assert (block, written) == (refusal.value.block, refusal.value.written)


def test_a_share_is_filled_by_its_own_writer_only() -> None:
    """Another request that writes as much in the same step does not fill it."""
    runtime = llama()
    start(runtime, 1, [0], T - 2)
    start(runtime, 2, [1], T - 2)
    grants: list[tuple[int | str, list[int], list[int]]] = [(3, [0], [])]
    with pytest.raises(UnwrittenReadError, match="block 0"):
        runtime.apply_step(Step(grants=grants, writes=[(2, T - 2, 2)]))
    runtime.apply_step(Step(grants=grants, writes=[(2, T - 2, 2), (1, T - 2, 2)]))

    assert (2, T) == (place(runtime, 0).references, place(runtime, 0).written)


def test_the_number_of_the_next_step() -> None:
    runtime = llama()
    plan = runtime.apply_step(Step())

    assert (0, 1) == (plan.step, runtime.step)


# --- memories of bounded size ---------------------------------------------------------


def test_an_unknown_choice_of_pairs_is_refused() -> None:
    with pytest.raises(ConfigError, match="spread or packed"):
        llama(choice="best")


def test_places_are_the_same_when_they_are_not_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A full memory of places is emptied, and nothing else comes of it."""

    def taken() -> list[int]:
        runtime = llama()
        found = []
        for block in range(40):
            runtime.bind(1, block)
            found.append(place(runtime, block).granule)
            if block % 3 == 2:
                runtime.release(1, block - 1)
        return found

    expected = taken()
    calls = []
    least_occupied = PairPool._least_occupied

    def counted(pool: PairPool, free: int) -> int:
        calls.append(free)
        return least_occupied(pool, free)

    monkeypatch.setattr(PairPool, "_least_occupied", counted)
    assert expected == taken()
    once = len(calls)
    monkeypatch.setattr(pairs, "_REMEMBERED_PLACES", 1)

    assert expected == taken()
    assert len(calls) - once > once


def test_candidates_that_come_and_go_take_no_more_memory() -> None:
    """A pair that is shared and left again and again is one candidate all the while.

    Entries that are out of date are dropped before they are many.
    """
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], T)
    start(runtime, 2, [40], T)
    runtime.finish(1)
    runtime.finish(2)
    pool = runtime.placements.pool
    most = 4 * len(pool.owner) + 65
    for _ in range(2 * most):
        runtime.share(3, 0)
        runtime.finish(3)
        assert len(pool._heap) <= most

    assert [[40], [0]] == [
        runtime.blocks_of_pair(pair) for pair in runtime.eviction_candidates()
    ]
    runtime.check()
