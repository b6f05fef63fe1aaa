"""The events of a block's life one by one: what each changes, and each refusal's words.

`Runtime.check` derives everything anew, so that after an event it knows what is wrong.
"""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from patton.errors import (
    BlockRangeError,
    BlockStateError,
    ConfigError,
    OutOfPairsError,
    PattonError,
    RequestError,
)
from patton.requests import NEVER
from patton.runtime import Runtime
from patton.steps import Commit, Step
from tests.core.llama import llama, place, start

NO_ID = "an integer or a text as id"
RUNNING = "a running request"
BUSY = "bound in granule 0, 16 tokens written, 16 confirmed, 1 references"


@pytest.mark.parametrize(
    ("event", "arguments", "error", "fields"),
    [
        ("bind", (1, 224), BlockRangeError, (224, 223)),
        ("bind", (1, 0), BlockStateError, ("bind", 0, BUSY, "unbound")),
        ("bind", (1.5, 9), RequestError, ("bind", 1.5, "no id", NO_ID)),
        ("bind", ([1], 9), RequestError, ("bind", [1], "no id", NO_ID)),
        ("share", (2, -1), BlockRangeError, (-1, 223)),
        ("share", (2, 224), BlockRangeError, (224, 223)),
        ("share", (2, True), BlockRangeError, (True, 223)),
        ("share", (2, 1.0), BlockRangeError, (1.0, 223)),
        ("share", (2, 9), BlockStateError, ("share", 9, "unbound", "a bound block")),
        ("share", (None, 0), RequestError, ("share", None, "no id", NO_ID)),
        (
            *("share", (1, 0), RequestError),
            (
                *("share", 1, "block 0"),
                "blocks not yet in its table, before any that it binds (a prefix)",
            ),
        ),
        ("release", (8, 0), RequestError, ("release", 8, "it is not running", RUNNING)),
        ("release", ([8], 0), RequestError, ("release", [8], "no id", NO_ID)),
        (
            *("release", (1, 9), RequestError),
            ("release", 1, "block 9", "a block in its table"),
        ),
        (
            *("evict", (0,), BlockStateError),
            ("evict", 0, BUSY, "a bound block that no request holds"),
        ),
        (
            *("evict", (9,), BlockStateError),
            ("evict", 9, "unbound", "a bound block that no request holds"),
        ),
        ("finish", (8,), RequestError, ("finish", 8, "it is not running", RUNNING)),
        ("confirm", (8, 0), RequestError, ("confirm", 8, "it is not running", RUNNING)),
        (
            *("confirm", (1, 21), RequestError),
            ("confirm", 1, "21 tokens", "20 to 20 tokens"),
        ),
        (
            *("commit", (0,), BlockStateError),
            (
                *("commit", 0, BUSY),
                "a full, confirmed block in a slot that a plan has copied",
            ),
        ),
    ],
)
def test_a_refusal_says_what_and_why(
    event: str,
    arguments: tuple[Any, ...],
    error: type[PattonError],
    fields: tuple[object, ...],
) -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1], 20)
    with pytest.raises(error) as raised:
        getattr(runtime, event)(*arguments)

    assert fields == attrs.astuple(raised.value, recurse=False)


def test_blocks_are_released_one_after_another() -> None:
    """Own ones and shared ones, of one request and of two."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1, 2, 3], 64)
    start(runtime, 2, [9], 16)
    runtime.apply_step(Step(grants=[(3, [0, 1], [4])], writes=[(3, 32, 1)]))
    for gaps, (request, block) in enumerate([(1, 0), (3, 0), (1, 2), (3, 1), (1, 1)]):
        runtime.release(request, block)
        runtime.check()
        assert gaps + 1 == runtime.placements.gaps
    runtime.finish(1)
    runtime.check()

    assert 2 == runtime.placements.gaps
    assert [0, 0, 0, 0] == [place(runtime, block).references for block in range(4)]


def test_what_is_confirmed_late_is_due_at_its_position() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1, 2], 20)
    runtime.publish(runtime.apply_step(Step(writes=[(1, 20, 13)], drafts={1: 13})))
    runtime.confirm(1, 32)
    runtime.check()
    plan = runtime.apply_step(Step())

    assert [Commit(1, 1, 1, 0, 1, 16)] == plan.commits


def test_a_confirmation_leaves_earlier_blocks_alone() -> None:
    """Block 0 was copied; confirming block 1 does not ask for the copy again."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1], 10)
    runtime.apply_step(Step(writes=[(1, 10, 6)]))
    runtime.apply_step(Step(writes=[(1, 16, 4)], drafts={1: 4}))
    runtime.confirm(1, 18)
    runtime.check()

    runtime.commit(0)
    assert place(runtime, 0).slot is None


