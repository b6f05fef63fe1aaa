"""Each refusal of a step in its own words."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from patton.errors import (
    PattonError,
    RequestError,
    SharedBlockError,
    UnwrittenReadError,
)
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.llama import llama, start


def scene() -> Runtime:
    """Before step 3, blocks of 16.

    Request 1 wrote 20 tokens to blocks 0 and 1 and has a third, 2. Request 2 shares
    block 0 since step 1 and wrote 4 tokens to block 5. Request 3 gave up block 6 and
    wrote block 7.
    """
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1, 2], 20)
    runtime.apply_step(Step(grants=[(2, [0], [5])], writes=[(2, 16, 4)]))
    start(runtime, 3, [6, 7], 32)
    runtime.release(3, 6)
    return runtime


REFUSALS: list[tuple[dict[str, Any], type[PattonError], tuple[object, ...]]] = [
    (
        {"writes": [(1, 20, 0)]},
        RequestError,
        (
            *("write", 1, "0 tokens at 20"),
            "at least 1 token, first position 0 to 20, end at most 48",
        ),
    ),
    (
        {"writes": [(1, 21, 1)]},
        RequestError,
        (
            *("write", 1, "1 tokens at 21"),
            "at least 1 token, first position 0 to 20, end at most 48",
        ),
    ),
    (
        {"writes": [(1, -1, 2)]},
        RequestError,
        (
            *("write", 1, "2 tokens at -1"),
            "at least 1 token, first position 0 to 20, end at most 48",
        ),
    ),
    (
        {"writes": [(1, 20, 29)]},
        RequestError,
        (
            *("write", 1, "29 tokens at 20"),
            "at least 1 token, first position 0 to 20, end at most 48",
        ),
    ),
    (
        {"writes": [(9, 0, 1)]},
        RequestError,
        ("write", 9, "it is not running", "a running request"),
    ),
    (
        {"writes": [(1, 20, 1), (1, 20, 2), (2, 20, 1)]},
        RequestError,
        ("write", 1, "two ranges in one step", "one range"),
    ),
    (
        {"writes": [(1, 20, 3)], "drafts": {1: 4}},
        RequestError,
        ("write", 1, "4 drafts", "0 to 3, the tokens it writes in this step"),
    ),
    (
        {"writes": [(1, 20, 3)], "drafts": {1: -1}},
        RequestError,
        ("write", 1, "-1 drafts", "0 to 3, the tokens it writes in this step"),
    ),
    (
        {"writes": [(1, 20, 3)], "drafts": {2: 1}},
        RequestError,
        ("write", 2, "1 drafts", "0 to 0, the tokens it writes in this step"),
    ),
    (
        {"writes": [(1, 15, 9)]},
        SharedBlockError,
        (1, 15, 0, "shared or cached since step 1", 3),
    ),
    (
        {"writes": [(2, 14, 9)]},
        SharedBlockError,
        (2, 14, 0, "bound by another request", 3),
    ),
    ({"writes": [(3, 14, 3)]}, SharedBlockError, (3, 14, -1, "released", 3)),
    (
        {"grants": [(4, [7], [8])], "writes": [(4, 0, 17)]},
        SharedBlockError,
        (4, 0, 7, "bound by another request", 3),
    ),
    (
        {"grants": [(4, [2], [])], "writes": [(4, 0, 1)]},
        SharedBlockError,
        (4, 0, 2, "bound by another request", 3),
    ),
    (
        {"grants": [(4, [7], [8])], "writes": [(3, 30, 1)]},
        SharedBlockError,
        (3, 30, 7, "shared or cached since step 3", 3),
    ),
    (
        {"grants": [(4, [7], [8])], "writes": [(3, 31, 1), (4, 15, 2)]},
        SharedBlockError,
        (4, 15, 7, "bound by another request", 3),
    ),
    (
        {"reads": [(9, 0, 1)]},
        RequestError,
        ("read", 9, "range 0 to 1", "a running request and 0 <= start < end"),
    ),
    (
        {"reads": [(1, 5, 5)]},
        RequestError,
        ("read", 1, "range 5 to 5", "a running request and 0 <= start < end"),
    ),
    (
        {"readbacks": [(1, -1, 5)]},
        RequestError,
        ("read", 1, "range -1 to 5", "a running request and 0 <= start < end"),
    ),
    (
        {"reads": [(3, 3, 20)]},
        RequestError,
        (
            *("read", 3, "range 3 to 20, whose block 0 it released"),
            "positions that it holds",
        ),
    ),
    (
        {"writes": [(3, 30, 1)], "reads": [(3, 0, 31)]},
        RequestError,
        (
            *("read", 3, "range 0 to 31, whose block 0 it released"),
            "positions that it holds",
        ),
    ),
    ({"reads": [(1, 0, 21)]}, UnwrittenReadError, (1, 20, 1, 3, 4)),
    (
        {"writes": [(1, 20, 3)], "reads": [(1, 30, 60)]},
        UnwrittenReadError,
        (1, 30, 1, 3, 4),
    ),
    ({"readbacks": [(1, 40, 60)]}, UnwrittenReadError, (1, 40, 2, 3, 0)),
    ({"reads": [(2, 40, 60)]}, UnwrittenReadError, (2, 40, -1, 3, 0)),
    (
        {"grants": [(4, [5], [])], "writes": [(2, 20, 11)]},
        UnwrittenReadError,
        (4, 15, 5, 3, 15),
    ),
    ({"grants": [(4, [0, 1], [])]}, UnwrittenReadError, (4, 20, 1, 3, 4)),
]


@pytest.mark.parametrize(("parts", "error", "fields"), REFUSALS)
def test_a_refusal_says_what_and_why(
    parts: dict[str, Any], error: type[PattonError], fields: tuple[object, ...]
) -> None:
    runtime = scene()
    before = runtime.snapshot()
    with pytest.raises(error) as raised:
        runtime.apply_step(Step(**parts))

    assert fields == attrs.astuple(raised.value)
    assert before == runtime.snapshot()


def test_a_refusal_names_the_first_position_in_the_shared_block() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1, 2], 48)
    runtime.apply_step(Step(grants=[(2, [0, 1], [3])], writes=[(2, 32, 1)]))
    runtime.apply_step(Step(releases=[(2, 0)]))
    for first, position in ((10, 16), (20, 20)):
        with pytest.raises(SharedBlockError) as raised:
            runtime.write(1, first, 48 - first)
        assert (1, position, 1) == attrs.astuple(raised.value)[:3]


@pytest.mark.parametrize(
    "parts",
    [
        {"writes": [(1, 16, 1)], "reads": [(1, 0, 17)]},
        {"writes": [(1, 20, 28)], "drafts": {1: 28}, "reads": [(1, 47, 48)]},
        {"writes": [(1, 20, 3)], "drafts": {1: 0, 2: 0}},
        {"reads": [(3, 16, 32)], "readbacks": [(3, 31, 32)]},
        {"grants": [(4, [5], [])], "writes": [(2, 20, 12)], "reads": [(4, 0, 16)]},
        {"writes": [(2, 16, 16)]},
    ],
)
def test_what_just_fits_is_no_refusal(parts: dict[str, Any]) -> None:
    runtime = scene()
    runtime.apply_step(Step(**parts))
    runtime.check()


def test_a_block_given_up_is_not_the_last_of_all() -> None:
    """In tables it is -1, which would be the last block's index."""
    runtime = llama(gib=0.5, blocks=2)
    start(runtime, 1, [0, 1], 20)
    runtime.release(1, 0)
    with pytest.raises(SharedBlockError) as raised:
        runtime.write(1, 10, 12)

    assert (1, 10, -1, "released", 1) == attrs.astuple(raised.value)


