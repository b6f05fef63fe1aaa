"""`patton.engine` decides what vLLM decides, and a deviation of either is noticed.

Not covered here: placements, and eviction in pairs, which vLLM does not have. The
20,000 steps of 20 seeds: `python -m tests.vllm.real.equivalence`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

pytest.importorskip("vllm.v1.core.sched.scheduler", reason="needs the extra vllm")

from patton.engine.block_pool import BlockPool
from patton.engine.scheduler import Scheduler
from tests.vllm.real.equivalence import Tally, compare

SEEDS = range(12)
STEPS = 400


def test_every_step_is_the_same() -> None:
    """Tokens, blocks, evictions, preemptions, queue, references and tables."""
    total = Tally()
    for seed in SEEDS:
        differences, tally = compare(seed, STEPS)
        assert [] == differences
        total = total.plus(tally)

    assert len(SEEDS) * STEPS == total.steps
    assert min(total.hit_blocks, total.evictions, total.new_blocks) > 1000
    assert min(total.preemptions, total.chunks, total.same_step_shares) > 50
    assert min(total.forgotten, total.resets) > 5


def freed_head_first(pool: BlockPool, table: Sequence[int]) -> None:
    RELEASE(pool, table[::-1])


def taken_from_the_end(pool: BlockPool, count: int) -> list[int]:
    return TAKE(pool, count)[::-1]


def budget_of_one_less(scheduler: Scheduler, record: object, budget: int) -> int:
    return CONTINUE(scheduler, record, budget - 1)


RELEASE: Callable[..., None] = BlockPool.release
TAKE: Callable[..., list[int]] = BlockPool.take
CONTINUE: Callable[..., int] = Scheduler._continue_running


@pytest.mark.parametrize(
    ("owner", "name", "fault"),
    [
        (BlockPool, "release", freed_head_first),
        (BlockPool, "take", taken_from_the_end),
        (Scheduler, "_continue_running", budget_of_one_less),
    ],
)
def test_a_planted_deviation_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
    owner: type,
    name: str,
    fault: Callable[..., object],
) -> None:
    """Blocks freed head first, granted in another order, or a smaller budget."""
    monkeypatch.setattr(owner, name, fault)

    assert any(compare(seed, STEPS)[0] for seed in SEEDS)
