"""vLLM's block semantics, case by case; the F numbers are measurements of vLLM 0.33.

vLLM never hands out block 0, so these pools begin at 1 and the ids are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import attrs
import pytest

from patton.engine.block_pool import BlockPool
from patton.engine.placement_gate import Placement
from patton.errors import BlockPoolError, ConfigError

TOKENS = 16


def pool_of(blocks: int = 10) -> BlockPool:
    return BlockPool.of(blocks, first_id=1)


def keys(first_token: int, tokens: int) -> list[tuple[int, ...]]:
    """Keys of the full blocks of the text first_token, first_token + 1, ..."""
    text = range(first_token, first_token + tokens)
    return [tuple(text[:end]) for end in range(TOKENS, tokens + 1, TOKENS)]


def admit(pool: BlockPool, first_token: int, tokens: int) -> tuple[int, list[int]]:
    """What a request does: hit all but one token, take the rest, hash what is full."""
    chain = keys(first_token, tokens)
    hits = pool.lookup(chain[: (tokens - 1) // TOKENS])
    pool.touch(hits)
    table = hits + pool.take(-(-tokens // TOKENS) - len(hits))
    for index in range(len(hits), len(chain)):
        pool.register(table[index], chain[index])
    return len(hits) * TOKENS, table


def test_f1_ids_are_taken_in_order() -> None:
    """A new pool's queue is ascending."""
    assert list(range(1, 11)) == pool_of().free_queue()


def test_f3_partial_block_to_the_front_full_ones_tail_first_to_the_end() -> None:
    """40 tokens in 1, 2, 3: freed, the queue is 3, 4 .. 10, 2, 1."""
    pool = pool_of()

    assert (0, [1, 2, 3]) == admit(pool, 100, 40)
    pool.release([1, 2, 3])

    assert [3, 4, 5, 6, 7, 8, 9, 10, 2, 1] == pool.free_queue()


def after_f3() -> BlockPool:
    pool = pool_of()
    pool.release(admit(pool, 100, 40)[1])
    return pool


def test_f4_a_released_partial_block_is_taken_next() -> None:
    """The next request of 20 tokens takes 3, then 4."""
    assert [3, 4] == admit(after_f3(), 500, 20)[1]


def test_f5_an_aligned_repeat_recomputes_its_last_block_in_a_new_id() -> None:
    """Exactly the first 32 tokens again: 16 hit, block 2 is not used."""
    pool = after_f3()
    admit(pool, 500, 20)

    assert (16, [1, 5]) == admit(pool, 100, 32)


def test_f6_one_key_may_lie_in_two_ids() -> None:
    """The copy is cached too; a lookup names the first."""
    pool = after_f3()
    admit(pool, 500, 20)
    admit(pool, 100, 32)

    assert {2: None, 5: None} == pool.copies[keys(100, 32)[1]]
    assert [1, 2] == pool.lookup(keys(100, 32))


def test_f7_content_is_evicted_when_its_id_is_taken() -> None:
    """A request of 8 blocks takes 2, 5 and 1 last, and their keys go."""
    pool = after_f3()
    admit(pool, 500, 20)
    pool.release(admit(pool, 100, 32)[1])
    assert [6, 7, 8, 9, 10, 2, 5, 1] == pool.free_queue()

    assert [6, 7, 8, 9, 10, 2, 5, 1] == admit(pool, 900, 128)[1]
    assert [2, 5, 1] == pool.evicted
    assert [] == pool.lookup(keys(100, 32))


def test_f8_a_hole_makes_later_blocks_unreachable_but_they_stay_hashed() -> None:
    """Dropping the key of 2 among 1 .. 4 leaves a hit of 16 tokens."""
    pool = pool_of()
    pool.release(admit(pool, 100, 64)[1])
    queue = [5, 6, 7, 8, 9, 10, 4, 3, 2, 1]
    assert queue == pool.free_queue()

    pool.evict_blocks({2})

    assert queue == pool.free_queue()
    assert [1] == pool.lookup(keys(100, 80))
    assert {1, 3, 4} == set(pool.first.values())


def test_a_block_that_lost_its_key_while_held_goes_to_the_front() -> None:
    """It can no longer be hit, so that nothing is gained by keeping it."""
    pool = pool_of()
    table = admit(pool, 100, 48)[1]
    pool.evict_blocks([2])
    pool.release(table)

    assert [2, 4, 5, 6, 7, 8, 9, 10, 3, 1] == pool.free_queue()


def test_several_unhashed_blocks_keep_their_order_tail_first() -> None:
    """They are prepended together, the tail at the very head."""
    pool = pool_of()
    pool.release(pool.take(3))

    assert [3, 2, 1, 4, 5, 6, 7, 8, 9, 10] == pool.free_queue()


def test_f14_reset_fails_while_a_block_is_held() -> None:
    """Afterwards the ids keep their places and nothing is cached."""
    pool = pool_of()
    table = admit(pool, 100, 32)[1]
    assert not pool.reset()
    assert [1, 2] == pool.lookup(keys(100, 32))

    pool.release(table)
    queue = pool.free_queue()

    assert pool.reset()
    assert queue == pool.free_queue()
    assert [] == pool.lookup(keys(100, 32))
    assert queue == pool.take(10)
    assert [2, 1] == pool.evicted  # by the reset, not by the taking


def test_a_hit_leaves_the_queue_and_returns_to_its_end() -> None:
    """That is what makes eviction least recently used."""
    pool = pool_of(4)
    pool.release(admit(pool, 100, 16)[1])
    pool.release(admit(pool, 200, 16)[1])
    assert [3, 4, 1, 2] == pool.free_queue()

    hits = pool.lookup(keys(100, 16))
    pool.touch(hits)
    assert [3, 4, 2] == pool.free_queue()
    pool.release(hits)

    assert [3, 4, 2, 1] == pool.free_queue()


