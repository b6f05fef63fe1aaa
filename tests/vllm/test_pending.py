"""Writes that are put off: which may be, and that none is lost or told twice.

That whole runs come out the same is in test_adapter and real/test_live_pool.
"""

from __future__ import annotations

from typing import Any

import pytest

from patton.errors import SharedBlockError
from patton.runtime import Runtime
from patton.steps import Step
from patton.vllm.pending import Pending
from tests.vllm.comparison import scheduling
from tests.vllm.pair import LAYOUT


def running(tokens: int) -> Pending:
    """A request with two blocks that has written some tokens, and nothing put off."""
    runtime = scheduling(LAYOUT, 8)
    runtime.apply_step(Step(grants=[("r", [], [1, 2])], writes=[("r", 0, tokens)]))
    return Pending(runtime)


def levels(runtime: Runtime) -> list[int]:
    return [runtime.placements.written[block] for block in (1, 2)]


def test_what_goes_on_is_told_as_one() -> None:
    """Three steps later one write of all their tokens."""
    pending = running(10)
    for first in (10, 11, 12):
        assert pending.put_off([("r", first, 1)])
    assert [10, 0] == levels(pending.runtime)
    assert pending.put_off([("r", 13, 15)])

    pending.settle(["r", "never heard of"])

    assert [16, 12] == levels(pending.runtime)
    assert {} == pending.ends
    pending.runtime.check()


def test_others_stay_behind() -> None:
    """Only the requests that are named are told of."""
    pending = running(10)
    pending.runtime.apply_step(Step(grants=[("s", [], [3])], writes=[("s", 0, 1)]))
    assert pending.put_off([("r", 10, 1), ("s", 1, 1)])

    pending.settle(["s"])

    assert [10, 0] == levels(pending.runtime)
    assert 2 == pending.runtime.placements.written[3]
    assert {"r": 11} == pending.ends


@pytest.mark.parametrize(
    "writes",
    [
        [("r", 9, 2)],
        [("r", 11, 1)],
        [("r", 10, 1), ("never heard of", 0, 1)],
        [("r", 10, 23)],
        [("r", 10, 0)],
        [("r", 10, -1)],
        [("r", 10, 1), ("r", 10, 1)],
    ],
    ids=["again", "a gap", "unknown", "no room", "no tokens", "less", "twice"],
)
def test_the_rest_matters_now(writes: Any) -> None:
    """Where one write cannot wait nothing is put off."""
    pending = running(10)

    assert not pending.put_off(writes)
    assert {} == pending.ends


def test_a_gap_to_what_was_put_off() -> None:
    """Where a request goes on is where the last write ended, told or not."""
    pending = running(10)
    assert pending.put_off([("r", 10, 2)])

    assert not pending.put_off([("r", 10, 1)])
    assert pending.put_off([("r", 12, 1)])


def test_a_block_that_is_hit_before_it_is_full() -> None:
    """The step that must fill it is told at once."""
    pending = running(10)
    pending.hit([1])

    assert not pending.put_off([("r", 10, 6)])


def test_a_block_that_is_full_without_being_told() -> None:
    """A hit asks who wrote it; that alone is told, and nothing has to be filled."""
    pending = running(10)
    pending.runtime.apply_step(Step(grants=[("s", [], [3])], writes=[("s", 0, 1)]))
    assert pending.put_off([("r", 10, 6), ("s", 1, 1)])

    pending.hit([1])

    assert [16, 0] == levels(pending.runtime)
    assert {"s": 2} == pending.ends
    assert pending.put_off([("r", 16, 1), ("s", 2, 1)])


def test_drafts_that_nobody_confirmed() -> None:
    """Whether they stay is for the step to say, wherever it goes on."""
    pending = running(10)
    pending.runtime.apply_step(Step(writes=[("r", 10, 3)], drafts={"r": 2}))

    assert not pending.put_off([("r", 11, 1)])
    assert not pending.put_off([("r", 13, 1)])


def test_the_last_place_of_the_table() -> None:
    """There is room up to it, and not beyond until a block is bound."""
    pending = running(10)
    assert pending.put_off([("r", 10, 22)])

    assert not pending.put_off([("r", 32, 1)])
    pending.runtime.bind("r", 4)
    assert pending.put_off([("r", 32, 1)])
    pending.settle(["r"])

    assert [16, 16] == levels(pending.runtime)
    assert 1 == pending.runtime.placements.written[4]


def test_what_cannot_be_told_is_not_lost() -> None:
    """A request that somebody else has changed: it can be told when that is mended."""
    pending = running(10)
    assert pending.put_off([("r", 10, 22)])
    pending.runtime.release("r", 2)

    with pytest.raises(SharedBlockError):
        pending.settle(["r"])
    assert {"r": 32} == pending.ends
