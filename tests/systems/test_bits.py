"""Outputs are those of a reference to the last bit.

The reference knows the device's arithmetic and no stream's; of the streams it takes in
which order what is added up, which the validator has proved to be all of it. PATTON's
streams are held to the reference that works even that out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from patton.commands import CommandStream, Op
from patton.device import reference
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.vectors import trace
from patton.elements import decode, encode
from patton.steps import Step
from patton.systems.maps import whole_frame
from patton.systems.outer_terms import _results
from patton.systems.patton import PattonStep
from tests.systems.scene import MODELS, VARIANTS, Scene, variant_id

Floats = NDArray[np.float32]
# Of a query head vector and a part of the elements: lists of bursts, or of positions,
# each added up and rounded on its own, in the order in which they are added.
Order = dict[tuple[int, int], list[list[int]]]


@attrs.frozen
class Window:
    """A visible range as the reference's weights need it: inside whole bursts."""

    start: int
    stop: int

    def ranges(self) -> Iterator[tuple[int, int, int]]:
        yield 0, self.start, self.stop


def order_of(scene: Scene, streams: Sequence[CommandStream]) -> Order:
    """The bursts of every result."""
    found: Order = defaultdict(list)
    device, model = scene.memory.device, scene.memory.model
    for stream in streams:
        rows, terms = trace(stream, TagMemory(whole_frame(device, model)))
        bursts = terms.component // device.lanes
        for row in range(len(rows.vector)):
            begin = int(rows.begin[row])
            own = bursts[begin : begin + int(rows.count[row])]
            part = int(rows.component[row]) // device.banks
            found[int(rows.vector[row]), part].append(own.tolist())
    return found


def vectors_of(
    scene: Scene, step: Step, frame_heads: int
) -> Iterator[tuple[int, int, int, int]]:
    """Read, head, query head, and the number of its vector in streams of a frame."""
    model = scene.memory.model
    width = model.kv_heads // frame_heads
    for read in range(len(step.reads)):
        for head in range(model.kv_heads):
            part = head % width
            for query_head in range(model.query_heads_per_kv):
                vector = (part * len(step.reads) + read) * model.query_heads_per_kv
                yield read, head, query_head, vector + query_head


def weighed(
    scene: Scene, step: Step, read: int, head: int
) -> tuple[Floats, Floats, int]:
    """Rounded weights [G, tokens] and Values [tokens, D] from a whole burst on."""
    request, start, end = step.reads[read]
    element, lanes = scene.memory.device.element, scene.memory.device.lanes
    first = start // lanes * lanes
    names = scene.tokens[request][first:end]
    heads = (scene.memory.model.kv_heads,)
    key, value = (
        decode(
            np.ascontiguousarray(scene._numbers(kind, names, heads)[:, head]), element
        )
        for kind in (0, 1)
    )
    vectors = decode(np.ascontiguousarray(scene.queries(step)[read, head]), element)
    scores = reference._scores(vectors, np.ascontiguousarray(key.T), lanes, element)
    window: Any = Window(start - first, end - first)
    head_dim = key.shape[1]
    weights = reference._weights(scores[None], window, head_dim, element)[0]
    return weights, value, first


