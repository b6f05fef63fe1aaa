"""Checking a served step on the device against the reference, to the last bit.

Keys, Values and Queries are functions of who a token is, so the reference needs no
memory of what was written where: a block shared, evicted or overwritten at the wrong
time shows as another token's data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.attention import LayerResult, run_layer
from patton.commands import CommandStream, Tokens
from patton.device.reference import attention, attention_float64, max_rel_error
from patton.engine import data
from patton.engine.requests import Request
from patton.errors import MismatchError
from patton.executor import Executor
from patton.generate import StepStreams
from patton.layout import Layout
from patton.steps import PlacedStep

Bits = NDArray[np.uint16]
_Source = Callable[..., Bits]


def identities_of(rows: Sequence[Request], tokens: Tokens) -> data.Identities:
    """Who some tokens are; their requests are indices into `rows`."""
    identities = np.empty(len(tokens.position), np.uint64)
    for index in np.unique(tokens.request).tolist():
        chosen = tokens.request == index
        positions = tokens.position[chosen]
        identities[chosen] = rows[index].tokens.token_identity(positions)
    return identities


@attrs.define(eq=False)
class _History:
    """Keys and Values of a request's tokens so far in one layer, [tokens, heads, D]."""

    keys: Bits
    values: Bits
    tokens: int = 0


@attrs.define(eq=False)
class DataCheck:
    """Executes steps with pseudo-random data and compares every output.

    layers: how many are executed. outputs: query head vectors compared; read_back:
    tokens whose Key and Value were read back and compared; max_rel_error: largest error
    of an output against double precision.
    """

    layout: Layout
    executor: Executor
    layers: int
    outputs: int = 0
    read_back: int = 0
    max_rel_error: float = 0.0
    _histories: dict[tuple[int, int], _History] = attrs.field(factory=dict)

    def run(
        self,
        placed: PlacedStep,
        streams: StepStreams,
        requests: Mapping[int, Request],
    ) -> None:
        """Execute one step's streams in every layer. Raises MismatchError."""
        rows = [requests[int(name)] for name in placed.requests]
        for layer in range(self.layers):
            queries = self._queries(placed, rows, layer)
            result = run_layer(
                self.executor,
                streams,
                layer=layer,
                element=self.layout.device.element,
                keys=partial(self._data, data.keys, rows, layer),
                values=partial(self._data, data.values, rows, layer),
                queries=queries,
            )
            self._compare_read_back(streams, rows, result, layer)
            if result.outputs is not None:
                self._compare_outputs(placed, rows, queries, result.outputs, layer)

    def forget(self, request: int) -> None:
        """A request ended: its history goes."""
        for layer in range(self.layers):
            self._histories.pop((request, layer), None)

    # --- what a token's data are --------------------------------------------------

    def _data(
        self, source: _Source, rows: list[Request], layer: int, tokens: Tokens
    ) -> Bits:
        return self._of(source, identities_of(rows, tokens), layer)

    def _of(self, source: _Source, identities: data.Identities, layer: int) -> Bits:
        model = self.layout.model
        heads, size = model.kv_heads, model.head_dim
        return source(identities, layer, heads, size, self.layout.device.element)

    def _queries(self, placed: PlacedStep, rows: list[Request], layer: int) -> Bits:
        model, element = self.layout.model, self.layout.device.element
        last = placed.read_end - 1
        identities = np.array(
            [
                int(rows[r].tokens.token_identity(last[i : i + 1])[0])
                for i, r in enumerate(placed.read_request.tolist())
            ],
            np.uint64,
        )
        heads = (model.kv_heads, model.query_heads_per_kv)
        return data.queries(identities, layer, heads, model.head_dim, element)

    def _history(self, request: Request, layer: int, tokens: int) -> _History:
        """Keys and Values of the first `tokens` positions, worked out as needed."""
        key = request.id, layer
        model = self.layout.model
        empty = np.empty((0, model.kv_heads, model.head_dim), np.uint16)
        history = self._histories.setdefault(key, _History(empty, empty))
        if len(history.keys) < tokens:
            # Grown by doubling, so that decoding does not copy it at every token.
            end = min(max(tokens, 2 * len(history.keys)), request.final_tokens)
            positions = np.arange(len(history.keys), end)
            identities = request.tokens.token_identity(positions)
            more = self._of(data.keys, identities, layer)
            history.keys = np.concatenate([history.keys, more])
            more = self._of(data.values, identities, layer)
            history.values = np.concatenate([history.values, more])
        return history

    # --- comparisons --------------------------------------------------------------

    def _compare_outputs(
        self,
        placed: PlacedStep,
        rows: list[Request],
        queries: Bits,
        outputs: NDArray[np.float32],
        layer: int,
    ) -> None:
        ends = np.zeros(len(rows), np.int64)
        np.maximum.at(ends, placed.read_request, placed.read_end)
        histories = [
            self._history(row, layer, end)
            for row, end in zip(rows, ends.tolist(), strict=True)
        ]
        keys = [history.keys for history in histories]
        values = [history.values for history in histories]
        expected = attention(placed, keys, values, queries)
        wrong = outputs.view(np.uint32) != expected.view(np.uint32)
        if wrong.any():
            query, head, per_kv, element = np.argwhere(wrong)[0].tolist()
            row = rows[int(placed.read_request[query])]
            what = f"element {element} of head {head}, query head {per_kv}"
            found = outputs[query, head, per_kv, element]
            due = expected[query, head, per_kv, element]
            raise MismatchError(what, row.id, placed.step, layer, str(found), str(due))
        exact = attention_float64(placed, keys, values, queries)
        self.max_rel_error = max(self.max_rel_error, max_rel_error(outputs, exact))
        self.outputs += outputs[..., 0].size

    def _compare_read_back(
        self,
        streams: StepStreams,
        rows: list[Request],
        result: LayerResult,
        layer: int,
    ) -> None:
        pairs = (
            (streams.read_key, result.keys, data.keys, "Key"),
            (streams.read_value, result.values, data.values, "Value"),
        )
        for stream, found, source, name in pairs:
            if stream is not None and found is not None:
                tokens = _tokens_of(stream)
                expected = self._data(source, rows, layer, tokens)
                self._compare_tokens(tokens, rows, found, expected, name, layer, stream)
        if result.keys is not None:
            self.read_back += len(result.keys)

    def _compare_tokens(
        self,
        tokens: Tokens,
        rows: list[Request],
        found: Bits,
        expected: Bits,
        name: str,
        layer: int,
        stream: CommandStream,
    ) -> None:
        wrong = found != expected
        if wrong.any():
            token, head, element = np.argwhere(wrong)[0].tolist()
            row = rows[int(tokens.request[token])]
            place = f"{name} element {element} of head {head}"
            what = f"{place} at position {tokens.position[token]}"
            pair = str(found[token, head, element]), str(expected[token, head, element])
            raise MismatchError(what, row.id, stream.step, layer, *pair)


def _tokens_of(stream: CommandStream) -> Tokens:
    assert stream.tokens is not None
    return stream.tokens
