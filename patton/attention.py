"""One layer of one engine step on an executor: every stream in its order (layout 4).

All writes come before all reads, so that a token attends to itself and a block may be
shared in the step that fills it; commits come last, because until they are published
every reader goes to the slot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.arguments import expect, expect_call
from patton.commands import CommandStream, Tokens
from patton.config import ElementType
from patton.executor import Executor, Results
from patton.generate import StepStreams
from patton.operands import no_payload, query_payload, weight_payload, write_payload
from patton.reduction import (
    outputs,
    query_offsets,
    read_back,
    scores,
    softmax_weights,
)

Bits = NDArray[np.uint16]
Floats = NDArray[np.float32]

# Element bit patterns [tokens, heads, D] of the tokens that a stream writes. Those are
# more than the step's new ones where a block is committed by the host, and where a
# device without write masks rewrites a burst.
TokenData: TypeAlias = Callable[[Tokens], Bits]


@attrs.frozen(eq=False)
class LayerResult:
    """What a step's streams came to in one layer.

    outputs: float32 [Q, heads, G, D] in the order of the step's reads, None where it
    has none; keys, values: uint16 [tokens, heads, D] that were read back, tokens as in
    the streams' tables, None where the step reads nothing back.
    """

    outputs: Floats | None
    keys: Bits | None
    values: Bits | None


def run_layer(
    executor: Executor,
    streams: StepStreams,
    *,
    layer: int,
    element: ElementType,
    keys: TokenData,
    values: TokenData,
    queries: Bits,
) -> LayerResult:
    """Execute a step's streams for one layer and reduce what they return.

    keys, values: what the engine computed for a token; queries: element bit patterns
    [Q, heads, G, D], in the order of the step's reads. Raises ArgumentError,
    ExecutionError, PayloadError, UnwrittenResultError.
    """
    expect_call("run_layer", "executor", executor, "run")
    expect("run_layer", "streams", streams, StepStreams)
    expect("run_layer", "layer", layer, int)
    expect("run_layer", "element", element, ElementType)
    for name, data in (("keys", keys), ("values", values)):
        expect_call("run_layer", name, data)
    _write(executor, streams.key_write, layer, keys)
    _write(executor, streams.value_write, layer, values)
    read_keys = _read(executor, streams.read_key, layer)
    read_values = _read(executor, streams.read_value, layer)
    attended = _attend(executor, streams, layer, element, queries)
    _write(executor, streams.commit, layer, values)
    return LayerResult(attended, read_keys, read_values)


def _write(
    executor: Executor, stream: CommandStream | None, layer: int, data: TokenData
) -> None:
    if stream is not None:
        payload = no_payload(stream)
        if stream.source == "host":
            assert stream.tokens is not None
            payload = write_payload(stream, data(stream.tokens))
        executor.run(stream, payload, layer=layer)


def _read(executor: Executor, stream: CommandStream | None, layer: int) -> Bits | None:
    if stream is None:
        return None
    return read_back(stream, executor.run(stream, no_payload(stream), layer=layer))


def _attend(
    executor: Executor,
    streams: StepStreams,
    layer: int,
    element: ElementType,
    queries: Bits,
) -> Floats | None:
    """QK, softmax on the host, then SV and the partial blocks (Paper 4.5)."""
    if streams.qk is None:
        return None
    assert streams.qk.queries is not None
    results = executor.run(streams.qk, query_payload(streams.qk, queries), layer=layer)
    weights = softmax_weights(
        scores(streams.qk, results, element),
        query_offsets(streams.qk.queries),
        streams.qk.frame.head_dim,
        element,
    )
    partials: list[tuple[CommandStream, Results]] = []
    for stream in (streams.sv, streams.partial):
        if stream is not None:
            payload = weight_payload(stream, weights)
            partials.append((stream, executor.run(stream, payload, layer=layer)))
    return outputs(partials, element)
