"""What is kept of blocks, and how they live (Paper 4.5)."""

from __future__ import annotations

import attrs
import pytest

from patton.errors import SharedBlockError, UnwrittenReadError
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.llama import place
from tests.paper.setting import LLAMA, TOKENS, decode, grow, prefill, served


def memory(runtime: Runtime) -> tuple[int, int]:
    """Free places of all pairs, and free slots."""
    state = runtime.placements
    places = sum(mask.bit_count() for mask in state.pool.free_places)
    return places, state.zone.free_count()


def test_placements_are_found_by_block_id() -> None:
    """Whatever order ids come in, and whichever requests have them.

    Reference: section 4.5, sentence 1.1.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [77, 3], 2 * TOKENS)
    prefill(runtime, "b", [50], TOKENS)
    found = {block: place(runtime, block).granule for block in (77, 3, 50)}

    assert found[3] == found[77] + 1
    assert {g: b for b, g in found.items()} == {
        granule: runtime.placements.block_at[granule] for granule in found.values()
    }
    assert runtime.placement(4) is None


def test_an_entry_has_the_visible_place_and_the_reserved_one() -> None:
    """The granule of Key and Value, and beside it the slot while the block is there.

    Reference: section 4.5, sentence 1.2.
    """
    runtime = served(LLAMA)
    grow(runtime, "a", [0], TOKENS - 1)
    waiting = place(runtime, 0)
    runtime.publish(decode(runtime, ["a"]))
    home = place(runtime, 0)

    assert (0, None) == (waiting.slot, home.slot)
    assert waiting.granule == home.granule


def test_a_request_knows_its_blocks_and_its_pairs_with_room() -> None:
    """The pairs that it has filled are not offered to its next block.

    Reference: section 4.5, sentence 1.3.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", range(16), 16 * TOKENS)
    state = runtime.placements.requests["a"]
    first = place(runtime, 0).granule // 16
    assert ([first], []) == (state.pairs, state.open)
    prefill(runtime, "a", [20], 3)

    second = place(runtime, 20).granule // 16
    assert [*range(16), 20] == [*state.blocks]
    assert ([first, second], [second]) == (state.pairs, state.open)


def test_metadata_says_which_block_and_the_offset_where_in_it() -> None:
    """Position p is token p % 16 of the request's block p // 16.

    Reference: section 4.5, sentence 1.4.
    """
    runtime = served(LLAMA)
    blocks = [9, 4, 30]
    grow(runtime, "a", blocks, 5)
    for position in range(5, 40):
        (segment,) = decode(runtime, ["a"]).segments

        block = blocks[position // TOKENS]
        assert (block, position % TOKENS, 1) == (
            segment.block,
            segment.start,
            segment.tokens,
        )
        assert place(runtime, block).granule == segment.granule


def test_prefill_binds_what_is_new_and_writes_what_is_scheduled() -> None:
    """A hit takes no memory, and only the positions after it are written.

    Reference: section 4.5, sentence 2.1.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [0, 1], 2 * TOKENS)
    before = [place(runtime, block) for block in (0, 1)]
    free = memory(runtime)[0]
    step = Step(grants=[("b", [0, 1], [5, 6])], writes=[("b", 2 * TOKENS, 20)])
    plan = runtime.apply_step(step)

    assert free - 2 == memory(runtime)[0]
    assert [(5, 0, 16), (6, 0, 4)] == [
        (s.block, s.start, s.tokens) for s in plan.segments
    ]
    assert [attrs.evolve(p, references=2) for p in before] == [
        place(runtime, block) for block in (0, 1)
    ]


def test_decode_takes_memory_only_for_a_new_block() -> None:
    """Fifteen of 16 tokens go where the block's first one went.

    Reference: section 4.5, sentences 2.2, 2.3.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [0, 1], TOKENS + 1)
    free, home = memory(runtime), place(runtime, 1)
    for _ in range(TOKENS - 1):
        plan = decode(runtime, ["a"])
        (segment,) = plan.segments
        assert (home.granule, home.slot) == (segment.granule, segment.slot)
        assert free == memory(runtime)
    runtime.publish(plan)
    runtime.bind("a", 2)

    assert free[0] - 1 == memory(runtime)[0]


def test_sharing_counts_a_reference_and_caching_none() -> None:
    """Either way the block stays where it is, and only eviction takes it away.

    Reference: section 4.5, sentences 3.1, 3.2.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [0], TOKENS)
    first, free = place(runtime, 0), memory(runtime)

    def seen() -> int:
        now = place(runtime, 0)
        assert attrs.evolve(now, references=1) == first
        assert free == memory(runtime)
        return now.references

    found = [seen()]
    runtime.share("b", 0)
    found.append(seen())
    for name in ("a", "b"):
        runtime.finish(name)
        found.append(seen())
    runtime.apply_step(Step(grants=[("c", [0], [])]))
    found.append(seen())
    runtime.finish("c")
    runtime.evict(0)

    assert [1, 2, 1, 0, 1] == found
    assert (None, free[0] + 1) == (runtime.placement(0), memory(runtime)[0])


def test_a_partial_block_is_private_and_writable() -> None:
    """Others may share it only if the same step fills it, and then read it too.

    Ours: LIFE-SHARE, STEP-SHARED, LIFE-WRITER.
    Reference: section 4.5, sentence 3.3.
    """
    runtime = served(LLAMA)
    prefill(runtime, "a", [0], 5)
    with pytest.raises(UnwrittenReadError, match="block 0"):
        runtime.apply_step(Step(grants=[("b", [0], [])]))
    assert [5] == [segment.start for segment in decode(runtime, ["a"]).segments]
    fills = Step(
        grants=[("b", [0], [])],
        writes=[("a", 6, TOKENS - 6)],
        reads=[("b", 0, TOKENS)],
    )
    runtime.apply_step(fills)

    assert (2, 0) == (place(runtime, 0).references, place(runtime, 0).slot)
    with pytest.raises(SharedBlockError, match="bound by another request"):
        runtime.write("b", TOKENS - 1, 1)


def test_the_last_block_to_be_evicted_frees_the_pair() -> None:
    """Key and Value of a block go together, and its place can be taken again.

    Reference: section 4.5, sentence 3.4.
    """
    runtime = served(LLAMA)
    free = runtime.free_pairs
    prefill(runtime, "a", range(3), 3 * TOKENS)
    runtime.finish("a")
    left = []
    for block in (1, 2, 0):
        granule = place(runtime, block).granule
        runtime.evict(block)
        assert -1 == runtime.placements.block_at[granule]
        left.append(free - runtime.free_pairs)

    assert [1, 1, 0] == left


def test_ending_with_a_partial_block_gives_up_slot_and_place() -> None:
    """The blocks before it stay cached.

    Reference: section 4.5, sentence 3.5.
    """
    runtime = served(LLAMA)
    before = memory(runtime)
    prefill(runtime, "a", [0, 1], TOKENS + 3)
    assert (before[0] - 2, before[1] - 1) == memory(runtime)
    runtime.finish("a")

    assert (before[0] - 1, before[1]) == memory(runtime)
    assert (0, None) == (place(runtime, 0).references, runtime.placement(1))
