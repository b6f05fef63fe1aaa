"""The scheduler in vLLM's order, on cases small enough to be worked out by hand.

Not covered here: placements (test_placement_gate).
"""

from __future__ import annotations

from random import Random
from typing import Any

import attrs
import pytest

from patton.engine.requests import Request, StepRecord
from patton.engine.scheduler import Scheduler
from patton.engine.tokens import ConversationTokens, prefix_base, private_base
from patton.errors import ConfigError, EngineStateError, RequestTooLargeError


def request(
    number: int,
    prompt: int,
    output: int,
    *,
    conversation: int | None = None,
    prefix: int = 0,
) -> Request:
    """A request of conversation `number` that begins with `prefix` shared tokens."""
    owner = number if conversation is None else conversation
    tokens = ConversationTokens(private_base(owner), prefix_base(0), prefix)
    return Request.of(number, prompt, output, tokens)


def scheduled(record: StepRecord) -> list[tuple[int, int, int]]:
    return [(request.id, start, count) for request, start, count, _ in record.scheduled]


def serve(scheduler: Scheduler, steps: int) -> list[StepRecord]:
    records = []
    for _ in range(steps):
        records.append(scheduler.schedule())
        scheduler.complete(records[-1])
    return records


def test_a_request_is_prefilled_then_decoded_one_token_a_step() -> None:
    """20 prompt and 3 output tokens: positions 0-19, 20, 21, but never the last."""
    scheduler = Scheduler.of(4)
    one = request(0, 20, 3)
    scheduler.add(one)
    records = serve(scheduler, 3)

    assert [[(0, 0, 20)], [(0, 20, 1)], [(0, 21, 1)]] == [*map(scheduled, records)]
    assert [False, True, True] == [record.scheduled[0][3] for record in records]
    assert [[], [], [one]] == [record.finished for record in records]
    assert scheduler.is_idle
    assert (22, 23) == (one.computed, one.known)


def test_f5_an_aligned_prompt_ends_with_a_block_of_15() -> None:
    """16 + 16 tokens: the last is never written, so that block 2 is never full."""
    scheduler = Scheduler.of(4)
    scheduler.add(request(0, 16, 16))
    serve(scheduler, 16)

    assert scheduler.is_idle
    assert 1 == len(scheduler.pool.recent)


def test_a_long_prompt_is_cut_by_the_budget() -> None:
    """40 tokens under a budget of 16: 16, 16, 8; two chunks were cut short."""
    scheduler = Scheduler.of(4, token_budget=16)
    scheduler.add(request(0, 40, 2))
    records = serve(scheduler, 4)

    expected = [[(0, 0, 16)], [(0, 16, 16)], [(0, 32, 8)], [(0, 40, 1)]]
    assert expected == [*map(scheduled, records)]
    assert [1, 1, 0, 0] == [record.chunked for record in records]
    assert [1, 1, 1, 0] == [sum(len(b) for *_, b in r.grants) for r in records]


def test_running_requests_come_before_waiting_ones() -> None:
    """Decodes first, in list order; the waiting one gets what the budget leaves."""
    scheduler = Scheduler.of(20, token_budget=32)
    scheduler.add(request(0, 10, 9))
    scheduler.add(request(1, 10, 9))
    serve(scheduler, 1)
    scheduler.add(request(2, 100, 9))
    record = scheduler.schedule()

    assert [(0, 10, 1), (1, 10, 1), (2, 0, 30)] == scheduled(record)


def test_at_most_concurrency_requests_run() -> None:
    """The third waits until one ends."""
    scheduler = Scheduler.of(20, concurrency=2)
    for number in range(3):
        scheduler.add(request(number, 10, 1 + number))
    records = serve(scheduler, 2)

    assert [(0, 0, 10), (1, 0, 10)] == scheduled(records[0])
    assert [(1, 10, 1), (2, 0, 10)] == scheduled(records[1])


def test_a_later_turn_hits_the_generated_tokens_too() -> None:
    """Turn 1 has 20 + 20 tokens, 39 written: 32 hit; turn 2 recomputes from there."""
    scheduler = Scheduler.of(10)
    scheduler.add(request(0, 20, 20, conversation=7))
    serve(scheduler, 20)
    scheduler.add(request(1, 50, 1, conversation=7))
    record = scheduler.schedule()

    assert [(1, 32, 18)] == scheduled(record)
    assert [(1, [0, 1], [2, 3])] == record.grants
    assert [32] == [admission.hit_tokens for admission in record.admissions]


