"""BlockPIM under an engine with a prefix cache: cached blocks make room when needed."""

from __future__ import annotations

import attrs

from patton.config import aim_gddr6, model_preset
from patton.engine.conversations import chat
from patton.engine.serving import LoopSettings, ServingLoop
from patton.engine.session import step_of
from patton.engine.workloads import Workload
from patton.steps import Step
from patton.systems import Memory, system

MODEL = "llama3-8b"


def memory_of(rows: int) -> Memory:
    device = attrs.evolve(aim_gddr6(), rows=rows)
    return system("blockpim").on(device, model_preset(MODEL))


def test_cached_blocks_are_candidates_until_they_are_shared_again() -> None:
    """Two requests of two full blocks end; a third goes on with the first's."""
    memory = memory_of(16_384)
    for request, first in (("a", 0), ("b", 2)):
        memory.apply(
            Step(grants=[(request, [], [first, first + 1])], writes=[(request, 0, 256)])
        )
    assert 0 == memory.evictable_pairs

    memory.finish("a")
    memory.finish("b")
    assert [1, 0, 3, 2] == list(memory.eviction_candidates())
    assert [(3,), 4] == [memory.blocks_of_pair(3), memory.evictable_pairs]

    memory.share("c", 0)
    memory.evict(1)
    assert [3, 2] == list(memory.eviction_candidates())


def test_an_engine_evicts_what_is_cached_before_it_preempts() -> None:
    """Conversations one after another fill the device with what nobody needs."""
    memory = memory_of(1024)
    source = Workload("test", "test", lambda _: iter([chat([(700, 20)])] * 60))
    settings = LoopSettings(
        concurrency=2, pool=2, block_tokens=memory.block_tokens, wrap=False
    )
    loop = ServingLoop.of(
        source,
        settings,
        memory.blocks,
        placement=memory,
        pair_blocks=memory.pair_blocks,
    )
    while not loop.is_exhausted:
        record = loop.step()
        memory.publish(memory.apply(step_of(record)))
        loop.completed(record)

    assert loop.statistics.evictions > 0
    assert 0 == loop.statistics.preemptions
    assert 60 == loop.statistics.turns
