"""vLLM answers with PATTON what it answers without, and a planted fault shows.

A small random Llama, 24 greedy requests of three turns: with prefix caching, without,
under memory pressure, and on a device smaller than vLLM's pool of blocks. Without
PATTON vLLM attends with its own FlexAttention in float32; with it Keys, Values, scores
and weights are FP16, the device's elements. So equality needs an argument: of every
token the lead over the second best is compared, too, and what PATTON changes of it must
be far less than the least lead there is.

Not covered here: the scheduler's decisions, block by block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pytest

pytest.importorskip("vllm.v1.core.sched.scheduler", reason="needs the extra vllm")

from vllm.distributed.kv_transfer import get_kv_transfer_group

from patton.errors import UnwrittenResultError
from patton.generate import StepStreams, generate_step
from patton.steps import PlacedStep
from patton.vllm import worker
from tests.vllm.real.language_model import (
    REQUESTS,
    TURNS,
    WINDOWED,
    Answers,
    Setting,
    answers,
    scheduler_of,
    served,
)

pytestmark = pytest.mark.filterwarnings("ignore")  # vLLM's and torch's, while serving

Options = dict[str, Any]  # the connector's

DATA: Options = {"device": "tiny", "element": "fp16", "check": "data"}
SMALL: Options = {**DATA, "capacity_gib": 2 / 1024, "pair_blocks": 4}  # 96 blocks

LAST = 15  # of the offsets of a block
WRITES = (
    "write_granule",
    "write_slot",
    "write_start",
    "write_count",
    "write_request",
    "write_position",
)

CASES: dict[str, tuple[Setting, Options]] = {
    "caching": (Setting(), DATA),
    "no caching": (Setting(caching=False), DATA),
    "pressure": (Setting(blocks=60, budget=64), DATA),
    "small device": (Setting(), SMALL),
}


def offset_15_lands_on_14(placed: PlacedStep, **options: Any) -> StepStreams:
    """Streams that write the last token of a block over the one before it."""
    rows = np.array([getattr(placed, name) for name in WRITES])
    _, _, start, count, _, _ = rows
    last = rows[:, start + count == LAST + 1]
    last[5] += LAST - last[2]
    last[2], last[3] = LAST - 1, 1
    rows[3] -= np.where(start + count == LAST + 1, np.minimum(count, 2), 0)
    rows = np.concatenate([rows[:, count > 0], last], axis=1)
    faulty = attrs.evolve(placed, **dict(zip(WRITES, rows, strict=True)))
    return generate_step(faulty, **options)


def test_the_device_itself_notices_a_planted_off_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The place at offset 15 was never written, which the first read of it refuses."""
    with served(*CASES["caching"]) as llm:
        monkeypatch.setattr(worker, "generate_step", offset_15_lands_on_14)
        with pytest.raises(UnwrittenResultError):
            answers(llm, 1)


@pytest.fixture(scope="module")
def without_patton() -> Answers:
    """What vLLM answers alone."""
    with served(Setting(caching=False), None) as llm:
        return answers(llm, TURNS)


def test_counting_streams_changes_nothing(without_patton: Answers) -> None:
    """With check "placement" all attention is the host's, in float32 as well."""
    with served(Setting(), {"device": "tiny", "check": "placement"}) as llm:
        found = answers(llm, TURNS)
        commands = get_kv_transfer_group().worker.commands

    assert 0 == found.differing(without_patton)
    assert found.deviation(without_patton) < 1e-4
    assert commands > 0


def test_a_sliding_window_under_pressure() -> None:
    """Blocks that windows have left are given up, hits begin behind them."""
    with served(Setting(WINDOWED, caching=False), None) as llm:
        alone = answers(llm, 2)
    with served(Setting(WINDOWED, blocks=40, budget=64), DATA) as llm:
        found = answers(llm, 2)

    assert 0 == found.differing(alone)
    assert 4 * found.deviation(alone) < alone.margin
    assert found.cached > 0


@pytest.fixture(scope="module", params=CASES)
def case(
    request: pytest.FixtureRequest, without_patton: Answers
) -> Iterator[tuple[str, Any]]:
    """The name of a case, and vLLM with PATTON in it: one vLLM at a time."""
    with served(*CASES[request.param]) as llm:
        yield request.param, llm


def count_calls(owner: Any, name: str) -> list[Any]:
    """The first argument of all calls of a method of this object from now on."""
    calls: list[Any] = []
    method: Callable[..., Any] = getattr(owner, name)

    def noted(first: Any, *others: Any, **options: Any) -> Any:
        calls.append(first)
        return method(first, *others, **options)

    setattr(owner, name, noted)
    return calls


def test_answers_are_those_of_vllm_alone(
    case: tuple[str, Any], without_patton: Answers
) -> None:
    """0 of 24 differ; what PATTON changes is less than a fifth of the least lead."""
    name, llm = case
    llm.reset_prefix_cache(reset_connector=True)
    scheduler = scheduler_of(llm)
    preempted = count_calls(scheduler, "_preempt_request")
    evicted = count_calls(scheduler.kv_cache_manager.block_pool, "evict_blocks")
    found = answers(llm, TURNS)

    assert REQUESTS == len(found.tokens)
    assert 0 == found.differing(without_patton)
    assert 5 * found.deviation(without_patton) < without_patton.margin
    assert (name == "no caching") == (found.cached == 0)
    assert (name in {"pressure", "small device"}) == (len(preempted) > 0)
    # Pairs go whole, and only where the device is the smaller of the two.
    assert (name == "small device") == (len(evicted) > 0)


def hide_what_is_unwritten() -> None:
    """As if every cell of the device had been written before."""
    memory = get_kv_transfer_group().worker.executor.memory
    device = memory.device
    channels, rows = np.ogrid[: device.channels, : device.rows]
    memory.provide(channels, rows)
    memory.masks[:] = memory.full_mask


def test_a_planted_off_by_one_changes_answers(
    case: tuple[str, Any], without_patton: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where nothing marks unwritten cells, the wrong place shows in the answers."""
    _, llm = case
    llm.reset_prefix_cache(reset_connector=True)
    hide_what_is_unwritten()
    monkeypatch.setattr(worker, "generate_step", offset_15_lands_on_14)
    found = answers(llm, TURNS)

    assert found.differing(without_patton) > 3
