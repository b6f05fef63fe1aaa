"""Layers of short served runs on small devices equal the reference in every bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patton.attention import Bits, run_layer
from patton.commands import Tokens
from patton.config import CommitWay, ElementType
from patton.device.batched import ReferenceDevice
from patton.errors import ArgumentError
from patton.generate import StepStreams
from patton.runtime import Runtime
from tests.core.strategies import random_layout
from tests.served import ServedEngine

WAYS: tuple[CommitWay, ...] = ("host", "read-back", "global-buffer")


@pytest.mark.parametrize("seed", range(9))
def test_a_short_run_equals_the_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    way = WAYS[seed % 3]
    layout = random_layout(
        rng,
        commit_way=way,
        copy_column="free" if way == "global-buffer" else "same",
        write_masks=seed % 2 > 0,
        result_registers=1 + seed % 4,
    )
    runtime = Runtime.of(layout, commit_zone=seed % 5 > 0)
    engine = ServedEngine(runtime, [ReferenceDevice(layout.device)], rng)
    for _ in range(6):
        engine.step()
    runtime.check()


def test_a_step_without_streams_comes_to_nothing() -> None:
    """It asks the executor for nothing, and for no data."""
    layout = random_layout(np.random.default_rng(0))

    def no_data(tokens: Tokens) -> Bits:
        raise AssertionError(tokens)

    nothing: dict[str, None] = dict.fromkeys(StepStreams.__annotations__)
    result = run_layer(
        ReferenceDevice(layout.device),
        StepStreams(**nothing),
        layer=0,
        element=ElementType.BF16,
        keys=no_data,
        values=no_data,
        queries=np.zeros((0, 1, 1, 1), np.uint16),
    )

    assert (None, None, None) == (result.outputs, result.keys, result.values)


@pytest.mark.parametrize("name", ["keys", "values"])
def test_data_that_cannot_be_asked_for_is_refused(name: str) -> None:
    layout = random_layout(np.random.default_rng(0))
    streams = StepStreams(**dict.fromkeys(StepStreams.__annotations__))
    data: dict[str, Any] = {"keys": len, "values": len, name: None}
    with pytest.raises(ArgumentError) as raised:
        run_layer(
            ReferenceDevice(layout.device),
            streams,
            layer=0,
            element=ElementType.BF16,
            queries=np.zeros((0, 1, 1, 1), np.uint16),
            **data,
        )

    assert ("run_layer", name) == (raised.value.call, raised.value.argument)
