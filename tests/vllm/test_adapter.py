"""The adapter against engines made up by Hypothesis: every block as the engine has it.

The engine is `patton.engine`, which decides as vLLM does (test_engine_equivalence);
what vLLM itself said is in test_recorded_traces.
"""

from __future__ import annotations

import random
from itertools import cycle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from patton.config import model_preset, tiny_device
from patton.engine.checking import DataCheck
from patton.engine.scheduler import Scheduler
from patton.layout import Layout
from patton.runtime import Runtime
from patton.vllm.adapter import Adapter
from patton.vllm.lifecycle import Lifecycle
from patton.vllm.options import Options
from patton.vllm.watch import NOTHING
from patton.vllm.worker import Worker
from tests.vllm.comparison import PoolTruth, differences, scheduling
from tests.vllm.said import Narrator, Turn, block_ids, name_of, served

LAYOUT = Layout.of(tiny_device(), model_preset("tiny"))
MOST_BLOCKS = 24

turns = st.lists(
    st.builds(
        Turn,
        prompt=st.integers(1, 150),
        answer=st.integers(1, 60),
        owner=st.integers(0, 3),
        shared=st.integers(0, 60),
    ),
    min_size=1,
    max_size=8,
)


def adapter(blocks: int) -> Adapter:
    return Adapter(Lifecycle.of(scheduling(LAYOUT, blocks + 1)))


def truth_of(engine: Scheduler) -> PoolTruth:
    """What the engine has in the step that it has just scheduled."""
    cached = np.array([False, *(key is not None for key in engine.pool.key)])
    levels = 16 * cached.astype(np.int64)
    for request in engine.running:
        end = engine_end(engine, request.id)
        for index, block in enumerate(request.blocks):
            if not cached[block + 1]:
                levels[block + 1] = min(max(end - 16 * index, 0), 16)
    tables = {name_of(r.id): block_ids(r.blocks) for r in engine.running}
    return PoolTruth(tables, np.array([0, *engine.pool.references]), cached, levels)


def engine_end(engine: Scheduler, number: int) -> int:
    """The position after the last that a request will have written in this step."""
    assert engine._open is not None
    for request, start, count, _ in engine._open.scheduled:
        if request.id == number:
            return start + count
    (computed,) = [r.computed for r in engine.running if r.id == number]
    return computed


@given(turns, st.integers(12, MOST_BLOCKS), st.integers(5, 80), st.integers(1, 5))
def test_every_block_is_as_the_engine_has_it(
    turns: list[Turn], blocks: int, budget: int, concurrency: int
) -> None:
    """Tables, references and levels after every step, whatever is served."""
    engine = served(turns, blocks=blocks, concurrency=concurrency, token_budget=budget)
    adapted, narrator = adapter(blocks), Narrator()
    while not engine.is_idle:
        record = engine.schedule()
        adapted.step(narrator.said(record), NOTHING)
        assert [] == list(differences(adapted.lifecycle, truth_of(engine)))
        engine.complete(record)
        narrator.completed(record)
    adapted.lifecycle.runtime.check()


@given(
    turns,
    st.integers(12, MOST_BLOCKS),
    st.integers(5, 80),
    st.lists(st.booleans(), min_size=1, max_size=20),
)
def test_asked_seldom_it_knows_the_same(
    turns: list[Turn], blocks: int, budget: int, asked: list[bool]
) -> None:
    """Writes that nobody has asked for are not lost, and the log never lacks any."""
    engine = served(turns, blocks=blocks, token_budget=budget)
    often, seldom, narrator = adapter(blocks), adapter(blocks), Narrator()
    for ask in cycle(asked):
        if engine.is_idle:
            break
        record = engine.schedule()
        said = narrator.said(record)
        assert often.step(said, NOTHING) == seldom.step(said, NOTHING)
        expected = often.lifecycle.runtime.snapshot()
        if ask:
            assert expected == seldom.lifecycle.runtime.snapshot()
        engine.complete(record)
        narrator.completed(record)
    assert often.lifecycle.runtime.snapshot() == seldom.lifecycle.runtime.snapshot()


@given(turns, st.randoms(use_true_random=False))
def test_the_order_of_the_lists_says_nothing(
    turns: list[Turn], shuffle: random.Random
) -> None:
    """New, running and ended requests in any order, unknown ones among the ended."""
    engine = served(turns, blocks=16)
    plain, shuffled, narrator = adapter(16), adapter(16), Narrator()
    while not engine.is_idle:
        record = engine.schedule()
        said = narrator.said(record)
        expected = plain.step(said, NOTHING)
        cached = said.scheduled_cached_reqs
        order = list(range(len(cached.req_ids)))
        shuffle.shuffle(order)
        for field in ("req_ids", "new_block_ids", "num_computed_tokens"):
            setattr(cached, field, [getattr(cached, field)[i] for i in order])
        shuffle.shuffle(said.scheduled_new_reqs)
        said.finished_req_ids = {*said.finished_req_ids, "never heard of"}
        assert expected == shuffled.step(said, NOTHING)
        engine.complete(record)
        narrator.completed(record)


def test_data_travel_through_adapter_worker_and_device() -> None:
    """Twins of one step, preemption, commits and reused ids: every output is right."""
    long, twin = Turn(100, 40, owner=1), Turn(70, 30, owner=2)
    turns = [twin, twin, long, Turn(90, 50, owner=3, shared=48), long, twin]
    engine = served(turns, blocks=16, concurrency=3, token_budget=128)
    adapted, narrator = adapter(16), Narrator()
    worker = Worker.of(Runtime.of(LAYOUT, blocks=17), Options(check="data"))
    assert worker.executor is not None
    check = DataCheck(LAYOUT, worker.executor, layers=1)
    known = {number: turn.request(number) for number, turn in enumerate(turns)}
    preempted = shares = commits = 0
    while not engine.is_idle:
        record = engine.schedule()
        events = adapted.step(narrator.said(record), NOTHING)
        worker.advance(record.step, events)
        assert worker.current is not None
        check.run(worker.current.placed, worker.current.streams, known)
        preempted += len(record.preempted)
        shares += record.same_step_shares
        commits += len(worker.current.placed.commit_slot)
        engine.complete(record)
        narrator.completed(record)

    assert min(preempted, shares, commits, check.outputs, check.read_back) > 0
