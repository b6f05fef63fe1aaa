"""The pure part against vLLM's scheduler as it really ran (recorded by `record.py`)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import pytest

from patton.config import model_preset, tiny_device
from patton.layout import Layout
from patton.runtime import Runtime
from patton.vllm.adapter import Adapter
from patton.vllm.lifecycle import Lifecycle
from patton.vllm.options import Options
from patton.vllm.outputs import granted, observe
from patton.vllm.worker import Worker
from tests.vllm.comparison import but_for_slots, differences, scheduling
from tests.vllm.recording import names, read

# Room for every block: without a pool there is nobody to evict from.
DEVICE = attrs.evolve(tiny_device(), rows=256)
LAYOUT = Layout.of(DEVICE, model_preset("tiny"))


def adapter_of(header: dict[str, Any]) -> Adapter:
    runtime = scheduling(LAYOUT, header["blocks"])
    return Adapter(Lifecycle.of(runtime))


@pytest.mark.parametrize("name", names())
def test_tables_references_and_levels_are_the_pools(name: str) -> None:
    """After every step the runtime knows exactly what is true of the live pool."""
    header, steps = read(name)
    adapter = adapter_of(header)

    for number, step in enumerate(steps()):
        adapter.step(step.output, step.unsaid)
        found = differences(adapter.lifecycle, step.truths.of_pool(header["blocks"]))
        assert [] == list(found), f"step {number}"
    adapter.lifecycle.runtime.check()


@pytest.mark.parametrize("name", names())
def test_a_worker_follows_by_the_log_alone(name: str) -> None:
    """The worker's runtime is the scheduler's after every step, and places the same."""
    header, steps = read(name)
    adapter = adapter_of(header)
    worker = Worker.of(
        Runtime.of(LAYOUT, blocks=header["blocks"]), Options(), header["window"]
    )

    for number, step in enumerate(steps()):
        worker.advance(number, adapter.step(step.output, step.unsaid))
        if number % 16 == 0:
            ours = but_for_slots(adapter.lifecycle.runtime)
            assert ours == but_for_slots(worker.runtime)


def test_the_traces_hold_what_they_are_for() -> None:
    """Each kind of event that vLLM knows is in some trace."""
    seen: Counter[str] = Counter()
    for name in names():
        _, steps = read(name)
        runs: set[str] = set()
        for step in steps():
            observed, blocks = observe(step.output), granted(step.output)
            ended = {*observed.finished, *observed.preempted}
            seen["preempted"] += len(observed.preempted)
            seen["unknown"] += len(ended - runs)
            seen["resubmitted at once"] += len(ended & blocks.admitted.keys())
            seen["drafts"] += len(observed.drafts)
            seen["given up"] += sum(step.unsaid.given_up.values())
            seen["verified"] += len(step.unsaid.verified)
            first = {request: at for request, at, _ in observed.spans}
            seen["hits"] += sum(1 for r in blocks.admitted if first[r])
            runs = (runs - ended) | blocks.admitted.keys()
            chunks = [n for r, at, n in observed.spans if at % 16 and n > 16]
            seen["chunk in mid-block"] += len(chunks)

    assert not [event for event, count in seen.items() if not count], seen
