"""A commit moves every burst within its bank and keeps every lane.

Clause MAP-COMMIT. A block's slot is in the stripe of its granule. Then each element has
the same channel, bank and lane in both, and whole bursts map to whole bursts; the rows
are different, and the columns may be.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import striped
from proofs.positions import SLOT, VALUE, slot
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem, Without


def given(space: Space) -> tuple[Geometry, Element, Any]:
    """Any geometry, any place of a Value granule, and any slot of its stripe."""
    g = space.geometry()
    x, source = VALUE.place(space, g), slot(space, g)
    stripes = source % g.map.stripes, x.index % g.map.stripes
    space.assume("the slot is in the granule's stripe", stripes[0] == stripes[1])
    return g, x, source


def claim(g: Geometry, x: Element, source: Any) -> Iterator[Claim]:
    """Only row and column differ; the lanes of a burst stay together."""
    a, b = SLOT.address(g, *x._replace(index=source)), VALUE.address(g, *x)
    shown = {"address in the slot": a, "address in the granule": b}
    yield Claim("the channel stays", a.channel == b.channel, shown)
    yield Claim("the bank stays", a.bank == b.bank, shown)
    yield Claim("the lane stays", a.lane == b.lane, shown)
    yield Claim("the row is another", a.row != b.row, shown)
    first = x._replace(token=x.token // g.map.lanes * g.map.lanes)
    for kind, index, at in ((SLOT, source, a), (VALUE, x.index, b)):
        burst = kind.address(g, *first._replace(index=index))
        whole = at._replace(lane=0)
        for name, one, other in zip(at._fields, burst, whole, strict=True):
            says = f"a burst of the {kind.word} stays whole: {name}"
            yield Claim(says, one == other, shown | {"first of the burst": burst})


THEOREMS = (
    Theorem(
        name="a_commit_stays_in_its_banks",
        clause="MAP-COMMIT",
        given=given,
        claim=claim,
        witness=Case(
            striped,
            {
                "layer": 1,
                "head": 1,
                "granule": 7,
                "token": 10,
                "element": 4,
                "slot": 10,
            },
        ),
        planted=(
            Without("the slot is in the granule's stripe"),
            Swap("addresses.slot_address", "element % m.banks", "part % m.banks"),
            Swap(
                "addresses.slot_address",
                "_stripe_channel(m, head, slot, part)",
                "_stripe_channel(m, head, place, part)",
            ),
        ),
    ),
)
