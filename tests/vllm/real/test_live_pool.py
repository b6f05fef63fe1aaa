"""After every step the runtime knows exactly what is true of vLLM's live pool.

Not covered here: data (test_outputs), the pure part alone (../test_recorded_traces).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("vllm.v1.core.sched.scheduler", reason="needs the extra vllm")

from patton.errors import PattonError
from patton.runtime import Runtime
from patton.vllm.lifecycle import Lifecycle
from patton.vllm.worker import Worker
from tests.vllm.comparison import but_for_slots, differences
from tests.vllm.real.scenarios import SCENARIOS
from tests.vllm.real.serving import Served, Serving
from tests.vllm.real.truth import Truth

SOURCES = pytest.mark.parametrize("gated", [False, True], ids=["outputs", "gate"])


def disagreements(served: Served, steps: int) -> Iterator[str]:
    """Whatever the runtime has otherwise than the pool, step by step."""
    truth, adapter = Truth.of(served), served.scheduler.connector.adapter
    for output in served.steps(steps):
        for found in differences(adapter.lifecycle, truth.follow(output)):
            yield f"step {served.count}: {found}"


@SOURCES
def test_ten_thousand_steps(tmp_path: Path, gated: bool) -> None:
    """32 running of 64 open chats: tables, references and levels at every step."""
    serving = Serving(
        usable=2048,
        running=32,
        open=64,
        budget=2048,
        max_len=2048,
        prompt=(16, 160),
        answer=(16, 320),
        turns=(2, 8),
        twins=0.1,
        connector={"device": "aim-gddr6"},
        gated=gated,
    )
    served = Served.of(serving, tmp_path)

    assert [] == list(disagreements(served, 10_000))
    served.scheduler.connector.runtime.check()
    assert served.chats.asked > 1000
    assert served.preemptions > 0


@SOURCES
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario(tmp_path: Path, name: str, gated: bool) -> None:
    """Whatever vLLM does with blocks, told by the gate or derived from its outputs."""
    serving = attrs.evolve(
        SCENARIOS[name], connector={"device": "tiny"}, gated=gated, seed=100
    )
    served = Served.of(serving, tmp_path)

    assert [] == list(disagreements(served, 300))
    served.scheduler.connector.runtime.check()


@SOURCES
@pytest.mark.parametrize("every", [1, 7], ids=["always asked", "seldom asked"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_worker_follows(tmp_path: Path, name: str, every: int, gated: bool) -> None:
    """From the metadata alone a worker reaches the scheduler's state and placements.

    every: steps after which the scheduler's half is asked, and told what was put off.
    """
    serving = attrs.evolve(
        SCENARIOS[name], connector={"device": "tiny"}, gated=gated, seed=200
    )
    served = Served.of(serving, tmp_path)
    connector = served.scheduler.connector
    blocks = len(connector.runtime.placements.granule)
    fresh = Runtime.of(connector.runtime.layout, blocks=blocks)
    worker = Worker.of(fresh, connector.options, connector.window)
    for output in served.steps(120):
        metadata = output.kv_connector_metadata
        worker.advance(metadata.step, metadata.events)
        if served.count % every == 0:
            # Between steps the scheduler's may be ahead by what happened since.
            assert worker.runtime.step == connector.runtime.step
            assert but_for_slots(worker.runtime) == but_for_slots(connector.runtime)


def forgets_to_finish(lifecycle: Lifecycle, request: str) -> None:
    lifecycle.leading.pop(request, None)


def binds_the_last_first(lifecycle: Lifecycle, request: str, blocks: Any) -> None:
    BIND(lifecycle, request, list(blocks)[::-1])


BIND = Lifecycle.bind


@pytest.mark.parametrize(
    ("event", "fault"),
    [("finish", forgets_to_finish), ("bind", binds_the_last_first)],
)
def test_a_fault_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str, fault: Any
) -> None:
    """The comparison is not blind."""
    monkeypatch.setattr(Lifecycle, event, fault)
    serving = Serving(connector={"device": "tiny"}, gated=True)
    found = disagreements(Served.of(serving, tmp_path), 60)

    try:
        noticed = next(found, None) is not None
    except PattonError:
        noticed = True
    assert noticed
