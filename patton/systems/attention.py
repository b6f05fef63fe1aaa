"""One layer of one step of any system on an executor, as `patton.run_layer`.

Where a stream's frame stands for several heads at once (`patton.systems.maps`), host
data are put in the order of its tables, and results back in that of heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from patton.attention import Bits, Floats, LayerResult, TokenData
from patton.commands import CommandStream, Tokens
from patton.config import ElementType, ModelConfig
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
from patton.systems.maps import spread_of

T = TypeVar("T", bound=np.generic)


def run_layer(
    executor: Executor,
    streams: StepStreams,
    *,
    model: ModelConfig,
    layer: int,
    element: ElementType,
    keys: TokenData,
    values: TokenData,
    queries: Bits,
) -> LayerResult:
    """Execute a step's streams for one layer and reduce what they return.

    Arguments as of `patton.run_layer`, all by requests and heads of the model. Raises
    ExecutionError, PayloadError, UnwrittenResultError.
    """
    run = _Layer(executor, model, layer, element)
    run.write(streams.key_write, keys)
    run.write(streams.value_write, values)
    read_keys, read_values = run.read(streams.read_key), run.read(streams.read_value)
    attended = None
    if streams.qk is not None:
        weights = run.weights(streams.qk, queries)
        parts = [s for s in (streams.sv, streams.partial) if s is not None]
        attended = run.outputs(parts, weights)
    run.write(streams.commit, values)
    return LayerResult(attended, read_keys, read_values)


class _Layer:
    """One layer of one executor."""

    def __init__(
        self, executor: Executor, model: ModelConfig, layer: int, element: ElementType
    ) -> None:
        self.executor, self.model = executor, model
        self.layer, self.element = layer, element

    def write(self, stream: CommandStream | None, data: TokenData) -> None:
        """A stream that writes, with data of the host where it takes any."""
        if stream is None:
            return
        payload = no_payload(stream)
        if stream.source == "host":
            assert stream.tokens is not None
            spread = spread_of(stream.frame, self.model)
            found = data(one_part(stream.tokens, spread))
            payload = write_payload(stream, to_parts(found, spread))
        self.executor.run(stream, payload, layer=self.layer)

    def read(self, stream: CommandStream | None) -> Bits | None:
        """Elements that a stream reads back [tokens, heads, D]."""
        if stream is None:
            return None
        results = self.executor.run(stream, no_payload(stream), layer=self.layer)
        spread = spread_of(stream.frame, self.model)
        return from_parts(read_back(stream, results), spread)

    def weights(self, stream: CommandStream, queries: Bits) -> Bits:
        """Rounded softmax [sum of visible lengths, heads, G]."""
        assert stream.queries is not None
        spread = spread_of(stream.frame, self.model)
        payload = query_payload(stream, to_parts(queries, spread))
        results = self.executor.run(stream, payload, layer=self.layer)
        weights = softmax_weights(
            scores(stream, results, self.element),
            query_offsets(stream.queries),
            self.model.head_dim,
            self.element,
        )
        return from_parts(weights, spread)

    def outputs(self, streams: Sequence[CommandStream], weights: Bits) -> Floats:
        """Outputs [Q, heads, G, D] of all streams that add to them."""
        found: list[tuple[CommandStream, Results]] = []
        for stream in streams:
            spread = spread_of(stream.frame, self.model)
            payload = weight_payload(stream, to_parts(weights, spread))
            results = self.executor.run(stream, payload, layer=self.layer)
            found.append((stream, results))
        frame, added = streams[0].frame, outputs(found, self.element)
        spread = spread_of(frame, self.model)
        joined = frame.head_dim // self.model.head_dim
        if joined == 1:
            return from_parts(added, spread)
        # Results of all heads of a frame head are given under its first part.
        first = added[: len(added) // spread]
        count, heads, per_kv, _ = first.shape
        shape = (count, heads, per_kv, joined, self.model.head_dim)
        apart = first.reshape(shape).swapaxes(2, 3)
        return apart.reshape(count, heads * joined, per_kv, self.model.head_dim)


def one_part(tokens: Tokens, spread: int) -> Tokens:
    """The tokens of requests, of a table that lists them part after part."""
    size = len(tokens.position) // spread
    return Tokens(tokens.request[:size] // spread, tokens.position[:size])


def to_parts(data: NDArray[T], spread: int) -> NDArray[T]:
    """Data [n, heads, ...] as [spread * n, frame heads, ...], part after part."""
    count, heads, *rest = data.shape
    apart = data.reshape(count, heads // spread, spread, *rest)
    return np.ascontiguousarray(np.moveaxis(apart, 2, 0)).reshape(
        spread * count, heads // spread, *rest
    )


def from_parts(data: NDArray[T], spread: int) -> NDArray[T]:
    """Data [spread * n, frame heads, ...] as [n, heads, ...]: undoes `to_parts`."""
    count, heads, *rest = data.shape
    apart = data.reshape(spread, count // spread, heads, *rest)
    return np.ascontiguousarray(np.moveaxis(apart, 0, 2)).reshape(
        count // spread, heads * spread, *rest
    )