def test_the_hit_leaves_at_least_one_token() -> None:
    """A prompt of exactly two cached blocks hits one; of 33 tokens it hits both."""
    for prompt, hit in ((32, 16), (33, 32)):
        scheduler = Scheduler.of(10)
        scheduler.add(request(0, 40, 1, conversation=7))
        serve(scheduler, 1)
        scheduler.add(request(1, prompt, 1, conversation=7))

        assert [(1, hit, prompt - hit)] == scheduled(scheduler.schedule())


def test_f13_a_block_is_hashed_when_it_is_scheduled() -> None:
    """A request admitted in the same step hits what another computes in this step."""
    scheduler = Scheduler.of(10)
    scheduler.add(request(0, 40, 2, prefix=32))
    scheduler.add(request(1, 50, 2, prefix=32))
    record = scheduler.schedule()

    assert [(0, 0, 40), (1, 32, 18)] == scheduled(record)
    assert [(0, [], [0, 1, 2]), (1, [0, 1], [3, 4])] == record.grants
    assert 2 == record.same_step_shares


def test_a_block_filled_before_is_no_same_step_share() -> None:
    """Sharing cached blocks is counted as a hit only."""
    scheduler = Scheduler.of(10)
    scheduler.add(request(0, 40, 9, prefix=32))
    serve(scheduler, 1)
    scheduler.add(request(1, 50, 2, prefix=32))

    assert 0 == scheduler.schedule().same_step_shares


def two_on_four_blocks() -> Scheduler:
    """Two requests of 16 + 40 tokens that fill four blocks and both want a fifth."""
    scheduler = Scheduler.of(4)
    scheduler.add(request(0, 16, 40))
    scheduler.add(request(1, 16, 40))
    serve(scheduler, 17)
    return scheduler


def test_the_last_running_request_is_preempted() -> None:
    """0 takes the tail block of 1, whose content goes; nobody is admitted."""
    scheduler = two_on_four_blocks()
    record = scheduler.schedule()

    assert [1] == record.preempted
    assert [(0, 32, 1)] == scheduled(record)
    assert [(0, [], [3])] == record.grants
    assert [3] == record.evicted
    assert [1] == [waiting.id for waiting in scheduler.waiting]


def test_a_preempted_request_starts_over_from_what_is_cached() -> None:
    """1 waits for its whole known sequence of 33 tokens, then hits 16 of them."""
    scheduler = two_on_four_blocks()
    scheduler.add(request(2, 8, 1))
    records = serve(scheduler, 23)

    # 0 needs 3 blocks, then 4: the second one takes the rest of what 1 had cached.
    assert all([(0, 32 + i, 1)] == scheduled(r) for i, r in enumerate(records))
    record = scheduler.schedule()
    assert [(1, 0, 33), (2, 0, 8)] == scheduled(record)
    again = record.admissions[0]
    assert (1, 33, 0, True) == attrs.astuple(again)
    assert not record.admissions[1].readmitted


def test_recomputed_tokens_are_prefill_and_the_next_is_decode() -> None:
    """What was generated before a preemption is known when it starts over."""
    scheduler = two_on_four_blocks()
    records = serve(scheduler, 25)
    kinds = [(start, kind) for r, start, _, kind in records[-2].scheduled if r.id == 1]
    later = [(start, kind) for r, start, _, kind in records[-1].scheduled if r.id == 1]

    assert [(0, False)] == kinds
    assert [(33, True)] == later


def test_preempted_requests_wait_in_their_running_order() -> None:
    """Two victims of one step: the one that ran first waits first, before others."""
    scheduler = Scheduler.of(6)
    scheduler.add(request(0, 60, 37))
    scheduler.add(request(1, 16, 3))
    scheduler.add(request(2, 15, 3))
    serve(scheduler, 1)
    scheduler.add(request(3, 16, 3))
    # Its next chunk takes two more blocks, as that of a cut prompt would.
    scheduler.running[0].known = 96
    record = scheduler.schedule()

    assert [2, 1] == record.preempted
    assert [1, 2, 3] == [waiting.id for waiting in scheduler.waiting]
    assert [(0, 60, 36)] == scheduled(record)


def test_f11_a_request_that_does_not_fit_takes_nothing() -> None:
    """Three blocks of five are held: a request of three leaves the queue alone."""
    scheduler = Scheduler.of(5)
    scheduler.add(request(0, 48, 4))
    serve(scheduler, 1)
    queue = scheduler.pool.free_queue()
    scheduler.add(request(1, 48, 4))
    record = scheduler.schedule()

    assert [(0, 48, 1)] == scheduled(record)
    assert [4] == scheduler.pool.free_queue()
    assert [3, 4] == queue


def test_the_whole_known_sequence_must_fit_at_admission() -> None:
    """A first chunk of one block would fit, the prompt of three does not."""
    scheduler = Scheduler.of(4, token_budget=18)
    scheduler.add(request(0, 18, 9))
    serve(scheduler, 1)
    scheduler.add(request(1, 40, 2))

    assert [(0, 18, 1)] == scheduled(scheduler.schedule())


