"""Memory that a request owns: nothing is shared, nothing outlives its request.

`Slots` is a placement of the kind that systems before paged caches have: a request owns
whole units and gives them back when it ends. (Paper 5.2)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import pytest

from patton.config import device_preset, model_preset
from patton.engine.conversations import chat
from patton.engine.requests import StepRecord
from patton.engine.scheduler import Scheduler
from patton.engine.serving import LoopSettings, ServingLoop
from patton.engine.session import RunSettings, Session
from patton.engine.synthetic import SyntheticSettings, synthetic
from patton.engine.workloads import Workload
from patton.errors import ConfigError, RequestTooLargeError
from patton.layout import Layout


@attrs.define
class Slots:
    """`free` units of `size` blocks each; held: blocks of each request."""

    free: int
    size: int
    held: dict[int, list[int]] = attrs.field(factory=dict)

    def share(self, request: int, block: int) -> None:
        raise AssertionError(f"request {request} shares block {block}")

    def evict(self, block: int) -> None:
        raise AssertionError(f"block {block} was cached")

    def bind(self, request: int, block: int) -> None:
        held = self.held.setdefault(request, [])
        if len(held) % self.size == 0:
            assert self.free
            self.free -= 1
        held.append(block)
        bound = [block for blocks in self.held.values() for block in blocks]
        assert len(set(bound)) == len(bound)

    def finish(self, request: int) -> None:
        self.free += self._units(self.held.pop(request))

    def bindable(self, request: int, shares: Sequence[int] = ()) -> int:
        assert not shares
        held = self.held.get(request, [])
        return (self._units(held) + self.free) * self.size - len(held)

    def eviction_candidates(self) -> Iterator[int]:
        return iter(())

    def blocks_of_pair(self, pair: int) -> Sequence[int]:
        raise AssertionError(f"no pair {pair} was named")

    @property
    def evictable_pairs(self) -> int:
        return 0

    def _units(self, held: list[int]) -> int:
        return -(-len(held) // self.size)


def loop_of(
    conversations: list[list[tuple[int, int]]],
    slots: Slots,
    blocks: int,
    **settings: Any,
) -> ServingLoop:
    """A closed loop on memory of `slots`; conversations of (user, answer) tokens."""
    source = Workload("test", "test", lambda _: map(chat, conversations))
    owned = LoopSettings(caching=False, wrap=False, **settings)
    return ServingLoop.of(source, owned, blocks, placement=slots)


def running(record: StepRecord) -> list[tuple[int, int, int]]:
    return [(request.id, start, count) for request, start, count, _ in record.scheduled]


def test_the_next_turn_computes_its_whole_prompt_again() -> None:
    """Turns of 40 + 8 and 10 + 4 tokens: 40, then 58 prompt tokens, no hit."""
    slots = Slots(free=2, size=4)
    loop = loop_of([[(40, 8), (10, 4)]], slots, 8, pool=1)
    statistics = loop.run(100)

    assert (98, 0) == (statistics.prompt_tokens, statistics.hit_tokens)
    assert 98 == statistics.prefill_tokens
    assert 0 == statistics.evictions
    assert (2, {}) == (slots.free, slots.held)
    assert loop.is_exhausted


def test_two_requests_of_one_prefix_share_nothing_in_the_step_that_fills_it() -> None:
    """Equal prompts of 32 tokens, admitted together, take two blocks each."""
    source = synthetic(
        SyntheticSettings(system_prompts=1, system_share=1.0, conversations=2)
    )
    slots = Slots(free=200, size=1)
    loop = ServingLoop.of(
        source, LoopSettings(caching=False, wrap=False), 200, placement=slots
    )
    record = loop.step()

    assert 2 == len(record.admissions)
    assert [0, 0] == [admission.hit_tokens for admission in record.admissions]
    assert 0 == record.same_step_shares
    assert [[], []] == [shared for _, shared, _ in record.grants]


def test_a_request_waits_until_a_slot_is_free() -> None:
    """One slot: the second of two short conversations begins when the first ends."""
    slots = Slots(free=1, size=8)
    loop = loop_of([[(5, 3)], [(5, 3)]], slots, 16, pool=2)
    records = []
    while not loop.is_exhausted:
        records.append(loop.step())
        loop.completed(records[-1])

    assert [0, 0, 0, 1, 1, 1] == [
        request for record in records for request, _, _ in running(record)
    ]
    assert not any(record.preempted for record in records)


def test_growth_preempts_and_what_was_preempted_begins_anew() -> None:
    """Units of one block, three of them: the later request gives way at token 17."""
    slots = Slots(free=3, size=1)
    loop = loop_of([[(16, 20)], [(16, 20)]], slots, 3, pool=2)
    statistics = loop.run(200)

    assert (1, 1) == (statistics.preemptions, statistics.readmissions)
    assert 0 == statistics.readmitted_hit_tokens
    assert 2 == statistics.turns
    assert (3, {}) == (slots.free, slots.held)


def test_a_request_that_no_memory_holds_is_refused_by_its_number_of_blocks() -> None:
    """60 tokens need 4 blocks; the ids would do, the slot has 2."""
    loop = loop_of([[(60, 2)]], Slots(free=1, size=2), 10, pool=1)
    with pytest.raises(RequestTooLargeError, match=r"4 blocks; available.*: 2"):
        loop.step()


def test_a_plain_pool_without_caching_hits_nothing() -> None:
    """Caching is a property of the engine, whatever holds the blocks."""
    source = synthetic(SyntheticSettings(seed=3, scale=0.3))
    settings = LoopSettings(concurrency=8, pool=12, max_context=600)
    cached, owned = (
        ServingLoop.of(source, attrs.evolve(settings, caching=caching), 2000).run(300)
        for caching in (True, False)
    )

    assert cached.hit_tokens > 0 == owned.hit_tokens
    assert owned.prefill_tokens > cached.prefill_tokens
    assert 0 == owned.evictions


def test_caching_is_on_unless_it_is_switched_off() -> None:
    """The engine is vLLM's by default."""
    assert LoopSettings().caching
    assert Scheduler.of(4).caching


def test_patton_itself_is_not_run_without_its_cache() -> None:
    """Its full blocks stay until they are evicted; a typed refusal says so."""
    settings = RunSettings(
        synthetic(),
        Layout.of(device_preset("tiny"), model_preset("tiny")),
        LoopSettings(caching=False),
        steps=1,
    )
    with pytest.raises(ConfigError, match="caching is False"):
        Session.of(settings)
