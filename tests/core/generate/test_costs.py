"""Which of two orders is cheaper, counted out visit by visit."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from patton.commands import Frame
from patton.generate import Order, Schedule, generate_step, passes
from patton.generate.costs import Flags, better_by_row
from patton.generate.schedule import Costs
from patton.generate.vectors import Units
from patton.steps import Ints
from tests.core.generate.test_generate import random_placed

BACK = Order("cheaper", channels="together", turning=True, reload=False)
ORDERS = [
    attrs.evolve(BACK, costs=Costs(row=7, modes=5, load_burst=2)),
    attrs.evolve(
        BACK,
        requests="together",
        reload=True,
        costs=Costs(row=3, modes=40, load_burst=3),
    ),
    attrs.evolve(BACK, turning=False, costs=Costs(row=30, modes=2, load_burst=9)),
    attrs.evolve(
        BACK, turning=False, reload=True, costs=Costs(row=5, modes=11, load_burst=1)
    ),
]


def bursts_of(units: Units, chosen: list[int]) -> int:
    """Distinct bursts that some units need."""
    count = np.broadcast_to(np.asarray(units.count), units.burst.shape)
    needed = {
        int(units.burst[run]) + k
        for unit in chosen
        for run in range(units.runs[unit], units.runs[unit + 1])
        for k in range(int(count[run]))
    }
    return len(needed)


def steps_of(units: Units, chosen: list[int]) -> int:
    """Units of the channel that has most of them."""
    return int(np.bincount(units.channel[chosen]).max())


def cheaper_by_row(
    units: Units, segments: list[int], frame: Frame, order: Order, registers: int
) -> bool:
    costs, heads = order.costs, frame.heads_per_kv
    by_row: float = 0
    at_once = modes_at_once = in_rows = visits = 0
    for segment in segments:
        own = list(range(units.ptr[segment], units.ptr[segment + 1]))
        rows = {int(row) for row in units.row[own]}
        of_rows = [[u for u in own if units.row[u] == row] for row in rows]
        steps = [steps_of(units, visit) for visit in of_rows]
        visits += len(rows)
        at_once += bursts_of(units, own)
        in_rows += sum(bursts_of(units, visit) for visit in of_rows)
        by_row += costs.modes * heads * sum(-(-each // registers) for each in steps)
        modes_at_once += -(-sum(steps) // registers)
    per_segment = visits / len(segments)
    kept: float = 0
    if in_rows == at_once * per_segment and order.turning and not order.reload:
        kept = at_once / len(segments) * (per_segment - 1)
    by_row += costs.load_burst * (heads * in_rows - kept) + costs.row * per_segment
    openings = heads * visits - (heads * len(segments) - 1) * order.turning
    all_rows = costs.load_burst * heads * at_once + costs.row * openings
    return by_row < all_rows + costs.modes * heads * modes_at_once


@pytest.mark.parametrize("registers", [1, 3])
@pytest.mark.parametrize("order", ORDERS, ids=["back", "beside", "dear", "forth"])
def test_the_cheaper_order_is_counted_out(
    order: Order, registers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def watched(
        units: Units, span: Ints, frame: Frame, order: Order, registers: int
    ) -> Flags:
        found = better_by_row(units, span, frame, order, registers)
        expected = [
            cheaper_by_row(
                units, np.flatnonzero(span == each).tolist(), frame, order, registers
            )
            for each in range(int(span[-1]) + 1)
        ]
        assert expected == found.tolist()
        seen.extend(expected)
        return found

    monkeypatch.setattr(passes, "better_by_row", watched)
    schedule = Schedule("counted", order, order, registers)
    for seed in range(24):
        placed = random_placed(seed, "host")
        device = attrs.evolve(placed.layout.device, result_registers=registers)
        layout = attrs.evolve(placed.layout, device=device)
        generate_step(attrs.evolve(placed, layout=layout), schedule=schedule)

    assert {True, False} == set(seen)
