"""One layer of one step: the rows of vLLM's batch in, the device's results out.

Rows are found by the slots of vLLM's KV cache (block id * block tokens + offset), so
that it does not matter in which order the model runner has put requests.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.attention import LayerResult, run_layer
from patton.commands import Tokens
from patton.elements import decode
from patton.errors import EngineStateError
from patton.executor import Executor
from patton.layout import Layout
from patton.operands import spread
from patton.vllm.worker import WorkerStep

Bits = NDArray[np.uint16]
Floats = NDArray[np.float32]
Ints = NDArray[np.int64]


@attrs.frozen(eq=False)
class Batch:
    """What the host computed for the tokens of a step, row by row.

    slots int64 [rows]; keys, values: element bit patterns [rows, heads, D]; queries
    [rows, heads, G, D].
    """

    slots: Ints
    keys: Bits
    values: Bits
    queries: Bits

    def rows_of(self, slots: Ints) -> Ints:
        """The rows with these slots. Raises EngineStateError."""
        order = np.argsort(self.slots)
        place = np.searchsorted(self.slots, slots, sorter=order)
        rows = order[np.minimum(place, len(order) - 1)]
        missing = slots[self.slots[rows] != slots]
        if len(missing):
            problem = f"slot {missing[0]} is written or read by the step"
            raise EngineStateError("batch", f"{problem}, but has no row")
        return rows


@attrs.frozen(eq=False)
class Prefix:
    """Keys and Values that were read back, float32 [tokens, heads, D].

    row: of the batch, that of the token which follows.
    """

    row: int
    keys: Floats
    values: Floats


@attrs.frozen(eq=False)
class LayerOutput:
    """rows [Q]: those that attended on the device; outputs float32 [Q, heads, G, D].

    prefixes: what the other rows need to attend on the host.
    """

    rows: Ints
    outputs: Floats
    prefixes: list[Prefix]


@attrs.define(eq=False)
class Layer:
    """One layer on the device, and the host's copy of what its Commit Zone holds.

    staged: [slots, block tokens, heads, D], the Values that a host commit sends.
    """

    executor: Executor
    layout: Layout
    number: int
    staged: Bits

    @classmethod
    def of(cls, executor: Executor, layout: Layout, number: int) -> Layer:
        """A layer of which nothing is written."""
        model = layout.model
        slots = layout.slots * layout.stripes
        shape = (slots, layout.block_tokens, model.kv_heads, model.head_dim)
        return cls(executor, layout, number, np.zeros(shape, np.uint16))

    def run(self, step: WorkerStep, batch: Batch) -> LayerOutput:
        """Execute the streams of a step for this layer.

        Raises EngineStateError if the batch is not that of the step, and what
        `run_layer` raises.
        """
        placed, commit = step.placed, step.streams.commit
        self._stage(step, batch)

        def keys(tokens: Tokens) -> Bits:
            return batch.keys[self._rows(step, batch, tokens)]

        def values(tokens: Tokens) -> Bits:
            if commit is not None and tokens is commit.tokens:
                blocks = self.staged[placed.commit_slot]
                return blocks.reshape(-1, *blocks.shape[2:])
            return batch.values[self._rows(step, batch, tokens)]

        last = placed.read_end - 1
        rows = batch.rows_of(step.slots(placed.read_request, last))
        result = run_layer(
            self.executor,
            step.streams,
            layer=self.number,
            element=self.layout.device.element,
            keys=keys,
            values=values,
            queries=batch.queries[rows],
        )
        outputs = result.outputs
        if outputs is None:
            outputs = np.zeros((0, *batch.queries.shape[1:]), np.float32)
        return LayerOutput(rows, outputs, self._prefixes(step, batch, result))

    def _rows(self, step: WorkerStep, batch: Batch, tokens: Tokens) -> Ints:
        return batch.rows_of(step.slots(tokens.request, tokens.position))

    def _stage(self, step: WorkerStep, batch: Batch) -> None:
        """Keep the Values that this step puts into the Commit Zone."""
        placed = step.placed
        into = np.flatnonzero(placed.write_slot >= 0)
        segment, offset = spread(placed.write_count[into])
        segment = into[segment]
        position = placed.write_position[segment] + offset
        rows = batch.rows_of(step.slots(placed.write_request[segment], position))
        place = placed.write_slot[segment], placed.write_start[segment] + offset
        self.staged[place] = batch.values[rows]

    def _prefixes(
        self, step: WorkerStep, batch: Batch, result: LayerResult
    ) -> list[Prefix]:
        """What was read back, range by range."""
        placed, element = step.placed, self.layout.device.element
        if result.keys is None or result.values is None:
            return []
        follows = step.slots(placed.readback_request, placed.readback_end)
        rows = batch.rows_of(follows).tolist()
        counts = placed.readback_end - placed.readback_start
        cuts = np.cumsum(counts)[:-1]
        keys = np.split(decode(result.keys, element), cuts)
        values = np.split(decode(result.values, element), cuts)
        found = zip(rows, keys, values, strict=True)
        return [Prefix(*prefix) for prefix in found]
