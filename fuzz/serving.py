"""An engine with data on devices of numbers: every output compared in every bit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fuzz.world import FailureError
from patton.device import PlainDevice, ReferenceDevice
from patton.elements import encode
from patton.errors import UnwrittenResultError
from patton.executor import Executor
from patton.layout import Layout
from patton.runtime import Runtime
from tests.core.strategies import random_layout
from tests.served import ServedEngine

LEFT_BY_OTHERS = (np.nan, np.inf, -np.inf, 3e38, -1.0)


def serve(seed: int, steps: int) -> tuple[int, FailureError | None]:
    """Steps on two devices: the steps taken, and the failure if there is one."""
    layout = _layout(seed)
    devices: list[Executor] = [
        ReferenceDevice(layout.device),
        PlainDevice(layout.device),
    ]
    return _served(layout, devices, seed, steps)


def serve_after_others(seed: int, steps: int) -> tuple[int, FailureError | None]:
    """Steps on a device whose every lane others have written: with what, is all one.

    A failure that what they left makes, and zeros do not, breaks DEV-ALONE.
    """
    layout = _layout(seed)
    taken, failure = _served(layout, [_used(layout, LEFT_BY_OTHERS)], seed, steps)
    if failure is not None and _served(layout, [_used(layout, (0,))], seed, steps)[1]:
        return taken, failure
    return taken, failure and FailureError("DEV-ALONE", f"left by others: {failure}")


def _layout(seed: int) -> Layout:
    return random_layout(np.random.default_rng([seed, 1]))


def _used(layout: Layout, values: Sequence[float]) -> ReferenceDevice:
    """A device whose lanes hold some values, all written."""
    device = ReferenceDevice(layout.device)
    memory, shape = device.memory, layout.device
    channels, rows = np.indices((shape.channels, shape.rows)).reshape(2, -1)
    memory.provide(channels, rows)
    for channel, row in zip(channels.tolist(), rows.tolist(), strict=True):
        bits, written = memory.slab(channel, row)
        lanes = np.resize(np.array(values, np.float32), bits.shape)
        bits[:] = encode(lanes, shape.element)
        written[:] = memory.full_mask
    return device


def _served(
    layout: Layout, devices: Sequence[Executor], seed: int, steps: int
) -> tuple[int, FailureError | None]:
    rng = np.random.default_rng([seed, 2])
    engine = ServedEngine(Runtime.of(layout), devices, rng)
    for done in range(steps):
        try:
            engine.step()
        except UnwrittenResultError as error:
            return done, FailureError("DEV-WRITTEN", str(error))
        except AssertionError as error:
            return done, FailureError("DEV-BITS", f"other bits: {error}")
    return steps, None
