"""The reference for queries whose windows leave out a block that was given up."""

from __future__ import annotations

import numpy as np

from patton.config import device_preset, model_preset
from patton.device.reference import attention
from patton.elements import encode
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step

T = 16


def test_a_block_given_up_between_two_windows_has_no_say() -> None:
    """One query sees what is before it, another what is after; together and alone."""
    layout = Layout.of(device_preset("tiny"), model_preset("tiny"))
    model, element = layout.model, layout.device.element
    runtime = Runtime.of(layout)
    runtime.apply_step(Step(grants=[("a", [], [0, 1, 2])], writes=[("a", 0, 3 * T)]))
    runtime.release("a", 1)
    rng = np.random.default_rng(5)
    shape = (3 * T, model.kv_heads, model.head_dim)
    keys, values = (
        encode(rng.normal(size=shape).astype(np.float32), element) for _ in range(2)
    )
    heads = (2, model.kv_heads, model.query_heads_per_kv, model.head_dim)
    queries = encode(rng.normal(size=heads).astype(np.float32), element)
    reads = [("a", 0, T), ("a", 2 * T, 3 * T)]

    def outputs(chosen: slice) -> bytes:
        placed = runtime.apply_step(Step(reads=reads[chosen])).place()
        return attention(placed, [keys], [values], queries[chosen]).tobytes()

    assert outputs(slice(0, 1)) + outputs(slice(1, 2)) == outputs(slice(0, 2))
