"""The closed loop: who is open, what comes next, and what is counted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from patton.engine.conversations import Conversation, Turn, chat
from patton.engine.formats import Reading
from patton.engine.requests import StepRecord
from patton.engine.serving import (
    MOST_OPEN,
    LoopSettings,
    ServingLoop,
    Statistics,
    reference_hit_rate,
)
from patton.engine.synthetic import SyntheticSettings, synthetic
from patton.engine.workloads import Workload, open_workload
from patton.errors import ConfigError, RequestTooLargeError, WorkloadError


def workload(*conversations: Conversation) -> Workload:
    def read(reading: Reading) -> Iterator[Conversation]:
        for conversation in conversations:
            reading.records += 1
            yield conversation

    return Workload("ours", "test", read)


def chats(*turns: list[tuple[int, int]]) -> Workload:
    return workload(*map(chat, turns))


def serve(loop: ServingLoop, steps: int) -> list[StepRecord]:
    records = []
    for _ in range(steps):
        records.append(loop.step())
        loop.completed(records[-1])
    return records


def running(record: StepRecord) -> list[tuple[int, int]]:
    """(conversation, turn) of every scheduled request."""
    return [(r.conversation, r.turn) for r, *_ in record.scheduled]


def test_the_next_turn_is_queued_when_one_ends() -> None:
    """Two turns of one token each, then the next conversation, with all the history."""
    loop = ServingLoop.of(
        chats([(20, 1), (5, 1)], [(7, 1)]), LoopSettings(pool=1, wrap=False), 10
    )
    records = serve(loop, 3)

    assert [[(0, 0)], [(0, 1)], [(1, 0)]] == [*map(running, records)]
    assert [20, 26, 7] == [record.scheduled[0][0].prompt_tokens for record in records]
    assert loop.is_exhausted


def test_next_turns_queue_behind_the_other_open_conversations() -> None:
    """Pool 3, one at a time: every conversation takes its turn."""
    loop = ServingLoop.of(
        chats(*[[(9, 1)] * 2] * 4),
        LoopSettings(pool=3, concurrency=1, wrap=False),
        10,
    )
    order = [running(record)[0] for record in serve(loop, 8)]

    expected = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (3, 0), (3, 1)]
    assert expected == order


def test_at_most_pool_conversations_are_open() -> None:
    """And at most `concurrency` of them run."""
    loop = ServingLoop.of(
        chats(*[[(9, 4)]] * 9), LoopSettings(pool=4, concurrency=2, wrap=False), 10
    )
    while not loop.is_exhausted:
        assert len(loop.open) <= 4
        record = loop.step()
        assert len(record.scheduled) <= 2
        loop.completed(record)

    assert 9 == loop.statistics.turns


def test_a_conversation_ends_before_the_turn_beyond_the_limit() -> None:
    """50 tokens of prompt and answer are taken, 51 are not; later turns are dropped."""
    loop = ServingLoop.of(
        chats([(20, 20), (5, 5), (1, 1)], [(25, 25), (1, 1)], [(51, 1)], [(8, 1)]),
        LoopSettings(pool=1, max_context=50, wrap=False),
        10,
    )
    turns = {turn for record in serve(loop, 51) for turn in running(record)}

    assert {(0, 0), (0, 1), (1, 0), (3, 0)} == turns
    assert loop.is_exhausted


def test_an_exhausted_workload_begins_anew_with_new_tokens() -> None:
    """Nothing of the first pass is hit in the second."""
    loop = ServingLoop.of(chats([(40, 1)]), LoopSettings(pool=1), 10)
    records = serve(loop, 5)

    assert [[(n, 0)] for n in range(5)] == [*map(running, records)]
    assert 0 == loop.statistics.hit_tokens
    assert 6 == loop.readings  # the sixth conversation waits


def test_a_workload_that_never_fits_is_refused() -> None:
    """A pass without a single turn would be followed by others for ever."""
    for source in (chats([(60, 1)]), chats()):
        with pytest.raises(WorkloadError, match="at most 50 tokens"):
            ServingLoop.of(source, LoopSettings(max_context=50), 10)


def test_a_generator_that_never_fits_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has no end at which to notice, so a number of conversations must do."""
    monkeypatch.setattr("patton.engine.serving.MOST_MISFITS", 500)
    with pytest.raises(WorkloadError, match="at most 1 tokens"):
        ServingLoop.of(synthetic(), LoopSettings(max_context=1), 10)


def test_a_pool_that_would_take_all_memory_is_refused() -> None:
    with pytest.raises(ConfigError, match=f"1 to {MOST_OPEN}"):
        ServingLoop.of(synthetic(), LoopSettings(pool=MOST_OPEN + 1), 10)