def test_a_shared_block_is_free_only_after_its_last_release() -> None:
    """Two requests hold block 1; the first one's end frees only its own tail."""
    pool = pool_of(4)
    first = admit(pool, 100, 20)[1]
    second = admit(pool, 100, 24)[1]
    assert ([1, 2], [1, 3]) == (first, second)

    pool.release(first)
    assert [2, 4] == pool.free_queue()
    pool.release(second)

    assert [3, 2, 4, 1] == pool.free_queue()


def test_losing_the_first_copy_names_the_second() -> None:
    """A key is gone only with its last copy."""
    pool = pool_of()
    one = admit(pool, 100, 16)[1]
    two = admit(pool, 100, 16)[1]
    assert one == pool.lookup(keys(100, 16))

    pool.evict_blocks(one)

    assert two == pool.lookup(keys(100, 16))
    assert {} == pool.copies
    pool.evict_blocks(two)
    assert [] == pool.lookup(keys(100, 16))


def test_surrendered_ids_are_taken_next() -> None:
    """Evicted on purpose, the last one named first; the rest keeps its order."""
    pool = pool_of(4)
    pool.release(admit(pool, 100, 48)[1])
    pool.surrender([2, 1])

    assert [1, 2, 4, 3] == pool.free_queue()
    assert [2, 1] == pool.evicted


def state(pool: BlockPool) -> object:
    return attrs.asdict(pool)


@pytest.mark.parametrize(
    ("event", "argument"),
    [
        ("take", 10),
        ("take", -1),
        ("release", [1, 1]),
        ("release", [2, 9]),
        ("release", [2, 11]),
        ("release", [2, 0]),
        ("touch", [1, 9]),
        ("touch", [1, 11]),
        ("touch", [1, -1]),
        ("evict_blocks", [1, 11]),
    ],
)
def test_a_refused_event_changes_nothing(event: str, argument: object) -> None:
    """Too many blocks, free or unknown ids: the pool is as it was."""
    pool = pool_of()
    pool.release(admit(pool, 100, 16)[1])
    admit(pool, 200, 20)
    before = state(pool)

    with pytest.raises(BlockPoolError, match="accepted"):
        getattr(pool, event)(argument)
    assert before == state(pool)


@pytest.mark.parametrize(("blocks", "first_id"), [(0, 0), (1, -1)])
def test_a_pool_has_blocks_and_ids(blocks: int, first_id: int) -> None:
    """Nothing else can be a pool."""
    with pytest.raises(ConfigError, match="accepted"):
        BlockPool.of(blocks, first_id=first_id)


@attrs.define
class Spy:
    """A placement that notes what it is told; nothing else is asked of it here."""

    told: list[int] = attrs.field(factory=list)

    def evict(self, block: int) -> None:
        self.told.append(block)


def spied(blocks: int = 10) -> tuple[BlockPool, Spy]:
    spy = Spy()
    placement = cast("Placement", spy)
    return BlockPool.of(blocks, first_id=1, placement=placement), spy


def test_a_placement_hears_of_an_eviction_when_the_id_is_taken() -> None:
    """Eviction and allocation are one event."""
    pool, spy = spied(3)
    pool.release(admit(pool, 100, 40)[1])
    assert [] == spy.told

    assert [3, 2] == pool.take(2)

    assert [2] == spy.told


def test_content_without_a_key_is_still_placed() -> None:
    """A block that lost its key stays placed until its id is taken."""
    pool, spy = spied(3)
    pool.release(admit(pool, 100, 48)[1])
    pool.evict_blocks([3, 2])
    assert [] == spy.told

    pool.take(2)

    assert [3, 2] == spy.told


def test_full_content_without_a_key_is_evicted_when_it_is_freed() -> None:
    """A placement drops partial blocks by itself and would keep a full one."""
    pool, spy = spied(3)
    table = admit(pool, 100, 40)[1]
    pool.evict_blocks([1])
    pool.release(table)

    assert [1] == spy.told
    assert [3, 1, 2] == pool.free_queue()


def test_reset_tells_the_placement_of_all_content() -> None:
    """With and without a key; and of nothing twice."""
    pool, spy = spied(4)
    pool.release(admit(pool, 100, 48)[1])
    pool.evict_blocks([2])
    pool.reset()
    pool.take(4)

    assert [3, 2, 1] == spy.told


def test_blocks_by_age_are_the_placed_ones() -> None:
    """What a reset or an eviction emptied is not offered again."""
    pool, _ = spied(4)
    pool.release(admit(pool, 100, 48)[1])
    pool.evict_blocks([2])
    assert [3, 2, 1] == list(pool.placed_by_age())
    pool.reset()

    assert [] == list(pool.placed_by_age())


def corruptions() -> Sequence[object]:
    return [
        lambda pool: pool.fresh.append(1),
        lambda pool: pool.fresh.pop(),
        lambda pool: pool.first.clear(),
        lambda pool: pool.key.__setitem__(pool.fresh[0], "stray"),
        lambda pool: pool.first.update(dict.fromkeys(pool.first, 10)),
    ]


@pytest.mark.parametrize("corrupt", corruptions())
def test_check_finds_contradictions(corrupt: object) -> None:
    """Each way of breaking the pool breaks a fact that `check` names."""
    pool = pool_of()
    admit(pool, 100, 40)
    assert [] == pool.check()
    corrupt(pool)  # type: ignore[operator]

    assert pool.check()
