"""Whether the runtime knows exactly what is true of vLLM's blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.layout import Layout
from patton.runtime import Runtime
from patton.vllm.lifecycle import Lifecycle


@attrs.frozen(eq=False)
class PoolTruth:
    """What is true of a pool after a step has been scheduled.

    tables: request -> block ids, 0 for one given up. By block: references, the requests
    that hold it; cached, whether a lookup can hit it; levels, tokens written, where it
    is held or cached.
    """

    tables: Mapping[str, Sequence[int]]
    references: NDArray[np.int64]
    cached: NDArray[np.bool_]
    levels: NDArray[np.int64]


def differences(lifecycle: Lifecycle, truth: PoolTruth) -> Iterator[str]:
    """Every way in which the runtime's state is not the pool's, in words."""
    state = lifecycle.runtime.placements
    known = {
        str(request): [0] * lifecycle.leading.get(str(request), 0)
        + [max(block, 0) for block in held.blocks]
        for request, held in state.requests.items()
    }
    for request in known.keys() | truth.tables.keys():
        table, told = list(truth.tables.get(request, ())), known.get(request, [])
        if table != told:
            yield f"table of {request}: {told}, in the pool {table}"
    references = np.array(state.references)
    for block in np.flatnonzero(references != truth.references).tolist():
        found, true = references[block], truth.references[block]
        yield f"references of block {block}: {found}, in the pool {true}"
    written = np.frombuffer(state.written, np.int32)
    held = (truth.references > 0) | truth.cached
    for block in np.flatnonzero(held & (written != truth.levels)).tolist():
        yield f"level of block {block}: {written[block]}, not {truth.levels[block]}"


def scheduling(layout: Layout, blocks: int, **options: Any) -> Runtime:
    """A runtime as the scheduler's half has it, without a Commit Zone."""
    return Runtime.of(layout, blocks=blocks, commit_zone=False, **options)


def but_for_slots(runtime: Runtime) -> dict[str, Any]:
    """All that a runtime knows, except for slots and what is due to leave them."""
    snapshot = runtime.snapshot()
    facts = snapshot.pop("bound")
    snapshot["bound"] = {block: [row[0], *row[2:]] for block, row in facts.items()}
    del snapshot["due"], snapshot["copied"]
    return snapshot
