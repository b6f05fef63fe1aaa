"""Which rows are worth a vector of their own: the cost of both ways, span by span.

Opening a row anew for every vector saves loads, and with several registers changes of
mode; loading every vector anew in every row saves openings. Which is less depends on
how many bursts a row needs and on how many units it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from patton.commands import Frame
from patton.generate.ragged import changes, lengths, merged, numbers, owners
from patton.generate.schedule import Order
from patton.generate.vectors import Units
from patton.steps import Ints

Flags = NDArray[np.bool_]


def better_by_row(
    units: Units, span: Ints, frame: Frame, order: Order, registers: int
) -> Flags:
    """Whether loads should serve one row each [spans]; span [segments], ascending.

    Counted for vectors one after another; those loaded side by side are too few to
    change the answer.
    """
    costs, heads = order.costs, frame.heads_per_kv
    segment = owners(np.diff(units.ptr))
    part, rows_of, steps = _visits(units, segment, frame)
    visits = np.bincount(span[rows_of])
    segments = np.bincount(span)
    in_rows = np.bincount(span[rows_of], _bursts(units, part, frame))
    at_once = np.bincount(span, _bursts(units, segment, frame))
    rows = visits / segments
    # Going back and forth, a row finds the last vector of the one before it.
    repeated = (in_rows == at_once * rows) & (order.turning and not order.reload)
    kept = np.where(repeated, at_once / segments * (rows - 1), 0)
    by_row = costs.load_burst * (heads * in_rows - kept) + costs.row * rows
    all_rows = costs.load_burst * heads * at_once
    openings = heads * visits - (heads * segments - 1) * order.turning
    all_rows += costs.row * openings
    batches = -(-steps // registers)
    by_row += costs.modes * heads * np.bincount(span[rows_of], batches)
    total = np.bincount(rows_of, steps)
    batches = np.ceil(total / registers)
    all_rows += costs.modes * heads * np.bincount(span, batches)
    return np.asarray(by_row < all_rows)


def _visits(units: Units, segment: Ints, frame: Frame) -> tuple[Ints, Ints, Ints]:
    """Visits of segments to rows.

    Of each unit its visit; of each visit its segment, and the units of the channel
    that has most.
    """
    visit = segment * frame.rows_per_plane + units.row
    order = np.lexsort((units.channel, visit))
    starts = changes(visit[order])
    of_visit = np.empty_like(visit)
    of_visit[order] = numbers(starts, len(visit))
    streaks = changes(visit[order], units.channel[order])
    counts = lengths(streaks, len(visit))
    most = np.zeros_like(starts)
    np.maximum.at(most, of_visit[order][streaks], counts)
    return of_visit, segment[order][starts], most


def _bursts(units: Units, group: Ints, frame: Frame) -> NDArray[Any]:
    """Distinct bursts that the units of each group need."""
    of_run = group.repeat(np.diff(units.runs))
    width = frame.bursts_per_row
    count = np.broadcast_to(np.asarray(units.count), units.burst.shape)
    runs = merged(of_run, units.burst, count, width)
    return np.bincount(runs.group, runs.count)
