"""The gate: vLLM waits or preempts where PIM has no room, and everybody ends.

Not covered here: that the state is right meanwhile (test_live_pool, whose runs under
pressure are here).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("vllm.v1.core.sched.scheduler", reason="needs the extra vllm")

from vllm.sampling_params import SamplingParams
from vllm.v1.request import Request

from patton.errors import OutOfPairsError
from patton.vllm.capacity import PattonManager
from tests.vllm.comparison import differences
from tests.vllm.real.scenarios import SCENARIOS
from tests.vllm.real.serving import BLOCK, Served, Serving
from tests.vllm.real.truth import Truth

# 16 pairs of 16 blocks, where vLLM believes to have 600.
SMALL = {"device": "tiny", "capacity_gib": 0.0023}
PRESSED: dict[str, Any] = {"usable": 600, "running": 12, "open": 40, "answer": (8, 200)}


def pressed(name: str, **changes: Any) -> Serving:
    return attrs.evolve(SCENARIOS[name], connector=SMALL, **(PRESSED | changes))


@pytest.mark.parametrize("name", SCENARIOS)
def test_more_blocks_than_pim_has(tmp_path: Path, name: str) -> None:
    """Under pressure the runtime still knows everything, and work goes on."""
    served = Served.of(pressed(name, gated=True), tmp_path)
    truth, connector = Truth.of(served), served.scheduler.connector
    runtime = connector.runtime
    assert runtime.layout.granules < 600
    idle = full = 0
    for output in served.steps(400):
        found = differences(connector.adapter.lifecycle, truth.follow(output))
        assert [] == list(found), served.count
        idle = 0 if output.num_scheduled_tokens else idle + 1
        assert idle < 4
        full += not runtime.free_pairs
    runtime.check()
    assert full > 20


def test_without_the_gate_too_little_room_is_an_error(tmp_path: Path) -> None:
    """The blocks are given out when they are seen: the error names the request."""
    served = Served.of(pressed("plain", gated=False), tmp_path)

    with pytest.raises(OutOfPairsError, match="no free pair for block"):
        for _ in served.steps(800):
            pass


def ask(served: Served, name: str, prompt: list[int], answer: int = 1) -> None:
    request = Request(
        request_id=name,
        prompt_token_ids=prompt,
        sampling_params=SamplingParams(max_tokens=answer, ignore_eos=True),
        pooling_params=None,
        block_hasher=served.chats.hasher,
    )
    served.scheduler.add_request(request)


def cached(served: Served) -> set[int]:
    """Blocks that a lookup can hit."""
    return {b.block_id for b in served.pool.blocks if b.block_hash is not None}


def alone(tmp_path: Path, **changes: Any) -> Served:
    """An engine that nobody asks anything yet; 8 pairs of 16 blocks."""
    options = {"device": "tiny", "capacity_gib": 0.0013, "adoption": False}
    serving = Serving(
        open=0, usable=600, max_len=1024, budget=4096, connector=options, gated=True
    )
    return Served.of(attrs.evolve(serving, **changes), tmp_path)


def run(served: Served, steps: int) -> list[dict[str, int]]:
    return [dict(output.num_scheduled_tokens) for output in served.steps(steps)]


def test_scattered_hits_do_not_lock_out_the_only_request(tmp_path: Path) -> None:
    """Its hits would hold so many pairs that the rest finds no room, for ever."""
    served = alone(tmp_path)
    runtime = served.scheduler.connector.runtime
    pairs, prefix = runtime.layout.pairs, list(range(BLOCK * 8))
    for index in range(pairs - 1):  # each adds a block of the prefix, in its own pair
        ask(served, f"part {index}", [*prefix[: BLOCK * (index + 1)], 9000 + index])
        run(served, 2)
    whole = prefix[: BLOCK * (pairs - 1)] + [5] * (1000 - BLOCK * (pairs - 1))
    ask(served, "whole", whole, answer=8)

    scheduled = run(served, 16)
    assert [] != [step for step in scheduled if "whole" in step]
    assert not served.scheduler.requests
    runtime.check()


def test_the_longest_context_fits_alone(tmp_path: Path) -> None:
    """As many tokens as the model may have, with a full cache before."""
    served = alone(tmp_path, seed=3)
    for index in range(8):
        ask(served, f"before {index}", [index] * 300, answer=4)
        run(served, 6)
    ask(served, "longest", [77] * 900, answer=123)
    run(served, 140)

    assert not served.scheduler.requests


def test_a_refusal_costs_nobody_any_cache(tmp_path: Path) -> None:
    """A request for which there is no room evicts nothing."""
    served = alone(tmp_path)
    ask(served, "cached", [1] * 200)
    run(served, 3)
    ask(served, "long", [2] * 1000, answer=20)
    ask(served, "other", [4] * 500, answer=20)
    run(served, 2)
    before = cached(served)
    ask(served, "refused", [1] * 192 + [3] * 700)
    scheduled = run(served, 3)

    assert [{"long": 1, "other": 1}] * 3 == scheduled
    assert before <= cached(served)


def test_pairs_are_evicted_whole_and_leave_the_cache(tmp_path: Path) -> None:
    """Room is made pair by pair, and vLLM hits nothing of what went."""
    served = alone(tmp_path, seed=5)
    for index in range(5):
        ask(served, f"old {index}", [index] * 400)
        run(served, 3)
    runtime = served.scheduler.connector.runtime
    placements = runtime.placements
    idle = {b for b in placements.bound_blocks() if not placements.references[b]}
    ask(served, "new", [50] * 500)
    run(served, 3)
    gone = {b for b in idle if runtime.placement(b) is None}

    assert gone
    assert gone.isdisjoint(cached(served))
    assert cached(served) == set(placements.bound_blocks())


def test_the_gate_asks_nothing_of_vllm_where_no_connector_is(tmp_path: Path) -> None:
    """Gated managers without a lifecycle serve exactly as vLLM's own."""
    plain = Serving(usable=80, seed=21)
    said = []
    for gated in (False, True):
        served = Served.of(attrs.evolve(plain, gated=gated), tmp_path)
        said.append([dict(o.num_scheduled_tokens) for o in served.steps(200)])
    manager = served.scheduler.kv_cache_manager.coordinator.single_type_managers[0]

    assert isinstance(manager, PattonManager)
    assert said[0] == said[1]
