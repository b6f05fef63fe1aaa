"""What a step costs, counted by hand for the paper's configuration (Paper 4.4)."""

from __future__ import annotations

import pytest

from patton.engine.accounting import ValueRuns, ValueWriteActivations
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.llama import llama, start


def decode_all(runtime: Runtime, position: int, requests: int) -> ValueWriteActivations:
    """One token of every request, counted; the commits are published."""
    counted = ValueWriteActivations()
    step = Step(writes=[(request, position, 1) for request in range(requests)])
    plan = runtime.apply_step(step)
    counted.add(runtime.layout, plan, range(requests))
    runtime.publish(plan)
    return counted


@pytest.mark.parametrize(("requests", "ratio"), [(1, 128 / 40), (32, 12.8)])
def test_a_block_of_decodes_comes_to_the_papers_ceiling(
    requests: int, ratio: float
) -> None:
    """A full row of 32 slots is opened once a step: 12.8 times fewer activations.

    Per block 16 tokens in two rows each, against two rows of one commit and a
    sixteenth of a row, or a whole one when alone, for every token.
    """
    runtime = llama(gib=16)
    total = ValueWriteActivations()
    for request in range(requests):
        runtime.bind(request, request)
    for position in range(16):
        counted = decode_all(runtime, position, requests)
        total.direct += counted.direct
        total.commit_zone += counted.commit_zone

    assert total.direct == requests * 16 * 2
    assert total.commit_zone == 16 + requests * 2
    assert total.ratio == pytest.approx(requests * 32 / (16 + requests * 2))
    if requests == 32:
        assert total.ratio == pytest.approx(ratio)


def test_a_write_without_a_slot_costs_what_a_direct_one_does() -> None:
    runtime = llama(gib=4, commit_zone=False)
    runtime.bind(0, 0)
    counted = decode_all(runtime, 0, 1)

    assert counted.direct == counted.commit_zone == runtime.layout.rows_per_value


def test_prefill_is_not_counted() -> None:
    runtime = llama()
    runtime.bind(0, 0)
    counted = ValueWriteActivations()
    counted.add(runtime.layout, runtime.write(0, 0, 5), [])

    assert counted.direct == counted.commit_zone == 0
    assert counted.ratio == 0


def test_visits_to_row_sets_count_resident_blocks_only() -> None:
    """65 blocks fill a row set of 64 and begin another; the 66th waits in a slot."""
    runtime = llama()
    start(runtime, 0, list(range(66)), 65 * 16 + 3)
    start(runtime, 1, [100], 16)
    plan = runtime.apply_step(
        Step(writes=[(0, 65 * 16 + 3, 1)], reads=[(0, 0, 65 * 16 + 4), (1, 0, 16)])
    )
    counted = ValueRuns()
    counted.add(plan.place())

    assert counted.blocks == 66
    assert counted.runs == 3
    assert counted.blocks_per_run == 22


def test_requests_that_only_read_back_visit_nothing() -> None:
    runtime = llama()
    start(runtime, 0, [0, 1], 32)
    plan = runtime.apply_step(Step(readbacks=[(0, 0, 32)]))
    counted = ValueRuns()
    counted.add(plan.place())

    assert counted.runs == 0
    assert counted.blocks_per_run == 0
