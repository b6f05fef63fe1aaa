"""The modified unit: what it computes, what it refuses, and that others refuse it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op, Phase
from patton.device import ReferenceDevice
from patton.device.aim import stream_trace, streams_of
from patton.errors import ProtocolError, UnwrittenResultError
from patton.operands import weight_payload
from patton.reduction import outputs
from patton.steps import Step
from patton.systems.attention import run_layer
from patton.systems.bundle_step import BundleStep
from tests.systems.scene import Scene

NAMES = ("attenpim", "l3")


def prepared(name: str) -> tuple[Scene, Step, CommandStream]:
    """Some tokens written, and the SV stream of a read of them."""
    scene = Scene.named(name, {}, "llama3-8b")
    step = Step()
    scene.write(step, "a", 70)
    scene.run(step)
    step = Step()
    scene.read(step, "a")
    stream = scene.memory.apply(step).streams().sv
    assert stream is not None
    return scene, step, stream


def payload_of(stream: CommandStream, scene: Scene) -> Any:
    """Weights of 1 for all."""
    model, parts = scene.memory.model, scene.memory.model.kv_heads // stream.frame.heads
    shape = 70 * parts, stream.frame.heads, model.query_heads_per_kv
    return weight_payload(stream, np.full(shape, 0x3F80, np.uint16))


@pytest.mark.parametrize("name", NAMES)
def test_sums_of_ones(name: str) -> None:
    """Weights of one: the sum of the Values of all tokens, head by head."""
    scene, _, stream = prepared(name)
    results = scene.device.run(stream, payload_of(stream, scene))
    found = outputs([(stream, results)], scene.memory.device.element)
    parts = scene.memory.model.kv_heads // stream.frame.heads
    values = scene._numbers(1, scene.tokens["a"], (8,)).astype(np.uint32) << 16
    due = values.view(np.float32).astype(np.float64).sum(axis=0)
    due = due.reshape(stream.frame.heads, 1, parts * 128)

    assert np.abs(found[0] - due).max() < 0.05 * np.abs(due).max()
    assert results.mac_written.all()


@pytest.mark.parametrize("name", NAMES)
def test_an_unmodified_device_refuses(name: str) -> None:
    """It has no such unit, however many registers it has."""
    scene, _, stream = prepared(name)
    device = ReferenceDevice(scene.memory.device)
    with pytest.raises(ProtocolError, match="no outer-product unit"):
        device.run(stream, payload_of(stream, scene))


@pytest.mark.parametrize("name", NAMES)
def test_what_was_never_written_is_no_result(name: str) -> None:
    """The flag of a sum says whether all that went into it had been written."""
    scene, step, stream = prepared(name)
    fresh = Scene.named(name, {}, "llama3-8b")
    results = fresh.device.run(stream, payload_of(stream, scene))

    assert not results.mac_written.any()
    placed = scene.memory.apply(Step(reads=step.reads))
    with pytest.raises(UnwrittenResultError):
        run_layer(
            fresh.device,
            placed.streams(),
            model=scene.memory.model,
            layer=0,
            element=scene.memory.device.element,
            keys=lambda _: np.zeros(0, np.uint16),
            values=lambda _: np.zeros(0, np.uint16),
            queries=scene.queries(step),
        )


def changed(op: Op, which: int, **fields: int) -> Callable[[CommandStream], Any]:
    """The stream with columns of one entry of a kind changed."""

    def change(stream: CommandStream) -> CommandStream:
        at = np.flatnonzero(stream.op == op)[which]
        columns: dict[str, Any] = {}
        for name, value in fields.items():
            column = getattr(stream, name).copy()
            column[at] = value
            columns[name] = column
        return attrs.evolve(stream, **columns)

    return change


def without(op: Op, which: int) -> Callable[[CommandStream], Any]:
    """The stream without one entry of a kind."""

    def remove(stream: CommandStream) -> CommandStream:
        at = np.flatnonzero(stream.op == op)[which]
        kept = np.delete(np.arange(len(stream)), at)
        columns: dict[str, Any] = {
            name: column[kept] for name, column in stream.columns().items()
        }
        return attrs.evolve(stream, **columns)

    return remove


BAD = {
    "a row that is not open": (changed(Op.MACSV, 0, row=400), "row"),
    "some of the banks": (changed(Op.MACSV, 0, banks=8), "address"),
    "other registers": (changed(Op.MACSV, 0, register=1), "address"),
    "weights beyond the buffer": (changed(Op.MACSV, 0, reference=60), "address"),
    "a burst beyond the row": (changed(Op.MACSV, 0, burst=60), "address"),
    "weights that were never loaded": (without(Op.WRGB, 0), "operand"),
    "other weights, never loaded": (changed(Op.MACSV, 0, reference=40), "operand"),
    "a register not cleared": (without(Op.WRBIAS, 5), "register"),
    "a register beyond the unit": (changed(Op.RDMAC, 0, register=40), "address"),
}


@pytest.mark.parametrize("fault", BAD)
@pytest.mark.parametrize("name", NAMES)
def test_the_protocol_of_the_unit(name: str, fault: str) -> None:
    """Rows, weights and registers, as of any other command."""
    scene, _, stream = prepared(name)
    change, rule = BAD[fault]
    wrong = change(stream)
    with pytest.raises(ProtocolError) as caught:
        scene.device.run(wrong, payload_of(wrong, scene))

    assert rule == caught.value.rule


@pytest.mark.parametrize("name", NAMES)
def test_a_stream_that_is_stopped(name: str) -> None:
    """Results of commands from there on are not returned."""
    scene, _, stream = prepared(name)
    payload = payload_of(stream, scene)
    whole = scene.device.run(stream, payload)
    numbers = stream.command_offsets()[:-1][stream.op == Op.RDMAC]
    stop = int(numbers[7])
    some = scene.device.run(stream, payload, stop=stop)
    rows = stream.mac_offsets()[:-1][stream.op == Op.RDMAC]
    before, after = slice(0, int(rows[7])), slice(int(rows[7]), None)

    assert np.array_equal(whole.mac[before], some.mac[before])
    assert not some.mac_written[after].any()
    assert whole.mac_written.all()


@pytest.mark.parametrize("name", NAMES)
def test_text_and_traces_keep_it(name: str) -> None:
    """As of any other command."""
    _, _, stream = prepared(name)
    (recovered,) = streams_of(stream_trace(stream))
    for again in (CommandStream.from_text(stream.to_text()), recovered.stream):
        assert again.to_text() == stream.to_text()


def test_rows_are_opened_again_for_each_query_head() -> None:
    """Of 2,000 tokens in four rows; a single row stays open. Weights of eight fit."""
    scene = Scene.named("attenpim", {}, "llama3-8b")
    step = Step()
    scene.write(step, "long", 2000)
    scene.write(step, "short", 500)
    for request in ("long", "short", "short"):
        scene.read(step, request)
    placed = scene.memory.apply(step)
    assert isinstance(placed, BundleStep)
    stream = placed.streams().sv
    assert stream is not None
    opened = stream.channels[stream.op == Op.ACT].sum()

    assert 8 * 4 * 4 + 8 * 1 == opened
    assert 4 * opened == placed.counts()[Phase.SV].activations
    registers = 16
    clears = int((stream.op == Op.WRBIAS).sum())
    assert 3 * 4 * registers == clears