def test_hits_that_nobody_holds_count_as_taken_from_the_queue() -> None:
    """Four free blocks, two of them hits: a request of five blocks must wait."""
    scheduler = Scheduler.of(6)
    scheduler.add(request(0, 33, 1, conversation=7))
    serve(scheduler, 1)
    scheduler.add(request(1, 20, 5))
    serve(scheduler, 1)
    scheduler.add(request(2, 70, 5, conversation=7))
    assert 4 == scheduler.pool.free_count

    assert [(1, 20, 1)] == scheduled(scheduler.schedule())


def test_waiting_is_first_come_first_served() -> None:
    """A small request does not pass a large one that must wait."""
    scheduler = Scheduler.of(4)
    scheduler.add(request(0, 30, 9))
    serve(scheduler, 1)
    scheduler.add(request(1, 60, 2))
    scheduler.add(request(2, 2, 2))

    assert [(0, 30, 1)] == scheduled(scheduler.schedule())


def test_a_request_larger_than_the_pool_is_refused() -> None:
    """65 tokens to write in four blocks; 64 are taken."""
    scheduler = Scheduler.of(4)
    with pytest.raises(RequestTooLargeError) as caught:
        scheduler.add(request(0, 60, 6))

    assert (0, 5, 4) == attrs.astuple(caught.value)
    scheduler.add(request(1, 60, 5))
    serve(scheduler, 5)
    assert scheduler.is_idle


def test_steps_are_scheduled_and_completed_in_turn() -> None:
    """Anything else is refused and leaves the step open."""
    scheduler = Scheduler.of(4)
    scheduler.add(request(0, 4, 4))
    record = scheduler.schedule()
    with pytest.raises(EngineStateError, match="step 0 is not completed"):
        scheduler.schedule()
    with pytest.raises(EngineStateError, match="step 9"):
        scheduler.complete(StepRecord(9))
    scheduler.complete(record)
    with pytest.raises(EngineStateError, match="step 0"):
        scheduler.complete(record)

    assert [(0, 4, 1)] == scheduled(scheduler.schedule())


@pytest.mark.parametrize("name", ["concurrency", "token_budget", "block_tokens"])
def test_limits_are_positive(name: str) -> None:
    """Zero of anything would stand still."""
    limits: dict[str, Any] = {name: 0}
    with pytest.raises(ConfigError, match=name):
        Scheduler.of(4, **limits)


@pytest.mark.parametrize(("prompt", "output"), [(0, 1), (1, 0)])
def test_a_request_has_a_prompt_and_an_answer(prompt: int, output: int) -> None:
    """Neither can be empty."""
    with pytest.raises(ConfigError, match="at least 1"):
        request(0, prompt, output)


@pytest.mark.parametrize("seed", range(8))
def test_random_requests_all_end_and_every_step_is_consistent(seed: int) -> None:
    """Budget, order, tables, references and levels agree after every step."""
    random = Random(seed)
    blocks, budget = random.randint(8, 24), random.choice((8, 20, 64))
    scheduler = Scheduler.of(blocks, concurrency=5, token_budget=budget)
    ended: list[Request] = []
    longest = blocks * 16
    preempted = 0
    for number in range(60):
        prompt = random.randint(1, longest // 2)
        output = random.randint(1, longest // 3)
        prefix = random.choice((0, 20, 40)) * (prompt > 40)
        scheduler.add(request(number, prompt, output, prefix=prefix))
    while not scheduler.is_idle:
        record = scheduler.schedule()
        check_step(scheduler, record, budget)
        preempted += len(record.preempted)
        ended += scheduler.complete(record)

    assert list(range(60)) == sorted(done.id for done in ended)
    assert all(done.final_tokens - 1 == done.computed for done in ended)
    assert preempted


def check_step(scheduler: Scheduler, record: StepRecord, budget: int) -> None:
    assert sum(count for _, _, count, _ in record.scheduled) <= budget
    assert record.scheduled or record.preempted
    assert not (record.preempted and record.admissions)
    order = [request.id for request, *_ in record.scheduled]
    assert [r.id for r in scheduler.running][: len(order)] == order
    for one, start, count, decode in record.scheduled:
        assert one.computed == start
        assert -(-(start + count) // 16) == len(one.blocks)
        assert (start + count) // 16 == one.hashed
        assert decode == (start >= one.prompt_tokens and start + 1 == one.known)
    references = [0] * scheduler.pool.blocks
    for one in scheduler.running:
        for block in one.blocks:
            references[block] += 1
    assert references == scheduler.pool.references
    assert [] == scheduler.pool.check()