def test_a_confirmation_passes_over_what_was_given_up() -> None:
    """Also where the last block of all is the request's own."""
    runtime = llama(gib=0.5, blocks=5)
    start(runtime, 1, [0, 4, 1], 4)
    runtime.apply_step(Step(writes=[(1, 4, 30)], drafts={1: 30}))
    runtime.release(1, 0)
    runtime.confirm(1, 20)
    runtime.check()

    assert [4, 0] == [place(runtime, block).confirmed for block in (4, 1)]


def test_a_restored_runtime_keeps_its_options() -> None:
    for adoption, commit_zone in ((False, True), (True, False)):
        runtime = llama(
            gib=0.5, adoption=adoption, commit_zone=commit_zone, choice="packed"
        )
        runtime.restore(runtime.snapshot())
        state = runtime.placements
        assert (adoption, commit_zone) == (state.adoption, state.commit_zone)
        assert "packed" == state.pool.choice


def test_options_have_defaults() -> None:
    state = llama(gib=0.5).placements

    assert ("spread", True, True) == (
        *(state.pool.choice, state.adoption),
        state.commit_zone,
    )


def test_at_most_four_candidates_are_named() -> None:
    runtime = llama(gib=0.5)
    for pair in range(14):
        start(runtime, pair, [pair], 16)
    for pair in range(6):
        runtime.finish(pair)
    with pytest.raises(OutOfPairsError) as raised:
        runtime.bind("new", 99)

    assert ("new", 99, tuple(runtime.eviction_candidates())[:4]) == attrs.astuple(
        raised.value, recurse=False
    )


def test_a_block_is_shared_once_and_owed_only_while_partial() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1], 20)
    runtime.share(2, 0)
    assert [] == runtime.snapshot()["owed"]
    with pytest.raises(RequestError):
        runtime.share(2, 0)
    runtime.share(2, 1)
    assert [[2, 1]] == runtime.snapshot()["owed"]
    runtime.check()


@pytest.mark.parametrize("place_of", range(16))
def test_a_pair_with_one_free_place_is_adopted_and_a_full_one_is_not(
    place_of: int,
) -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, list(range(16)), 256)
    runtime.finish(1)
    hit = [block for block in range(16) if block != place_of][:3]
    for block in hit:
        runtime.share(2, block)
    runtime.bind(2, 20)
    assert 1 == runtime.layout.pair_of(place(runtime, 20).granule)
    runtime.finish(2)
    runtime.evict(place_of)
    for block in hit:
        runtime.share(3, block)
    runtime.bind(3, 21)
    runtime.check()

    assert place_of == place(runtime, 21).granule


def crowd() -> Runtime:
    """Partial, copied, due, cached, shared and given-up blocks, each in its pair."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1, 2], 44)
    start(runtime, 2, [5, 6], 20)
    runtime.apply_step(Step(writes=[(1, 44, 4)]))
    runtime.apply_step(Step(writes=[(2, 20, 12)], drafts={2: 12}))
    start(runtime, 3, [7, 8], 32)
    runtime.finish(3)
    runtime.apply_step(Step(grants=[(4, [0, 1], [9])], writes=[(4, 32, 3)]))
    runtime.release(4, 0)
    start(runtime, 5, [10], 3)
    return runtime


@pytest.mark.parametrize(
    "parts",
    [
        {"finishes": [1]},
        {"finishes": [2]},
        {"finishes": [4]},
        {"finishes": [5]},
        {"finishes": [5, 4, 2, 1]},
        {"releases": [(1, 0), (1, 2)]},
        {"releases": [(4, 9)]},
        {"releases": [(2, 6), (2, 5)]},
        {"releases": [(5, 10)]},
        {"evicts": [7]},
        {"evicts": [8, 7]},
        {"confirms": [(2, 32)]},
        {"confirms": [(2, 31)]},
        {"grants": [(4, [], [11, 12])]},
        {"grants": [(6, [7, 8], [11])]},
        {"grants": [(6, [5], [])]},
        {"finishes": [5], "grants": [(6, [], [10])]},
        {"releases": [(4, 1)], "finishes": [1], "evicts": [1]},
    ],
)
def test_what_a_refused_step_did_is_undone(parts: dict[str, Any]) -> None:
    """The last of its writes is of nobody."""
    runtime = crowd()
    before, order = runtime.snapshot(), list(runtime.eviction_candidates())
    with pytest.raises(RequestError):
        runtime.apply_step(Step(**parts, writes=[("nobody", 0, 1)]))

    assert before == runtime.snapshot()
    assert order == list(runtime.eviction_candidates())
    runtime.check()
    runtime.apply_step(Step(**parts))
    runtime.check()


def test_an_owner_fills_the_places_it_empties() -> None:
    """A pair that its owner empties is no one's; one with blocks left stays its."""
    runtime = llama(gib=0.5)
    start(runtime, 1, list(range(18)), 18 * 16)
    runtime.release(1, 17)
    runtime.evict(17)
    runtime.check()
    assert [0, 1] == runtime.placements.requests[1].pairs
    runtime.release(1, 16)
    runtime.evict(16)
    runtime.check()
    assert [0] == runtime.placements.requests[1].pairs
    runtime.release(1, 3)
    runtime.evict(3)
    runtime.check()
    runtime.bind(1, 30)

    assert 3 == place(runtime, 30).granule


