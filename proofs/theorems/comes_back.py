"""From an element to its address and back is where one started.

Clause MAP-INVERSE, for Keys, Values and slots, all geometries and burst sizes. Places
that pad a head are included, so that this is about whole granules.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.positions import KEY, SLOT, VALUE, Kind
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem


def given(space: Space, kind: Kind) -> tuple[Kind, Geometry, Element]:
    """Any geometry, and any place of the kind in it."""
    g = space.geometry()
    return kind, g, kind.place(space, g)


def claim(kind: Kind, g: Geometry, x: Element) -> Iterator[Claim]:
    """Every coordinate comes back."""
    at = kind.address(g, *x)
    back = kind.element(g, at)
    for name, before, after in zip(x._fields, x, back, strict=True):
        shown = {"address": at, "found there": back}
        yield Claim(f"the {name} comes back", before == after, shown)


def witness(kind: Kind) -> Case:
    """A place that pads a head, in the last fold."""
    at = {"layer": 1, "head": 2, kind.index_name: 3, "token": 9, "element": 7}
    return Case(odd, at)


PLANTED = {
    KEY: (
        Swap("addresses.key_address", "element // m.lanes", "element // m.banks"),
        Swap("addresses.key_element", "group % m.token_groups", "group"),
    ),
    VALUE: (
        Swap("addresses.value_address", "part // m.value_channels", "part"),
        Swap("addresses.value_element", "value_row % m.rows_per_value", "row_set"),
    ),
    SLOT: (
        Swap("addresses.slot_address", "place % m.slots_per_row", "place"),
        Swap("addresses.slot_element", "column // m.rows_per_value", "column"),
    ),
}

THEOREMS = tuple(
    Theorem(
        name=f"{kind.word}_comes_back",
        clause="MAP-INVERSE",
        given=partial(given, kind=kind),
        claim=claim,
        witness=witness(kind),
        planted=planted,
    )
    for kind, planted in PLANTED.items()
)
