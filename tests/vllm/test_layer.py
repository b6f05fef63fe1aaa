"""One layer for vLLM: rows in any order, read-back prefixes, commits by the host.

Outputs are compared in every bit with the order-aware reference. Not covered here: what
vLLM does with them (tests/vllm/real).
"""

from __future__ import annotations

from random import Random

import attrs
import numpy as np
import pytest

from patton.config import model_preset, tiny_device
from patton.device import ReferenceDevice
from patton.device.reference import attention
from patton.elements import decode
from patton.engine import data
from patton.errors import EngineStateError
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step
from patton.vllm.layer import Batch, Layer, LayerOutput
from patton.vllm.worker import WorkerStep, attending

LAYOUT = Layout.of(tiny_device(), model_preset("tiny"))
MODEL, ELEMENT = LAYOUT.model, LAYOUT.device.element
SHAPE = MODEL.kv_heads, MODEL.head_dim, ELEMENT
LAYER = 1


def tokens_of(request: str, positions: range) -> data.Identities:
    """Request b says what a says for its first 16 tokens, then its own."""
    own = np.array(positions, np.uint64)
    if request == "b":
        own[own >= 16] += np.uint64(1000)
    return own


@attrs.define
class Engine:
    """Serves steps one by one, and compares what a layer returns."""

    runtime: Runtime
    layer: Layer
    random: Random
    outputs: int = 0
    read_back: int = 0
    commits: int = 0

    def run(self, step: Step) -> None:
        plan = self.runtime.apply_step(attending(step, None))
        worker = WorkerStep.of(plan, self.runtime)
        batch = self.batch(worker, step)
        result = self.layer.run(worker, batch)
        self.compare(worker, batch, result)
        self.commits += len(plan.commits)
        self.runtime.publish(plan)

    def batch(self, worker: WorkerStep, step: Step) -> Batch:
        """The rows of a step's tokens, shuffled."""
        identities, slots = [], []
        for request, start, count in step.writes:
            positions = range(start, start + count)
            number = worker.placed.requests.index(request)
            numbers = np.full(count, number)
            identities.append(tokens_of(str(request), positions))
            slots.append(worker.slots(numbers, np.array(positions)))
        tokens, places = np.concatenate(identities), np.concatenate(slots)
        order = self.random.sample(range(len(tokens)), len(tokens))
        tokens, places = tokens[order], places[order]
        heads = MODEL.kv_heads, MODEL.query_heads_per_kv
        return Batch(
            places,
            data.keys(tokens, LAYER, *SHAPE),
            data.values(tokens, LAYER, *SHAPE),
            data.queries(tokens, LAYER, heads, MODEL.head_dim, ELEMENT),
        )

    def compare(self, worker: WorkerStep, batch: Batch, result: LayerOutput) -> None:
        placed = worker.placed
        tokens = [tokens_of(str(name), range(100)) for name in placed.requests]
        keys = [data.keys(each, LAYER, *SHAPE) for each in tokens]
        values = [data.values(each, LAYER, *SHAPE) for each in tokens]
        due = attention(placed, keys, values, batch.queries[result.rows])

        assert np.array_equal(due.view(np.uint32), result.outputs.view(np.uint32))
        self.outputs += len(due)
        ranges = zip(
            placed.readback_request.tolist(),
            placed.readback_start.tolist(),
            placed.readback_end.tolist(),
            result.prefixes,
            strict=True,
        )
        for request, start, end, prefix in ranges:
            found = batch.slots[prefix.row : prefix.row + 1]
            assert found == worker.slots(np.array([request]), np.array([end]))
            assert np.array_equal(
                decode(keys[request][start:end], ELEMENT), prefix.keys
            )
            assert np.array_equal(
                decode(values[request][start:end], ELEMENT), prefix.values
            )
            self.read_back += end - start


@pytest.fixture
def engine() -> Engine:
    device = ReferenceDevice(LAYOUT.device)
    return Engine(
        Runtime.of(LAYOUT, blocks=20), Layer.of(device, LAYOUT, LAYER), Random(0)
    )


def test_chunks_decodes_commits_and_a_shared_prefix(engine: Engine) -> None:
    """a: two chunks of 20 and 5 tokens, then decodes beyond 32; b shares its block."""
    engine.run(Step(grants=[("a", [], [0, 1])], writes=[("a", 0, 20)]))
    engine.run(Step(writes=[("a", 20, 5)]))
    step = Step(grants=[("b", [0], [2])], writes=[("a", 25, 1), ("b", 16, 4)])
    engine.run(step)
    for position in range(26, 36):
        step = Step(writes=[("b", position - 6, 1), ("a", position, 1)])
        if position == 32:
            step.grants = [("a", [], [3])]
        engine.run(step)

    assert 21 == engine.outputs
    assert 20 + 16 == engine.read_back
    assert 1 == engine.commits


def test_a_batch_of_another_step_is_refused(engine: Engine) -> None:
    """A token of the step that has no row, named by its slot."""
    step = Step(grants=[("a", [], [5])], writes=[("a", 0, 4)])
    plan = engine.runtime.apply_step(step)
    worker = WorkerStep.of(plan, engine.runtime)
    batch = engine.batch(worker, step)
    fewer = attrs.evolve(batch, slots=np.where(batch.slots == 83, 7, batch.slots))
    with pytest.raises(EngineStateError, match="slot 83"):
        engine.layer.run(worker, fewer)
