"""One run of SV serves all that a request has in a Value row set and stripe.

Clause CMD-RUNS, for every geometry. Blocks of one row set and stripe share channel and
row for every element, so that one accumulator per bank sums over all of them; and no
two of them share a column, so that all their weights are loaded at once. Blocks that
differ in either do not begin in one row and channel: by where its first element lies a
block is told to belong to one run and no other (MAP-RUN). How runs are counted is
`run_counts`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.numbers import every, implies
from proofs.positions import VALUE, granule
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem, Without


def given(space: Space) -> tuple[Geometry, Element, Any]:
    """Any geometry, a place, and another granule of its row set and stripe."""
    g = space.geometry()
    m = g.map
    x, other = VALUE.place(space, g), granule(space, g, "_2")
    stripes = x.index % m.stripes, other % m.stripes
    sets = tuple(i // m.stripes // m.values_per_set for i in (x.index, other))
    space.assume("in one stripe", stripes[0] == stripes[1])
    space.assume("in one row set", sets[0] == sets[1])
    return g, x, other


def claim(g: Geometry, x: Element, other: Any) -> Iterator[Claim]:
    """In step for every element, from the first one on, and side by side."""
    a, b = VALUE.address(g, *x), VALUE.address(g, *x._replace(index=other))
    starts = tuple(VALUE.address(g, 0, 0, i, 0, 0) for i in (x.index, other))
    for at in (a, b):
        VALUE.element(g, at)  # so that the proof may look at what is found there
    shown = {"address": a, "address in the other block": b}
    yield Claim("one channel for every element", a.channel == b.channel, shown)
    yield Claim("one row for every element", a.row == b.row, shown)
    yield Claim("one bank for every element", a.bank == b.bank, shown)
    one_start = every(
        (starts[0].row == starts[1].row, starts[0].channel == starts[1].channel)
    )
    yield Claim("they begin in one row and channel", one_start, shown)
    says = "different blocks are in different columns"
    yield Claim(says, implies(x.index != other, a.burst != b.burst), shown)


THEOREMS = (
    Theorem(
        name="one_run_serves_a_row_set",
        clause="CMD-RUNS",
        given=given,
        claim=claim,
        witness=Case(
            odd,
            {
                "layer": 1,
                "head": 2,
                "granule": 5,
                "token": 9,
                "element": 7,
                "granule_2": 6,
            },
        ),
        planted=(
            Swap("addresses.value_address", "place % m.values_per_set", "0"),
            Swap(
                "addresses.value_address",
                "place // m.values_per_set",
                "place // (m.values_per_set + 1)",
            ),
            Without("in one row set"),
            Without("in one stripe"),
        ),
    ),
)
