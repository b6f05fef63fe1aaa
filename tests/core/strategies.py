"""Small valid layouts of every kind, drawn by Hypothesis or from a seed.

Odd sizes, banks unlike lanes, folds, stripes, idle channels, padding, several Key rows
per pair, several Commit Zone rows and rows left over all occur often. At most some
thousand elements per block and a few pairs, so that everything can be enumerated.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import lcm
from typing import Any

import attrs
import numpy as np
from hypothesis import strategies as st

from patton.config import DeviceConfig, ElementType, ModelConfig
from patton.generate.schedule import Order
from patton.layout import Layout

# Chooses a whole number between two, both included.
Choose = Callable[[int, int], int]

# Every order of the commands that there is, at the usual costs.
ORDERS = [
    Order(*choices)  # type: ignore[arg-type]
    for choices in product(
        ("row", "rows", "cheaper"),
        ("apart", "together"),
        ("in-turn", "together"),
        (False, True),
        (False, True),
    )
]


@st.composite
def layouts(draw: st.DrawFn, /, **device_fields: Any) -> Layout:
    """Layouts; `device_fields` replaces fields of the device that leave its sizes."""
    return _layout(lambda low, high: draw(st.integers(low, high)), device_fields)


def random_layout(rng: np.random.Generator, **device_fields: Any) -> Layout:
    """One layout of the same kinds from a NumPy generator."""
    return _layout(lambda low, high: int(rng.integers(low, high + 1)), device_fields)


def address_counts(device: DeviceConfig) -> tuple[int, int, int, int, int]:
    """How many values each field of an `Address` has on the device."""
    shape = (device.channels, device.banks, device.rows)
    return (*shape, device.bursts_per_row, device.lanes)


def _layout(choose: Choose, device_fields: dict[str, Any]) -> Layout:
    banks, lanes = choose(1, 6), choose(1, 6)
    smallest = lcm(banks, lanes)
    block_tokens = smallest * choose(1, 3 if smallest <= 8 else 1)
    channels, model = _channels_and_model(choose, banks, lanes)
    roomy = DeviceConfig(
        name="random",
        channels=channels,
        banks=banks,
        rows=2**30,
        row_bytes=2**14 * 2 * lanes,
        burst_bytes=2 * lanes,
        element=(ElementType.BF16, ElementType.FP16)[choose(0, 1)],
        result_registers=choose(1, 4),
    )
    roomy = attrs.evolve(roomy, **device_fields)
    wide = Layout.of(roomy, model, block_tokens=block_tokens)
    widest = max(wide.key_width, wide.rows_per_value * wide.value_width)
    bursts = widest + choose(0, 2 * widest)
    deep_device = attrs.evolve(roomy, row_bytes=bursts * roomy.burst_bytes)
    deep = Layout.of(deep_device, model, block_tokens=block_tokens)
    pair_blocks = choose(1, 7)
    slots = choose(1, 2 * deep.slots_per_row)
    plane_rows = sum(deep.rows_for(choose(1, 4) * pair_blocks, slots)) + choose(0, 2)
    rows = plane_rows * deep.planes + choose(0, deep.planes - 1)
    return Layout.of(
        attrs.evolve(deep_device, rows=rows),
        model,
        block_tokens=block_tokens,
        pair_blocks=pair_blocks,
        slots=slots,
    )


def _channels_and_model(
    choose: Choose, banks: int, lanes: int
) -> tuple[int, ModelConfig]:
    kind = choose(0, 3)
    head_dim = choose(1, 3 * max(banks, lanes))
    if kind == 0:  # folds: more heads than channels
        channels = choose(1, 3)
        kv_heads = channels + choose(1, 4)
    elif kind == 1:  # stripes: more channels of a head than Value sub-blocks
        kv_heads = choose(1, 2)
        channels = kv_heads * choose(2, 8) + choose(0, kv_heads - 1)
        head_dim = choose(1, 2 * banks)
    else:
        channels, kv_heads = choose(1, 9), choose(1, 4)
    model = ModelConfig(
        name="random",
        layers=choose(1, 2),
        kv_heads=kv_heads,
        query_heads=kv_heads * choose(1, 3),
        head_dim=head_dim,
        max_context=512,
    )
    return channels, model
