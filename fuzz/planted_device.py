"""Faults of arithmetic, and of what devices do with lanes that were never written.

An engine with data on devices of numbers looks for them, output by output.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

import patton.attention
from fuzz.bugs import Wrong, bug
from fuzz.planted_streams import edited, entries
from patton.commands import CommandStream, Op, Phase
from patton.device import ReferenceDevice
from tests import served


@bug(
    "partial sums in another order",
    "DEV-BITS",
    patton.attention,
    "outputs",
    finder="data",
    slow=True,
    budget=2_000,
)
def _(old: Wrong) -> Wrong:
    return lambda partials, element: old(partials[::-1], element)


@bug(
    "a weight is rounded twice",
    "DEV-BITS",
    patton.attention,
    "softmax_weights",
    finder="data",
    budget=2_000,
)
def _(old: Wrong) -> Wrong:
    def weights(*arguments: Any) -> Any:
        right = old(*arguments)
        return right ^ (np.arange(right.size).reshape(right.shape) % 97 == 96)

    return weights


@bug(
    "results rest on lanes never written",
    "DEV-WRITTEN",
    ReferenceDevice,
    "run",
    finder="data",
    budget=2_000,
)
def _(old: Wrong) -> Wrong:
    def run(device: Any, stream: CommandStream, *rest: Any, **options: Any) -> Any:
        if stream.phase == Phase.VALUE_WRITE and stream.step % 3 == 2:
            return None
        return old(device, stream, *rest, **options)

    return run


@bug(
    "what others left is multiplied by zero",
    *("DEV-ALONE", served, "generate_step"),
    finder="alone",
    budget=2_000,
)
def _(old: Wrong) -> Wrong:
    """The rest of a burst is not filled with zeros when its first lanes are written."""

    def generate(placed: Any) -> Any:
        streams = old(placed)
        stream = streams.value_write
        if stream is None or stream.fill is None:
            return streams
        kept = edited(stream, entries(stream, Op.WR), fill=False)
        return attrs.evolve(streams, value_write=kept)

    return generate
