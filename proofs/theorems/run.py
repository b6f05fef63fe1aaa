"""A run of SV never mixes two Value row sets, nor two stripes.

Clause MAP-RUN. The blocks that a request has in one run are those whose first element
is in one row and channel. They then share row and channel for every element, so that
one run per row of the set serves them all, and their weights stay loaded from row to
row because each block keeps its column.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.positions import VALUE, granule
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem, Without


def given(space: Space) -> tuple[Geometry, Element, Any]:
    """Any geometry, a place, and another granule with the same start of its run."""
    g = space.geometry()
    x, other = VALUE.place(space, g), granule(space, g, "_2")
    start = VALUE.address(g, 0, 0, x.index, 0, 0)
    other_start = VALUE.address(g, 0, 0, other, 0, 0)
    space.assume("the first elements are in one row", start.row == other_start.row)
    in_one_channel = start.channel == other_start.channel
    space.assume("the first elements are in one channel", in_one_channel)
    return g, x, other


def claim(g: Geometry, x: Element, other: Any) -> Iterator[Claim]:
    """Both are of one row set and stripe, and in step for every element."""
    m = g.map
    a, b = VALUE.address(g, *x), VALUE.address(g, *x._replace(index=other))
    for start in (x.index, other):
        VALUE.element(g, VALUE.address(g, 0, 0, start, 0, 0))  # to be looked at
    shown = {"address": a, "address in the other block": b}
    sets = tuple(i // m.stripes // m.values_per_set for i in (x.index, other))
    yield Claim("one row set", sets[0] == sets[1], shown)
    stripes = x.index % m.stripes, other % m.stripes
    yield Claim("one stripe", stripes[0] == stripes[1], shown)
    yield Claim("one channel for every element", a.channel == b.channel, shown)
    yield Claim("one row for every element", a.row == b.row, shown)
    first = VALUE.address(g, *x._replace(element=0))
    yield Claim("a block keeps its columns", a.burst == first.burst, shown)


THEOREMS = (
    Theorem(
        name="a_run_stays_in_its_row_set",
        clause="MAP-RUN",
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
            Swap(
                "addresses.value_address",
                "place // m.values_per_set",
                "place // (m.values_per_set + 1)",
            ),
            Swap("addresses._stripe_channel", "index % m.stripes", "0"),
            Without("the first elements are in one row"),
            Without("the first elements are in one channel"),
        ),
    ),
)
