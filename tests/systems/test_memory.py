"""Memories: what is allocated when, what is refused, and that nothing is lost."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import attrs
import numpy as np
import pytest

from patton.config import ModelConfig, aim_gddr6, model_preset
from patton.errors import (
    BlockRangeError,
    BlockStateError,
    OutOfRowsError,
    PlacementError,
    RequestError,
)
from patton.generate import PAPER, Schedule, best_schedule
from patton.steps import Step
from patton.systems import Memory, system
from patton.systems.blockpim import BlockMemory
from patton.systems.neupims import NeupimsMemory
from patton.systems.patton import PattonMemory
from patton.systems.rows import RowMemory
from tests.systems.scene import VARIANTS, Scene, variant_id

LLAMA, OPT = model_preset("llama3-8b"), model_preset("opt-6.7b")
OWNED = [v for v in VARIANTS if v[0][:6] not in {"blockp", "patton"}]


def memory_of(name: str, model: ModelConfig = LLAMA, **options: Any) -> Any:
    """An empty memory on AiM."""
    return system(name, **options).on(aim_gddr6(), model)


# --- rows of requests -----------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_all_comes_back(variant: tuple[str, dict[str, Any]]) -> None:
    """Requests come, grow and go; nothing stays taken that nobody holds."""
    name, options = variant
    memory: Memory = memory_of(name, **options)
    rng, empty = np.random.default_rng(3), memory.usage()
    blocks = itertools.count()
    running: dict[int, list[int]] = {}
    free: list[int] = []
    for number in range(400):
        if running and rng.random() < 0.3:
            request = int(rng.choice(list(running)))
            memory.finish(request)
            free += running.pop(request)
        known = number if rng.random() < 0.3 else next(iter(running), number)
        many = min(int(rng.integers(1, 9)), memory.bindable(known))
        taken = [free.pop() if free else next(blocks) for _ in range(many)]
        if known not in running and not memory.admit(known, many):
            free += taken
            continue
        for block in taken:
            memory.bind(known, block)
        running.setdefault(known, []).extend(taken)
        usage = memory.usage()
        assert 0 <= usage.used <= usage.units
        bound = sum(map(len, running.values())) * memory.block_tokens
        assert bound <= usage.tokens_reserved or name in {"attacc", "paise", "l3"}
    for request in running:
        memory.finish(request)

    assert empty == memory.usage()


@pytest.mark.parametrize("variant", OWNED, ids=variant_id)
def test_no_row_has_two_owners(variant: tuple[str, dict[str, Any]]) -> None:
    """Rows are free or one request's, in every domain."""
    name, options = variant
    memory: RowMemory = memory_of(name, **options)
    for request in range(5):
        for block in range(3 + 40 * request):
            if memory.bindable(request):
                memory.bind(request, 1000 * request + block)
    memory.finish(2)
    for domain, free in enumerate(memory.free):
        owners = [o for o in memory.requests.values() if o.domain == domain]
        held = [row for o in owners for row in (*o.keys, *o.values)]
        assert sorted([*free, *held]) == list(range(memory.rows))


def test_static_slots() -> None:
    """A slot is taken at admission, and as many requests fit as there are slots."""
    memory = memory_of("attacc")

    assert memory.admit("a", 1)
    assert 8 == memory.usage().used
    assert 2048 == memory.usage().tokens_reserved
    assert 128 == memory.bindable("a")
    admitted = 1
    while memory.admit(admitted, 128):
        admitted += 1
    assert 64 == admitted
    assert 0 == memory.bindable("new")
    with pytest.raises(OutOfRowsError, match="needs 8 more rows"):
        memory.bind("new", 0)
    assert "new" not in memory.requests


def test_growth_by_units() -> None:
    """Keys by 16 tokens and Values by 1,024 in one channel; chunks of 512."""
    neupims, pimphony = memory_of("neupims"), memory_of("pimphony")
    used = []
    for memory in (neupims, pimphony):
        rows = []
        for block in range(65):
            memory.bind("a", block)
            rows.append(memory.usage().used)
        used.append(rows)

    assert [65, 66, 67] == used[0][:3]
    assert [64 + 64, 65 + 128] == used[0][63:]
    assert [1 + 2, 1 + 2] == used[1][:2]
    assert [2 + 2, 3 + 4] == used[1][63:]


