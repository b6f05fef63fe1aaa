"""Counting what a run's steps cost, as the paper counts it (Paper 4.4, 5.4).

Row activations of single-token Value writes, per channel and for one layer, with the
Commit Zone and without it; and how long the runs are over which SV accumulates.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np

from patton.commit_zone import NO_SLOT
from patton.layout import Layout
from patton.steps import PlacedStep, StepPlan


@attrs.define
class ValueWriteActivations:
    """All-bank row activations of single-token Value writes, commits included.

    direct: had every token been written straight to its O1V, whose rows are all opened
    for it. commit_zone: what was done: Commit Zone rows opened, each once a step, the
    rows of every commit, and those of writes that found no slot.
    """

    direct: int = 0
    commit_zone: int = 0

    @property
    def ratio(self) -> float:
        """How many times fewer activations the Commit Zone takes; 0 without writes."""
        return self.direct / self.commit_zone if self.commit_zone else 0.0

    def add(self, layout: Layout, plan: StepPlan, single: Iterable[object]) -> None:
        """Count one step; single: the requests that write one token in it."""
        wanted = set(single)
        stripes, per_row = layout.stripes, layout.slots_per_row
        rows: set[int] = set()
        tokens = unstaged = 0
        for _, _, _, slot, _, _, request, _ in plan.rows:
            if request in wanted:
                tokens += 1
                if slot == NO_SLOT:
                    unstaged += 1
                else:
                    rows.add(slot // stripes // per_row)
        self.direct += layout.rows_per_value * tokens
        opened = layout.rows_per_value * (len(plan.commits) + unstaged)
        self.commit_zone += len(rows) + opened


@attrs.define
class ValueRuns:
    """Runs of SV: visits of a decoding request to a Value Row Set.

    A visit counts once for all heads, channels and stripes; blocks are those resident
    in their O1V, which it accumulates without interruption.
    """

    runs: int = 0
    blocks: int = 0

    @property
    def blocks_per_run(self) -> float:
        """Mean length of a run in blocks; 0 without runs."""
        return self.blocks / self.runs if self.runs else 0.0

    def add(self, placed: PlacedStep) -> None:
        """Count one step, whose every read is one decoding request."""
        layout, tables = placed.layout, placed.tables
        lengths = np.diff(tables.ptr)
        reading = np.zeros(len(lengths), bool)
        reading[placed.read_request] = True
        request = np.repeat(np.arange(len(lengths)), lengths)
        resident = (tables.slot == NO_SLOT) & (tables.opened > 0) & reading[request]
        granules = tables.granule[resident]
        per_set = layout.stripes * layout.values_per_set
        sets = -(-layout.granules // per_set)
        visits = request[resident] * sets + granules // per_set
        self.runs += len(np.unique(visits))
        self.blocks += len(granules)
