"""A short run with data, on a small device, that can be stopped and taken up again.

Every stream is executed on a device and followed by validators, one for each fold; what
is needed to execute a stream once more is taken down.
"""

from __future__ import annotations

import copy
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.attention import LayerResult, run_layer
from patton.commands import CommandStream, Tokens
from patton.config import CommitWay, DeviceConfig, ModelConfig
from patton.device import BankMemory, ReferenceDevice
from patton.device.provenance import Identify, StreamValidator
from patton.device.provenance.tags import Identities
from patton.device.reference import attention
from patton.engine import data
from patton.executor import Payload, Results
from patton.generate import generate_step
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import PlacedStep, Request, Step, StepPlan
from tests.device.provenance.runs import fork


@attrs.frozen
class Shape:
    """A small geometry: of the device, of the model, of a block."""

    channels: int
    banks: int
    lanes: int
    bursts: int
    kv_heads: int
    query_heads: int
    head_dim: int
    block_tokens: int
    write_masks: bool = True
    registers: int = 1

    def layout(self, way: CommitWay) -> Layout:
        """With some pairs and slots, and one layer."""
        folds = -(-self.kv_heads // self.channels)
        device = DeviceConfig(
            name="small",
            channels=self.channels,
            banks=self.banks,
            rows=40 * folds,
            row_bytes=self.bursts * self.lanes * 2,
            burst_bytes=self.lanes * 2,
            result_registers=self.registers,
            commit_way=way,
            copy_column="free" if way == "global-buffer" else "same",
            write_masks=self.write_masks,
        )
        model = ModelConfig(
            "small", 1, self.kv_heads, self.query_heads, self.head_dim, 256
        )
        return Layout.of(
            device, model, block_tokens=self.block_tokens, pair_blocks=2, slots=4
        )


SHAPES = {
    "several rows a block": Shape(1, 2, 2, 8, 1, 1, 6, 4),
    "stripes, padding": Shape(4, 3, 2, 9, 1, 2, 2, 6),
    "folds, two channels, registers": Shape(2, 2, 4, 8, 3, 3, 6, 4, registers=2),
    "two channels a block, no masks": Shape(4, 2, 3, 8, 2, 2, 4, 6, write_masks=False),
}


# --- a run of three or four steps -----------------------------------------------------


@attrs.define(eq=False)
class Scene:
    """A runtime, a device and validators (one for each fold), and who tokens are."""

    runtime: Runtime
    device: ReferenceDevice
    validators: list[StreamValidator]
    tokens: dict[Request, list[int]] = attrs.field(factory=dict)
    next_token: int = 1

    @classmethod
    def of(cls, layout: Layout) -> Scene:
        validators = [StreamValidator.of(layout) for _ in range(layout.folds)]
        return cls(Runtime.of(layout), ReferenceDevice(layout.device), validators)

    @property
    def layout(self) -> Layout:
        return self.runtime.layout

    def plan(
        self,
        grants: list[tuple[Request, list[int], list[int]]],
        writes: dict[Request, int],
        **step: Any,
    ) -> StepPlan:
        """Apply a step in which requests write so many new tokens and read all."""
        rows = []
        for request, count in writes.items():
            known = self.tokens.setdefault(request, [])
            rows.append((request, len(known), count))
            known += range(self.next_token, self.next_token + count)
            self.next_token += count
        reads = [(request, 0, len(self.tokens[request])) for request in writes]
        plan = self.runtime.apply_step(
            Step(grants=grants, writes=rows, reads=reads, **step)
        )
        plan.place()
        return plan

    def identify_in(self, placed: PlacedStep) -> Identify:
        return lambda tokens: self.identify(placed, tokens)

    def identify(self, placed: PlacedStep, tokens: Tokens) -> Identities:
        names = [placed.requests[index] for index in tokens.request]
        pairs = zip(names, tokens.position.tolist(), strict=True)
        return np.array([self.tokens[name][at] for name, at in pairs], np.uint64)

    def data(self, kind: Any, identities: Identities) -> NDArray[np.uint16]:
        model, element = self.layout.model, self.layout.device.element
        found: NDArray[np.uint16] = kind(
            identities, 0, model.kv_heads, model.head_dim, element
        )
        return found

    def run(self, placed: PlacedStep, executor: Any) -> LayerResult:
        """All streams of a step on an executor."""
        model, element = self.layout.model, self.layout.device.element
        heads = model.kv_heads, model.query_heads_per_kv
        newest = Tokens(placed.read_request, placed.read_end - 1)
        asking = self.identify(placed, newest)
        return run_layer(
            executor,
            generate_step(placed),
            layer=0,
            element=element,
            keys=lambda t: self.data(data.keys, self.identify(placed, t)),
            values=lambda t: self.data(data.values, self.identify(placed, t)),
            queries=data.queries(asking, 0, heads, model.head_dim, element),
        )

    def expected(self, placed: PlacedStep) -> NDArray[np.float32]:
        """The outputs of a step by the reference."""
        model, element = self.layout.model, self.layout.device.element
        heads = model.kv_heads, model.query_heads_per_kv
        known = [np.array(self.tokens[name], np.uint64) for name in placed.requests]
        newest = Tokens(placed.read_request, placed.read_end - 1)
        asking = self.identify(placed, newest)
        return attention(
            placed,
            [self.data(data.keys, tokens) for tokens in known],
            [self.data(data.values, tokens) for tokens in known],
            data.queries(asking, 0, heads, model.head_dim, element),
        )


@attrs.define
class Call:
    """A stream with its payload and results, memory before and after, validators."""

    stream: CommandStream
    payload: Payload
    results: Results
    before: BankMemory
    after: BankMemory
    validators: list[StreamValidator]


@attrs.define(eq=False)
class Validated:
    """Executes on a scene's device and validates; takes calls down where asked to."""

    scene: Scene
    placed: PlacedStep
    calls: list[Call] | None = None

    def run(
        self,
        stream: CommandStream,
        payload: Payload,
        *,
        layer: int = 0,
        stop: int | None = None,
    ) -> Results:
        assert stop is None
        scene, taken = self.scene, self.calls is not None
        before = copy.deepcopy(scene.device.memory) if taken else scene.device.memory
        validators = [fork(v) for v in scene.validators] if taken else []
        results = scene.device.run(stream, payload, layer=layer)
        for validator in scene.validators:
            validator.check(self.placed, stream, scene.identify_in(self.placed))
        if self.calls is not None:
            after = copy.deepcopy(scene.device.memory)
            call = Call(stream, payload, results, before, after, validators)
            self.calls.append(call)
        return results


def prepared(layout: Layout) -> tuple[Scene, StepPlan]:
    """A scene whose next step writes, fills, reads and commits all that there is."""
    scene, size = Scene.of(layout), layout.block_tokens
    first = scene.plan(
        [("a", [], [0, 1]), ("b", [], [2])], {"a": 2 * size - 1, "b": size - 1}
    )
    scene.run(first.place(), Validated(scene, first.place()))
    scene.runtime.publish(first)
    second = scene.plan(
        [("c", [], [3])],
        {"a": 1, "b": 1, "c": 1},
        readbacks=[("a", 1, 2 * size - 1)],
    )
    return scene, second