def test_a_request_is_no_longer_than_its_limit() -> None:
    """Of 2,048 tokens, rounded up to blocks; a channel's capacity where it is cut."""
    assert 2048 == memory_of("attacc", max_context=2047).longest
    assert 2048 == memory_of("neupims", OPT).longest
    assert 1024 == memory_of("neupims", OPT, channels_per_request=1).longest
    memory = memory_of("l3", max_context=100)
    assert 112 == memory.longest
    assert not memory.admit("long", 8)
    for block in range(7):
        memory.bind("a", block)
    with pytest.raises(OutOfRowsError):
        memory.bind("a", 7)
    assert 7 == len(memory.requests["a"].blocks)


def test_the_least_loaded_channel_is_chosen() -> None:
    """By NeuPIMs' estimate: the lengths decide, not the number of requests."""
    memory: NeupimsMemory = memory_of("neupims")
    for request in range(32):
        for block in range(2 if request == 5 else 10):
            memory.bind(request, 100 * request + block)
    memory.bind("next", 9000)

    assert list(range(32)) == [memory.requests[r].domain for r in range(32)]
    assert 5 == memory.requests["next"].domain
    assert memory.latency(16) == 100 + 184 + 8 * 100 + 64 * 184
    assert memory.latency(1025) > memory.latency(1024) > memory.latency(1008)


def test_a_request_moves_before_its_first_write() -> None:
    """Its first blocks are bound one by one, and need not fit where the first did."""
    memory: NeupimsMemory = memory_of("neupims")
    assert memory.admit("small", 1)
    for request in range(31):
        for block in range(100):
            memory.bind(request, 1000 * request + block)
    # A hundred blocks are left beside those of each, in channel 0 more.
    for block in range(128):
        memory.bind("small", 50_000 + block)
    memory.bind("late", 60_000)
    assert memory.bindable("late") > 0
    home = memory.requests["late"].domain
    for block in range(127):
        memory.bind("late", 60_001 + block)

    assert 128 == len(memory.requests["late"].blocks)
    assert isinstance(home, int)


@pytest.mark.parametrize(
    ("name", "adoption", "pairs", "pair_blocks", "schedule"),
    [
        ("patton", False, "packed", 16, PAPER),
        ("patton-adopting", True, "spread", 16, PAPER),
        ("patton-best", True, "spread", 16, best_schedule("aim-gddr6", "head")),
        ("patton-without-commit-zone", False, "packed", 16, PAPER),
        ("patton-without-o2", False, "packed", 64, PAPER),
    ],
)
def test_variants_of_patton(
    name: str, adoption: bool, pairs: str, pair_blocks: int, schedule: Schedule
) -> None:
    """Each is the runtime with the choices that its name says."""
    memory: PattonMemory = memory_of(name)
    placements = memory.runtime.placements

    assert adoption == placements.adoption
    assert pairs == placements.pool.choice
    assert ("commit-zone" not in name) == placements.commit_zone
    assert (pair_blocks, schedule) == (memory.pair_blocks, memory.schedule)
    pin: PattonMemory = memory_of("patton-best", schedule="pin")
    assert best_schedule("aim-gddr6", "pin") == pin.schedule


# --- blocks ---------------------------------------------------------------------------


