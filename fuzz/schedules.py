"""Schedules that the steps of a run take in turn.

What a step computes is the same in all of them (`patton.generate.schedule`). Which one
it is follows from the number of the step, so that a file of events repeats it.
"""

from __future__ import annotations

import attrs

from patton.generate.schedule import PAPER, Costs, Schedule
from tests.core.strategies import ORDERS

# Costs at which small layouts have something to choose.
SMALL_COSTS = Costs(row=9, modes=7, load_burst=2)

PRICED = [attrs.evolve(order, costs=SMALL_COSTS) for order in ORDERS]


def schedule_of(step: int) -> Schedule:
    """The paper's in every other step, else one that mixes orders of all kinds."""
    number, other = divmod(step, 2)
    if not other:
        return PAPER
    return Schedule(
        "mixed",
        qk=PRICED[number % len(PRICED)],
        sv=PRICED[number * 7 % len(PRICED)],
        registers=1 + number % 3 if number % 2 else None,
        write_order="bank-major" if number % 3 else "burst-major",
        write_rows="as-written" if number % 5 == 0 else "grouped",
    )
