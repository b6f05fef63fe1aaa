"""Every contradiction of the state is found, and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest
from attrs import astuple

from patton.errors import InconsistencyError, SnapshotError
from patton.placements import Placements
from patton.requests import NEVER
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.llama import llama, start
from tests.core.strategies import random_layout


def busy() -> Runtime:
    """One of everything.

    Request 1 shares block 5, which nobody binds any more, and binds 0 and 1, of which
    the last is partial; request 2 has given up block 2, its block 3 is full in its
    place, its block 4 full in a slot, copied and due. Blocks 6 and 8 are cached, 8 in a
    pair of its own; 7 is unbound.
    """
    runtime = llama(gib=0.5)
    start(runtime, 0, [5, 6], 32)
    start(runtime, 3, [8], 16)
    runtime.finish(0)
    runtime.finish(3)
    grants = [(1, [5], [0, 1]), (2, [], [2, 3, 4])]
    step = Step(grants=grants, writes=[(1, 16, 16 + 5), (2, 0, 16 + 16 + 10)])
    runtime.publish(runtime.apply_step(step))
    assert runtime.placements.slot[1] >= 0
    runtime.apply_step(Step(writes=[(2, 42, 6)], releases=[(2, 2)]))
    runtime.check()
    return runtime


def one_up(column: str, index: int) -> Callable[[Placements], None]:
    def corrupt(state: Placements) -> None:
        getattr(state, column)[index] += 1

    return corrupt


def put(column: str, index: int, value: object) -> Callable[[Placements], None]:
    def corrupt(state: Placements) -> None:
        getattr(state, column)[index] = value

    return corrupt


def of_request(name: int, field: str, value: object) -> Callable[[Placements], None]:
    def corrupt(state: Placements) -> None:
        setattr(state.requests[name], field, value)

    return corrupt


def of_pool(field: str, value: object) -> Callable[[Placements], None]:
    def corrupt(state: Placements) -> None:
        setattr(state.pool, field, value)

    return corrupt


def drop_rank(state: Placements) -> None:
    state.pool._heap.clear()


def one_gap_more(state: Placements) -> None:
    state.gaps += 1


def commit_forgotten(state: Placements) -> None:
    del state.due[4]


def slot_lost(state: Placements) -> None:
    state.zone.free[0] ^= 1 << 9


CONTRADICTIONS: list[tuple[Callable[[Placements], None], str]] = [
    (one_up("references", 0), "references of block 0"),
    (one_up("references", 7), "references of block 7"),
    (put("epoch", 0, 0), "epoch of block 0 counted"),
    (put("epoch", 0, True), "epoch of block 0 counted"),
    (put("epoch", 7, -1), "epoch of block 7 counted"),
    (put("slot", 7, -1), "slot and levels of unbound block 7"),
    (one_up("written", 7), "slot and levels of unbound block 7"),
    (one_up("confirmed", 7), "slot and levels of unbound block 7"),
    (put("granule", 0, -2), "granule of block 0 in range"),
    (put("granule", 0, 224), "granule of block 0 in range"),
    (put("granule", 1, 2), "block in granule 2"),
    (put("confirmed", 0, -1), "levels of block 0 in order"),
    (one_up("confirmed", 1), "levels of block 1 in order"),
    (one_up("written", 0), "levels of block 0 in order"),
    (one_up("written", 8), "levels of block 8 in order"),
    (put("confirmed", 6, 15), "unreferenced block 6 full"),
    (of_request(1, "id", 9), "name of request"),
    (of_request(2, "pairs", [4, 0]), "repeated pairs of request 2"),
    (of_request(2, "tokens", 49), "levels of request 2 in order"),
    (of_request(2, "confirmed", 49), "levels of request 2 in order"),
    (of_request(2, "confirmed", -1), "levels of request 2 in order"),
    (of_request(2, "tokens", 47), "levels of request 2 in order"),
    (one_up("written", 1), "written level of block 1"),
    (put("confirmed", 1, 4), "confirmed level of block 1"),
    (of_pool("owner", [None] * 14), "owner of pair 0"),
    (put("slot", 3, -3), "slot of block 3 in range"),
    (put("slot", 3, 0), "block in slot 0"),
    (commit_forgotten, "commit of block 4 due"),
    (put("due", 1, (1, 32)), "commit of block 1 due"),
    (put("due", 3, (2, 16)), "blocks due outside a slot"),
    (put("copied", 1, 2), "blocks copied and not due"),
    (one_gap_more, "blocks given up"),
    (slot_lost, "free slots"),
    (put("block_at", 9, 7), "blocks by granule"),
    (drop_rank, "eviction order"),
    (of_request(1, "shared", {5, 0}), "shared of request 1"),
    (of_request(2, "released", 2), "released of request 2"),
    (of_request(2, "open", []), "open of request 2"),
    (of_request(1, "tail", (0, 1, 0, -1)), "tail of request 1"),
    (put("sealed", 1, 0), "tail of request 1 is its own"),
    *(
        (of_pool(field, value), f"{name} of the pair pool")
        for field, value, name in (
            ("free_places", [0] * 14, "free places"),
            ("referenced", [0] * 14, "referenced blocks"),
            ("free_pairs", 1, "free pairs"),
            ("evictable_pairs", 0, "evictable pairs"),
            ("_free_in_set", {}, "free pairs by set"),
            ("_sets_with", {}, "sets by free pairs"),
            ("_counts", 0, "numbers of free pairs"),
            ("_candidate", bytearray(14), "candidates"),
        )
    ),
]


@pytest.mark.parametrize(("corrupt", "what"), CONTRADICTIONS)
def test_a_contradiction_is_named(
    corrupt: Callable[[Placements], None], what: str
) -> None:
    runtime = busy()
    corrupt(runtime.placements)
    with pytest.raises(InconsistencyError) as raised:
        runtime.check()

    assert what == raised.value.what
    assert raised.value.found != raised.value.expected


def test_a_slot_lies_in_the_zone() -> None:
    runtime = busy()
    state = runtime.placements
    state.slot[3] = state.layout.slots * state.layout.stripes
    with pytest.raises(InconsistencyError) as raised:
        runtime.check()

    assert "slot of block 3 in range" == raised.value.what


def test_a_slot_lies_in_the_stripe_of_its_block() -> None:
    layouts = (random_layout(np.random.default_rng(seed)) for seed in count())
    layout = next(layout for layout in layouts if layout.stripes > 1)
    runtime = Runtime.of(layout)
    runtime.apply_step(Step(grants=[(1, [], [0])], writes=[(1, 0, 1)]))
    runtime.check()
    state = runtime.placements
    assert 0 == state.slot[0] == state.granule[0]
    state.slot[0] = 1
    with pytest.raises(InconsistencyError) as raised:
        runtime.check()

    assert ("stripe of the slot of block 0", 1, 0) == astuple(raised.value)


def test_a_pair_has_one_owner_of_all() -> None:
    runtime = llama(gib=0.5)
    for request in range(3):
        start(runtime, request, [request], 16)
    runtime.placements.requests[2].pairs = list(runtime.placements.requests[0].pairs)
    with pytest.raises(InconsistencyError, match="repeated pairs of request 2"):
        runtime.check()


def test_a_request_may_have_written_nothing() -> None:
    runtime = llama(gib=0.5)
    runtime.bind(1, 0)
    runtime.check()


# --- snapshots ------------------------------------------------------------------------


def with_owed() -> Runtime:
    """Request 2 shares block 0 before it is full: the step that fills it is to come."""
    runtime = llama(gib=0.5)
    start(runtime, 1, [0], 4)
    runtime.share(2, 0)
    return runtime


def test_shares_of_requests_with_any_names_are_compared() -> None:
    """Numbers and words, which have no order among each other."""
    runtime = with_owed()
    runtime.share("another", 0)
    runtime.check()


EPOCHS_BY_ANOTHER_NAME = (
    "epochs",
    dict.fromkeys(("00", "1", "2", "3", "4", "5", "6", "8"), 1),
)


def due_of(*row: object) -> tuple[str, object]:
    return "due", [list(row)]


def never_released(time: int) -> tuple[str, object]:
    return "last_release", {str(pair): time for pair in range(14)}


@pytest.mark.parametrize(
    ("made", "name", "value", "problem"),
    [
        (busy, "step", -1, "counters in order: False"),
        (busy, "step", NEVER, "counters in order: False"),
        (busy, "adopted", -1, "counters in order: False"),
        (busy, "releases", 3, "counters in order: False"),
        (with_owed, *never_released(-1), "counters in order: False"),
        (busy, "last_release", {"0": -1, "1": 1}, "counters in order: False"),
        (busy, *due_of(4, 2, NEVER), "a commit of a block of a request: False"),
        (busy, *due_of(4, 2, -16), "a commit of a block of a request: False"),
        (busy, *due_of(4, 2, 33), "a commit of a block of a request: False"),
        (busy, *due_of(4, None, 32), "a commit of a block of a request: False"),
        *(
            (with_owed, "owed", owed, f"shares of blocks to be filled: {found} where")
            for owed, found in (
                ([], "[]"),
                ([[None, 0]], "[(None, 0)]"),
                ([["other", 0]], "[('other', 0)]"),
                ([[2, 1]], "[(2, 1)]"),
                ([[2, 0], [2, 0]], "[(2, 0), (2, 0)]"),
            )
        ),
        (busy, *EPOCHS_BY_ANOTHER_NAME, "the data of the state so restored: {"),
        (busy, "bound", {"0": [0, -1, 16, 16, "0", 1, None]}, "facts of a block: {"),
        (busy, "granules", 225, "granules is 225"),
        (busy, "pair_blocks", 3, "pair_blocks is 3"),
        (busy, "slots", 3, "slots is 3"),
        (busy, "blocks", 3, "blocks is 3"),
        (busy, "adopted", True, "True an integer or a name: False"),
        (busy, "adopted", 1.0, "1.0 an integer or a name: False"),
        (busy, "owed", [[2, (4,)]], "(4,) an integer or a name: False"),
    ],
)
def test_a_wrong_fact_of_a_snapshot_is_named(
    made: Callable[[], Runtime], name: str, value: object, problem: str
) -> None:
    runtime = made()
    good = runtime.snapshot()
    with pytest.raises(SnapshotError) as raised:
        runtime.restore(good | {name: value})

    assert raised.value.problem.startswith(problem)
    assert good == runtime.snapshot()


@pytest.mark.parametrize("made", [busy, with_owed])
def test_a_snapshot_is_restored_whole(made: Callable[[], Runtime]) -> None:
    """On the runtime itself, on a fresh one, and from its text."""
    good = made().snapshot()
    for data in (good, json.loads(json.dumps(good))):
        fresh = llama(gib=0.5)
        fresh.restore(data)
        fresh.check()
        assert good == fresh.snapshot()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("step", 0),
        ("adopted", 0),
        *(due_of(4, 2, position) for position in (0, NEVER - 16)),
    ],
)
def test_the_ends_of_what_a_snapshot_may_hold(name: str, value: object) -> None:
    runtime = busy()
    changed = runtime.snapshot() | {name: value, "copied": []}
    if name == "step":
        changed["bound"] = {
            block: [*row[:5], min(row[5], 0) if row[5] < NEVER else NEVER, row[6]]
            for block, row in changed["bound"].items()
        }
    runtime.restore(changed)

    assert changed == runtime.snapshot()


def test_nothing_was_released_and_block_0_is_owed() -> None:
    good = with_owed().snapshot()

    assert ([[2, 0]], 0, {}) == (good["owed"], good["releases"], good["last_release"])


def test_a_share_is_owed_until_its_step_is_over() -> None:
    runtime = with_owed()
    runtime.apply_step(Step(writes=[(1, 4, 12)]))

    assert [] == runtime.snapshot()["owed"]
    runtime.check()


# --- words ----------------------------------------------------------------------------


def test_a_block_is_described() -> None:
    state = busy().placements

    assert "unbound" == state.describe(7)
    assert [
        "bound in granule 2, 16 tokens written, 16 confirmed, 1 references",
        "bound in slot 0, 5 tokens written, 5 confirmed, 1 references",
        "bound in granule 64, 16 tokens written, 16 confirmed, 0 references",
    ] == [state.describe(block) for block in (0, 1, 8)]