def test_blocks_go_to_the_least_filled_channel() -> None:
    """Of the four of their heads; evictions elsewhere leave them uneven."""
    memory: BlockMemory = memory_of("blockpim")
    for block in range(9):
        memory.bind("a", block)
    where = [memory.bound[b].place // memory.map.per_channel for b in range(9)]

    assert [0, 1, 2, 3, 0, 1, 2, 3, 0] == where
    assert 1024 - 9 == memory.bindable("b")


def test_full_blocks_outlive_their_request() -> None:
    """Partial ones do not; a cached one is shared, and its content is still there."""
    scene = Scene.named("blockpim", {}, "llama3-8b")
    step = Step()
    scene.write(step, "a", 300)
    scene.run(step)
    scene.tables["old"], scene.tokens["old"] = scene.tables["a"], scene.tokens["a"]
    scene.lengths["old"] = 300
    step = Step()
    scene.finish(step, "a")
    scene.run(step)
    assert isinstance(scene.memory, BlockMemory)
    assert [0, 1] == sorted(scene.memory.bound)
    step = Step()
    scene.share(step, "b", "old", 2)
    scene.write(step, "b", 10)
    scene.read(step, "b")

    assert scene.error(step, scene.run(step)) < 0.02
    assert 1 == scene.memory.bound[0].references


def test_what_is_wrong_with_blocks_is_refused() -> None:
    """Ids, states, foreign writes, shares of what is not full."""
    memory: BlockMemory = memory_of("blockpim")
    memory.bind("a", 0)
    for wrong, error in (
        (lambda: memory.bind("a", 0), BlockStateError),
        (lambda: memory.bind("a", 1024), BlockRangeError),
        (lambda: memory.share("b", 5), BlockStateError),
        (lambda: memory.evict(0), BlockStateError),
        (lambda: memory.evict(7), BlockStateError),
        (lambda: memory.finish("nobody"), RequestError),
        (lambda: memory.share("a", 0), RequestError),
        (lambda: memory.blocks_of_pair(0), BlockStateError),
    ):
        before = copy.deepcopy(memory.bound)
        with pytest.raises(error):
            wrong()
        assert before.keys() == memory.bound.keys()
    memory.apply(Step(writes=[("a", 0, 100)]))
    memory.share("b", 0)
    with pytest.raises(BlockStateError, match="a full block"):
        memory.apply(Step(reads=[("b", 0, 50)]))


def test_a_block_may_be_shared_in_the_step_that_fills_it() -> None:
    """As the engine registers it when it is scheduled."""
    memory: BlockMemory = memory_of("blockpim")
    memory.bind("a", 0)
    memory.share("b", 0)
    memory.bind("b", 1)
    placed = memory.apply(
        Step(writes=[("a", 0, 128), ("b", 128, 4)], reads=[("b", 0, 132)])
    )

    assert 1 == len(placed.reads.request)


@pytest.mark.parametrize("name", ["attacc", "neupims", "attenpim"])
def test_what_owns_rows_shares_nothing(name: str) -> None:
    """No sharing, no eviction, no pairs."""
    memory = memory_of(name)
    memory.bind("a", 0)
    with pytest.raises(BlockStateError, match="keeps and shares nothing"):
        memory.share("b", 0)
    with pytest.raises(BlockStateError, match="keeps and shares nothing"):
        memory.evict(0)
    assert not memory.caches
    assert 0 == memory.evictable_pairs
    assert [] == list(memory.eviction_candidates())


# --- steps ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["attacc", "blockpim", "l3", "patton"])
@pytest.mark.parametrize(
    "wrong",
    [
        Step(writes=[("a", 60, 1)]),
        Step(writes=[("a", 30, 200)]),
        Step(writes=[("nobody", 0, 1)]),
        Step(reads=[("a", 0, 31)]),
        Step(reads=[("a", 7, 7)]),
        Step(readbacks=[("nobody", 0, 1)]),
        Step(finishes=["a"], reads=[("a", 0, 1)]),
        Step(grants=[("b", [], [1, 2])], reads=[("b", 0, 1)]),
        Step(finishes=["nobody"]),
        Step(evicts=[5]),
        Step(grants=[("b", [7], [])]),
    ],
    ids=str,
)
def test_a_refused_step_has_changed_nothing(name: str, wrong: Step) -> None:
    """What comes after is as if it had not been."""
    memory, other = memory_of(name), memory_of(name)
    first = Step(grants=[("a", [], [0, 4])], writes=[("a", 0, 30)])
    if memory.block_tokens == 128:
        first = attrs.evolve(first, grants=[("a", [], [0])])
    for one in (memory, other):
        one.publish(one.apply(first))
    with pytest.raises(PlacementError):
        memory.apply(wrong)
    then = Step(writes=[("a", 30, 2)], reads=[("a", 0, 32)])
    texts = [
        [stream.to_text() for stream in one.apply(then).streams().present()]
        for one in (memory, other)
    ]

    assert texts[0] == texts[1]
    assert memory.usage() == other.usage()


@pytest.mark.parametrize(
    "step",
    [
        Step(releases=[("a", 0)]),
        Step(confirms=[("a", 3)]),
        Step(drafts={"a": 1}),
    ],
)
def test_events_that_no_source_defines_are_refused(step: Step) -> None:
    """Sliding windows and speculation."""
    memory = memory_of("attacc")
    memory.bind("a", 0)
    with pytest.raises(RequestError, match="no such event"):
        memory.apply(step)
