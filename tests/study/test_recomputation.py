"""Which prefill a runtime causes: turn by turn, on conversations of a few tokens."""

from __future__ import annotations

import attrs

from patton.engine.conversations import chat
from patton.engine.serving import LoopSettings, ServingLoop
from patton.engine.synthetic import SyntheticSettings, synthetic
from patton.engine.workloads import Workload
from patton.study.prefill import Batches
from patton.study.recomputation import CacheReference, PrefillMeter


def chats(*conversations: list[tuple[int, int]]) -> Workload:
    return Workload("test", "test", lambda _: map(chat, conversations))


def metered(
    source: Workload, settings: LoopSettings, blocks: int, *, plain: int | None = None
) -> PrefillMeter:
    """A run to its end on `blocks`, against a plain cache of `plain` blocks."""
    meter = PrefillMeter(CacheReference.of(source, settings, plain or blocks))
    loop = ServingLoop.of(source, settings, blocks)
    while not loop.is_exhausted and loop.statistics.steps < 400:
        record = loop.step()
        loop.completed(record)
        meter.add(record)
    return meter


def sums(batches: Batches) -> tuple[int, int, int]:
    tokens, pairs, context = attrs.astuple(batches)
    return int(tokens.sum()), int(pairs.sum()), int(context.sum())


TWO_TURNS = [(40, 8), (10, 4)]
ALONE = LoopSettings(pool=1, wrap=False)


def test_what_a_cache_hits_needs_no_prefill() -> None:
    """Turns of 40 and 58 prompt tokens; 2 blocks of 16 are full of the first 47."""
    meter = metered(chats(TWO_TURNS), ALONE, 20)

    # The second turn finds 32 tokens and computes 26 at the positions 32 to 57.
    pairs = 40 * 41 // 2 + (58 * 59 - 32 * 33) // 2
    assert (66, pairs, 98) == sums(meter.complete.batches())
    assert sums(meter.required.batches()) == sums(meter.complete.batches())


def test_without_a_cache_the_second_prompt_is_computed_again() -> None:
    """All 58 tokens, of which the 26 after the reference's hit are required."""
    owned = attrs.evolve(ALONE, caching=False)
    meter = metered(chats(TWO_TURNS), owned, 20)

    assert (98, 40 * 41 // 2 + 58 * 59 // 2, 98) == sums(meter.complete.batches())
    assert 66 == sums(meter.required.batches())[0]


def test_chunks_share_what_is_required() -> None:
    """The same with 16 tokens a step: required are positions 32 to 57 in two chunks."""
    owned = attrs.evolve(ALONE, caching=False, token_budget=16)
    meter = metered(chats(TWO_TURNS), owned, 20)
    required = meter.required.batches()

    assert [16, 16, 8, 16, 10] == [n for n in required.tokens.tolist() if n]
    assert 98 == sums(meter.complete.batches())[0]


def test_computing_again_after_a_preemption_is_not_required() -> None:
    """Two requests of 16 + 40 tokens on four blocks; the reference has room for both.

    The second gives way at token 33, and computes its 33 known tokens again.
    """
    source = chats([(16, 40)], [(16, 40)])
    settings = LoopSettings(pool=2, wrap=False)
    meter = metered(source, settings, 4, plain=20)

    assert 32 == sums(meter.required.batches())[0]
    assert 32 + 33 == sums(meter.complete.batches())[0]


def test_blocks_of_any_size_are_measured_against_a_cache_of_16() -> None:
    """Blocks of 32 tokens hit less: 32 of 58, not 48."""
    meter = metered(
        chats([(50, 10), (10, 4)]), attrs.evolve(ALONE, block_tokens=32), 20
    )

    assert 50 + (70 - 32) == sums(meter.complete.batches())[0]
    assert 50 + (70 - 48) == sums(meter.required.batches())[0]


def test_required_is_what_the_reference_itself_computes() -> None:
    """On a workload with shared prefixes and no pressure, token for token."""
    source = synthetic(SyntheticSettings(seed=2, scale=0.3))
    settings = LoopSettings(concurrency=8, pool=12, max_context=600)
    cached = metered(source, settings, 4000)
    owned = metered(source, attrs.evolve(settings, caching=False), 4000)

    assert sums(cached.complete.batches()) == sums(cached.required.batches())
    assert sums(owned.required.batches())[0] < sums(owned.complete.batches())[0]
