"""Every element lies inside the device and inside its region, never in padding.

Clause MAP-INSIDE, for Keys, Values and slots. The region: the rows of its kind, in the
plane of its layer and fold, in the channels of its head; padding as `proofs.positions`
declares it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import striped
from proofs.positions import KEY, SLOT, VALUE, Kind
from proofs.spaces import Space
from proofs.theorem import Bug, Case, Claim, Swap, Theorem


def given(space: Space, kind: Kind) -> tuple[Kind, Geometry, Element]:
    """Any geometry, and any place of the kind in it."""
    g = space.geometry()
    return kind, g, kind.place(space, g)


def claim(kind: Kind, g: Geometry, x: Element) -> Iterator[Claim]:
    """The address exists and is where it should be."""
    at = kind.address(g, *x)
    shown = {"address": at}
    counts = (g.channels, g.map.banks, g.rows, g.bursts, g.map.lanes)
    for name, value, count in zip(at._fields, at, counts, strict=True):
        yield Claim(f"the device has the {name}", value < count, shown)
        yield Claim(f"the {name} is not negative", value >= 0, shown)
    for name, condition in kind.home(g, at):
        yield Claim(name, condition, shown)
    m = g.map
    plane = x.layer * m.folds + x.head // m.groups
    yield Claim("in its plane", at.row // m.rows_per_plane == plane, shown)
    group = at.channel // m.channels_per_head
    yield Claim("in its head's channels", group == x.head % m.groups, shown)


def witness(kind: Kind) -> Case:
    """The last place of the last head."""
    at = {"layer": 1, "head": 1, kind.index_name: 8, "token": 11, "element": 5}
    return Case(striped, at)


PLANTED: dict[Kind, tuple[Bug, ...]] = {
    KEY: (Swap("addresses.key_address", "place // m.keys_per_row", "place"),),
    VALUE: (Swap("addresses.value_address", "m.key_rows + set_row", "set_row"),),
    SLOT: (
        Swap(
            "addresses.slot_address",
            "m.key_rows + m.value_rows + place // m.slots_per_row",
            "m.key_rows + place // m.slots_per_row",
        ),
    ),
}

THEOREMS = tuple(
    Theorem(
        name=f"{kind.word}_lies_in_its_region",
        clause="MAP-INSIDE",
        given=partial(given, kind=kind),
        claim=claim,
        witness=witness(kind),
        planted=planted,
    )
    for kind, planted in PLANTED.items()
)
