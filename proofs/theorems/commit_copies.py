"""A commit moves all that a block holds, and touches nothing else.

Clause MAP-COMMIT, for all contents. The copies of a commit are bursts of the slot, in
any order and any number, each to the burst of the granule that has the same element and
the same tokens (`commit_stays`). No target is a source, so no copy reads what an
earlier one wrote; and targets of different copies differ, so none is overwritten. What
follows from that for any number of copies is `copies_in_turn`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import striped
from proofs.numbers import every, implies, same
from proofs.positions import SLOT, VALUE, slot
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem


def given(space: Space) -> tuple[Geometry, Element, Element, Any]:
    """Any geometry, a slot and a granule, and two of the bursts to be copied."""
    g = space.geometry()
    x, source = VALUE.place(space, g), slot(space, g)
    element = space.number("element_2", g.value_elements)
    group = space.number("token group_2", g.map.value_bursts)
    y = x._replace(token=group * g.map.lanes, element=element)
    space.assume("x begins a burst", x.token % g.map.lanes == 0)
    stripes = source % g.map.stripes, x.index % g.map.stripes
    space.assume("the slot is in the granule's stripe", stripes[0] == stripes[1])
    return g, x, y, source


def claim(g: Geometry, x: Element, y: Element, source: Any) -> Iterator[Claim]:
    """Targets differ from all sources, and from one another."""
    to_x, to_y = VALUE.address(g, *x), VALUE.address(g, *y)
    from_y = SLOT.address(g, *y._replace(index=source))
    for target in (to_x, to_y):
        VALUE.element(g, target)  # so that the proof may look at what is found there
    shown = {"one target": to_x, "other target": to_y, "other source": from_y}
    yield Claim("no target is a source", to_x.row != from_y.row, shown)
    one = every((x.element == y.element, x.token == y.token))
    says = "different copies have different targets"
    yield Claim(says, implies(same(to_x, to_y), one), shown)


THEOREMS = (
    Theorem(
        name="a_commit_reads_no_target",
        clause="MAP-COMMIT",
        given=given,
        claim=claim,
        witness=Case(
            striped,
            {
                "layer": 1,
                "head": 1,
                "granule": 7,
                "token": 8,
                "element": 4,
                "element_2": 4,
                "token group_2": 1,
                "slot": 10,
            },
        ),
        planted=(
            Swap(
                "addresses.slot_address",
                "m.key_rows + m.value_rows + place // m.slots_per_row",
                "m.key_rows + place // m.slots_per_row",
            ),
            Swap("addresses.value_address", "element % m.banks", "0"),
        ),
    ),
)