def expected(scene: Scene, step: Step, streams: Sequence[CommandStream]) -> Floats:
    """Outputs of inner products [Q, heads, G, D]."""
    device, model = scene.memory.device, scene.memory.model
    order = order_of(scene, streams)
    shape = len(step.reads), model.kv_heads, model.query_heads_per_kv, model.head_dim
    outputs = np.zeros(shape, np.float32)
    for read, head, query_head, vector in vectors_of(
        scene, step, streams[0].frame.heads
    ):
        if query_head == 0:
            weights, value, first = weighed(scene, step, read, head)
            sums = reference._burst_sums(weights, value, device.lanes)
        for part in range(-(-model.head_dim // device.banks)):
            columns = slice(part * device.banks, (part + 1) * device.banks)
            runs = [
                [burst - first // device.lanes for burst in run]
                for run in order[vector, part]
            ]
            some = sums[:, query_head : query_head + 1, columns]
            added = reference._add_up(some, runs, 1, device.element)
            outputs[read, head, query_head, columns] = added[0]
    return outputs


def expected_of_outer(scene: Scene, step: Step, stream: CommandStream) -> Floats:
    """Outputs of outer products [Q, heads, G, D]: token by token in each channel."""
    device, model, unit = scene.memory.device, scene.memory.model, scene.memory.unit
    assert unit is not None
    order: Order = defaultdict(list)
    for result in _results(stream, unit):
        own = result.sum.burst % unit.token_bursts == result.register // unit.lanes
        positions = result.sum.position[own, 0].tolist()
        order[result.vector, result.register].append(positions)
    shape = len(step.reads), model.kv_heads, model.query_heads_per_kv, model.head_dim
    outputs = np.zeros(shape, np.float32)
    for read, head, query_head, _ in vectors_of(scene, step, stream.frame.heads):
        if query_head == 0:
            weights, value, first = weighed(scene, step, read, head)
        vector = read * model.query_heads_per_kv + query_head
        for register in range(unit.registers):
            columns = slice(register, None, unit.registers)
            for run in order[vector, register]:
                total = np.zeros(unit.banks_per_head, np.float32)
                for position in run:
                    weight = weights[query_head, position - first]
                    total += weight * value[position - first, columns]
                rounded = decode(encode(total, device.element), device.element)
                outputs[read, head, query_head, columns] += rounded
    return outputs


def two_steps(scene: Scene, long: int) -> Iterator[tuple[Step, Any, Any]]:
    """Steps with their streams and results: windows, several reads of a request."""
    for counts in ({"a": long, "b": 20}, {"a": 1, "b": 3}):
        step = Step()
        for request, count in counts.items():
            scene.write(step, request, count)
            scene.read(step, request)
        scene.read(step, "a", start=19)
        placed = scene.memory.apply(step)
        kept = attrs.evolve(scene, memory=Kept(scene.memory, placed))
        yield step, placed, kept.run(step)


@attrs.frozen(eq=False)
class Kept:
    """A memory whose next step was applied before."""

    memory: Any
    placed: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.memory, name)

    def apply(self, step: Step) -> Any:  # noqa: ARG002 - it is that of `placed`
        return self.placed


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_outputs_are_the_references(
    variant: tuple[str, dict[str, Any]], model: str
) -> None:
    """All heads, several queries of a request, windows that begin inside a burst."""
    scene = Scene.named(*variant, model)
    for step, placed, result in two_steps(scene, 140 if model == MODELS[0] else 40):
        streams = placed.streams()
        if (streams.sv.op == Op.MACSV).any():
            due = expected_of_outer(scene, step, streams.sv)
        else:
            values = [s for s in (streams.sv, streams.partial) if s is not None]
            due = expected(scene, step, values)
        assert result.outputs is not None
        assert np.array_equal(result.outputs.view(np.uint32), due.view(np.uint32))


@pytest.mark.parametrize(
    "variant", [v for v in VARIANTS if v[0].startswith("patton")], ids=variant_id
)
def test_patton_is_held_to_its_own_reference(
    variant: tuple[str, dict[str, Any]],
) -> None:
    """Which works out the order of additions from placements alone."""
    scene = Scene.named(*variant, "llama3-8b")
    for step, placed, result in two_steps(scene, 200):
        assert isinstance(placed, PattonStep)
        heads = (scene.memory.model.kv_heads,)
        keys, values = (
            [scene._numbers(kind, scene.tokens[r], heads) for r in placed.requests]
            for kind in (0, 1)
        )
        due = reference.attention(placed.placed, keys, values, scene.queries(step))
        assert result.outputs is not None
        assert np.array_equal(result.outputs.view(np.uint32), due.view(np.uint32))


# Tokens of the longest sum, as its source has it.
LONGEST = {"neupims": 1024, "attacc": 1024, "blockpim": 128, "pimphony": 1024}


@pytest.mark.parametrize("name", LONGEST)
def test_sums_are_as_long_as_they_can_be(name: str) -> None:
    """Of 1,100 tokens: whole rows first, then the rest; blocks of 128."""
    scene = Scene.named(name, {}, "llama3-8b")
    step = Step()
    scene.write(step, "a", 1100)
    scene.read(step, "a")
    streams = scene.memory.apply(step).streams()
    assert streams.sv is not None
    assert streams.qk is not None
    sizes = {
        tuple(sorted(16 * len(run) for run in runs))
        for runs in order_of(scene, [streams.sv]).values()
    }
    most = LONGEST[name]
    whole, rest = divmod(1104, most)

    assert {(rest, *[most] * whole)} == sizes