def test_a_rewrite_leaves_what_is_shared_in_this_step() -> None:
    """It ends before block 1, which another request shares in the same step."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1], 32)
    step = Step(grants=[(2, [1], [3])], writes=[(1, 5, 11), (2, 16, 1)])
    with pytest.raises(SharedBlockError) as raised:
        runtime.apply_step(step)

    assert (1, 16, 1) == attrs.astuple(raised.value)[:3]


@pytest.mark.parametrize(
    ("read", "error"),
    [
        ((1, 21, 21), RequestError),
        ((1, 23, 21), RequestError),
        ((1, 21, 23), UnwrittenReadError),
        ((2, 0, 21), UnwrittenReadError),
        ((2, 0, 20), None),
        ((1, 20, 21), None),
    ],
)
def test_a_read_ends_where_its_request_does(
    read: tuple[int, int, int], error: type[PattonError] | None
) -> None:
    """Request 1 ends at 21, after this step's token, as request 0 does; 2 at 20."""
    runtime = llama(gib=0.5)
    for request in range(3):
        start(runtime, request, [2 * request, 2 * request + 1], 20)
    step = Step(writes=[(0, 20, 1), (1, 20, 1)], reads=[read])
    if error is None:
        runtime.apply_step(step)
    else:
        with pytest.raises(error):
            runtime.apply_step(step)


def test_a_read_does_not_touch_a_block_given_up() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1, 2], 48)
    runtime.release(1, 1)
    for bounds in ((0, 17), (31, 33), (16, 32)):
        with pytest.raises(RequestError):
            runtime.apply_step(Step(reads=[(1, *bounds)]))
    runtime.apply_step(Step(reads=[(1, 0, 16), (1, 32, 48)]))


def test_nothing_is_written_beyond_a_table() -> None:
    """Whatever the last block of all holds."""
    runtime = llama(gib=0.5, blocks=2)
    start(runtime, 1, [0, 1], 20)
    with pytest.raises(UnwrittenReadError) as raised:
        runtime.apply_step(Step(reads=[(1, 40, 60)]))

    assert (1, 40, -1, 1, 0) == attrs.astuple(raised.value)