def test_a_sharer_that_left_before_a_restart_leaves_nothing_behind() -> None:
    """The block stays partial, so that its binder may go on and even rewrite it."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 5)
    start(runtime, 3, [4], 16)
    runtime.share(2, 0)
    runtime.release(2, 0)
    runtime.restore(runtime.snapshot())
    assert 2 == runtime.snapshot()["bound"]["0"][5]
    runtime.apply_step(Step())

    assert NEVER == runtime.snapshot()["bound"]["0"][5]
    runtime.write(1, 0, 3)
    runtime.check()


def test_a_share_that_is_taken_back_is_owed_no_more() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 5)
    for request in (2, 3):
        runtime.share(request, 0)
    runtime.release(2, 0)

    assert [[3, 0]] == runtime.snapshot()["owed"]


def test_adoptions_and_releases_are_counted() -> None:
    runtime = llama(gib=0.5)
    for request in range(3):
        start(runtime, request, [2 * request, 2 * request + 1], 32)
        runtime.finish(request)
    for request in range(2):
        runtime.share(10 + request, 2 * request + 1)
        runtime.bind(10 + request, 20 + request)

    assert (2, 6) == (runtime.adopted_pairs, runtime.snapshot()["releases"])


def test_a_block_in_slot_0_fills_with_drafts_and_is_due_once_confirmed() -> None:
    """Over a block's end, where the general way of writing is taken."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1], 10)
    assert 0 == place(runtime, 0).slot
    first = runtime.apply_step(Step(writes=[(1, 10, 7)], drafts={1: 1}))

    assert [Commit(0, 1, 0, 0, 1, 0)] == first.commits
    assert [(0, 10, 6, 10), (1, 0, 1, 16)] == [
        (row[0], row[4], row[5], row[7]) for row in first.rows
    ]
    runtime.check()


def test_a_shorter_rewrite_takes_commits_back() -> None:
    """Of a copied block that is written again, and of one beyond the end."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1, 2], 10)
    runtime.apply_step(Step(writes=[(1, 10, 20)], drafts={1: 20}))
    runtime.apply_step(Step(writes=[(1, 30, 2)], drafts={1: 2}))
    runtime.confirm(1, 32)
    assert {0, 1} == {commit.block for commit in runtime.apply_step(Step()).commits}
    runtime.apply_step(Step(writes=[(1, 12, 1)]))
    runtime.check()

    assert [] == runtime.apply_step(Step()).commits
    assert ({}, {}) == (runtime.placements.due, runtime.placements.copied)


def test_a_full_block_in_its_place_is_never_due() -> None:
    runtime = llama(gib=0.5)
    start(runtime, 1, [0, 1], 16)
    plan = runtime.apply_step(Step(writes=[(1, 0, 17)]))

    assert [] == plan.commits
    runtime.check()


def test_a_block_evicted_bound_and_shared_in_a_refused_step_is_cached_again() -> None:
    runtime = crowd()
    before = runtime.snapshot()
    step = Step(
        evicts=[8],
        grants=[(6, [], [8]), (11, [8], [12])],
        writes=[(6, 0, 16), ("nobody", 0, 1)],
    )
    with pytest.raises(RequestError):
        runtime.apply_step(step)
    runtime.check()

    assert before == runtime.snapshot()


def test_as_many_blocks_as_tables_can_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The most that 32 bits allow would not fit the memory: it is made small here."""
    layout = llama(gib=0.5).layout
    monkeypatch.setattr("patton.runtime.MOST_BLOCKS", layout.granules)

    assert layout.granules == len(Runtime.of(layout).placements.granule)
    assert 1 == len(Runtime.of(layout, blocks=1).placements.granule)
    with pytest.raises(ConfigError) as blocks:
        Runtime.of(layout, blocks=layout.granules + 1)
    monkeypatch.setattr("patton.runtime.MOST_BLOCKS", layout.granules - 1)
    with pytest.raises(ConfigError) as granules:
        Runtime.of(layout, blocks=1)

    assert ("runtime", "blocks", 225) == attrs.astuple(blocks.value)[:3]
    assert ("runtime", "granules", 224) == attrs.astuple(granules.value)[:3]


@pytest.mark.parametrize("option", ["adoption", "commit_zone"])
def test_an_option_is_named(option: str) -> None:
    with pytest.raises(ConfigError) as raised:
        llama(gib=0.5, **{option: 1})

    assert ("runtime", option, 1, "True or False") == attrs.astuple(raised.value)