def test_without_wrap_an_empty_workload_is_exhausted_at_once() -> None:
    """Steps on it do nothing."""
    loop = ServingLoop.of(
        chats([(60, 1)]), LoopSettings(max_context=50, wrap=False), 10
    )

    assert loop.is_exhausted
    assert 0 == loop.run(5).steps


@pytest.mark.parametrize("name", ["pool", "max_context", "concurrency", "token_budget"])
def test_limits_are_positive(name: str) -> None:
    """Zero of anything would stand still."""
    limits: dict[str, Any] = {name: 0}
    settings = LoopSettings(**limits)
    with pytest.raises(ConfigError, match=name):
        ServingLoop.of(chats([(1, 1)]), settings, 10)


def test_a_turn_larger_than_the_cache_is_refused() -> None:
    """However long the context may be."""
    with pytest.raises(RequestTooLargeError):
        ServingLoop.of(chats([(170, 1)]), LoopSettings(), 10)


def test_what_is_counted() -> None:
    """Two turns: 40 + 3 tokens, then 43 of history (32 hit) + 7 and 2 more."""
    loop = ServingLoop.of(
        chats([(40, 3), (7, 2)]), LoopSettings(pool=1, wrap=False, token_budget=30), 10
    )
    loop.run(99)

    assert loop.statistics == Statistics(
        steps=6,
        requests=2,
        turns=2,
        prefill_tokens=40 + 18,
        decode_tokens=2 + 1,
        prompt_tokens=40 + 50,
        hit_tokens=32,
        chunked_prefills=1,
        blocks_bound=3 + 2,
    )
    assert 32 / 90 == loop.statistics.prefix_hit_rate


def test_preemptions_and_readmissions_are_counted_apart() -> None:
    """Two conversations on four blocks: the second gives way and comes back."""
    loop = ServingLoop.of(chats([(16, 40)], [(16, 40)]), LoopSettings(wrap=False), 4)
    statistics = loop.run(200)

    assert 2 == statistics.requests == statistics.turns
    assert (1, 1) == (statistics.preemptions, statistics.readmissions)
    assert (33, 0) == (
        statistics.readmitted_prompt_tokens,
        statistics.readmitted_hit_tokens,
    )
    assert 32 == statistics.prompt_tokens


def test_no_hit_rate_before_the_first_admission() -> None:
    """Nothing by nothing is none."""
    assert 0.0 == Statistics().prefix_hit_rate


def test_runs_are_deterministic() -> None:
    """The same workload gives the same records, table by table."""

    def trace() -> list[object]:
        source = synthetic(SyntheticSettings(seed=3, scale=0.3))
        settings = LoopSettings(concurrency=8, pool=12, max_context=600)
        loop = ServingLoop.of(source, settings, 120)
        return [
            (
                [(r.id, start, count, list(r.blocks)) for r, start, count, _ in step],
                record.evicted,
                record.grants,
            )
            for record in serve(loop, 400)
            for step in [record.scheduled]
        ]

    assert trace() == trace()


def test_more_blocks_never_lose_hits_here() -> None:
    """The reference's hit rate rises with its blocks, up to what sharing allows."""
    source = synthetic(SyntheticSettings(seed=1, scale=0.3))
    settings = LoopSettings(concurrency=8, pool=16, max_context=600)
    rates = [reference_hit_rate(source, settings, n, 600) for n in (150, 300, 2000)]

    assert rates == sorted(rates)
    assert rates[0] < rates[2]


def test_block_ids_and_positions_may_be_served_together() -> None:
    """A conversation without ids, and one of a single turn with none covered."""
    plain = chat([(20, 1)])
    other = Conversation((Turn(30, 1),), prefix=2, prefix_tokens=16)
    loop = ServingLoop.of(
        workload(plain, other, other), LoopSettings(pool=3, wrap=False), 10
    )
    record = serve(loop, 1)[0]

    assert 1 == record.same_step_shares


def test_recorded_chats_give_the_known_run(data_dir: Path) -> None:
    """10,000 steps of 32 of 40 chats: the same counts as an independent loop had."""
    source = open_workload(data_dir / "sharegpt_turns.jsonl.gz", template=True)
    statistics = ServingLoop.of(source, LoopSettings(pool=40), 8160).run(10_000)

    assert 1191 == statistics.turns
    assert 318_767 == statistics.decode_tokens
    assert 121_516 == statistics.prefill_tokens
    assert 28_096 == statistics.blocks_bound
    assert 0.9365 == pytest.approx(statistics.prefix_hit_rate, abs=5e-5)
