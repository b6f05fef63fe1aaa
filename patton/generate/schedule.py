"""Schedules: in which order a device does the work of a step, as data.

A schedule changes what a step costs and never what it computes: each result keeps the
order of its accumulation, and summands of an output keep theirs. What the choices cost
is measured in `docs/schedules.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from patton.config import CommitWay

Serving = Literal["row", "rows", "cheaper"]
Neighbours = Literal["apart", "together"]
Channels = Literal["in-turn", "together"]
WriteOrder = Literal["burst-major", "bank-major"]
WriteRows = Literal["grouped", "as-written"]


@attrs.frozen
class Costs:
    """What two orders are weighed with, in cycles (aim-gddr6, both variants).

    row: to close a row and open another (nRP + nRCDRDMAC); modes: to leave and enter
    the register mode (2 nMODCH and a cycle); load_burst: of the Global Buffer (nCCD).
    """

    row: int = 88
    modes: int = 65
    load_burst: int = 2


@attrs.frozen
class Order:
    """Order of the products of one phase.

    loads: what a vector in the Global Buffer serves before the next one is loaded.
    "row": all query heads inside an open row; "rows": all rows of a request in QK, all
    rows of a row set in SV; "cheaper": either, by `costs`, for each request or row set.
    requests: "together" loads the vectors of several requests side by side, where they
    need different bursts, so that they share rows and mode switches.
    channels: whether the channels of a head work at the same time or one by one.
    turning: whether rows (or, where loads serve one row, query heads) are gone through
    back and forth, so that what is open or loaded is met again.
    reload: whether vectors are loaded again where they still are. The paper's order
    leaves that out for the further rows of a row set that a single vector visits.
    """

    loads: Serving = "row"
    requests: Neighbours = "apart"
    channels: Channels = "in-turn"
    turning: bool = False
    reload: bool = True
    costs: Costs = Costs()


PAPER_ORDER = Order()


@attrs.frozen
class Schedule:
    """All choices that a step leaves open.

    qk, sv: orders of products; blocks in the Commit Zone follow `sv`. registers: how
    many result registers to use, None for all that the device has. write_order: Values
    burst by burst, each in all banks, or bank by bank. write_rows: whether rows are
    visited once a step or token by token. commit_way: None for the device's own.
    """

    name: str
    qk: Order = PAPER_ORDER
    sv: Order = PAPER_ORDER
    registers: int | None = None
    write_order: WriteOrder = "burst-major"
    write_rows: WriteRows = "grouped"
    commit_way: CommitWay | None = None

    def registers_of(self, available: int) -> int:
        """Registers that are used of those available."""
        return available if self.registers is None else min(self.registers, available)


PAPER = Schedule("paper")

# Chosen by measurement (tests/benchmarks/bench_schedules.py, docs/schedules.md).
BEST = Schedule(
    "best",
    qk=Order("cheaper", "apart", "together", turning=True, reload=False),
    sv=Order("cheaper", "together", "together", turning=True, reload=False),
)

# By device and variant of its timing; those that are not here were not measured.
BEST_SCHEDULES: Mapping[tuple[str, str], Schedule] = {
    ("aim-gddr6", "head"): attrs.evolve(BEST, write_order="bank-major"),
    ("aim-gddr6", "pin"): BEST,
}


def best_schedule(device: str, variant: str) -> Schedule:
    """What took least cycles on a device; `BEST` where nothing was measured."""
    return BEST_SCHEDULES.get((device, variant), BEST)
