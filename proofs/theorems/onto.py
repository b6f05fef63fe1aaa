"""Every address of a region holds an element, or is padding that is declared.

Clause MAP-ONTO, for Keys, Values and slots: from an address to its element and back is
where one started, for every address of the device of which `proofs.positions` does not
say that it is idle, a rest, or after the last granule. With MAP-INSIDE, which says that
no element lies there, the map is onto exactly what is left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patton.addresses import Address
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.positions import KEY, SLOT, VALUE, Kind, any_address
from proofs.spaces import Space
from proofs.theorem import Bug, Case, Claim, Swap, Theorem, Without


def given(space: Space, kind: Kind) -> tuple[Kind, Geometry, Address]:
    """Any geometry, and any address that belongs to the kind."""
    g = space.geometry()
    at = any_address(space, g)
    for name, condition in kind.home(g, at):
        space.assume(name, condition)
    return kind, g, at


def claim(kind: Kind, g: Geometry, at: Address) -> Iterator[Claim]:
    """An element that exists is found there, and it lies there."""
    x = kind.element(g, at)
    back = kind.address(g, *x)
    counts = (g.layers, g.heads, kind.indices(g), g.block_tokens, kind.elements(g))
    for name, value, count in zip(x._fields, x, counts, strict=True):
        yield Claim(f"there is such a {name}", value < count, {"found there": x})
        yield Claim(f"the {name} is not negative", value >= 0, {"found there": x})
    for name, before, after in zip(at._fields, at, back, strict=True):
        shown = {"found there": x, "which lies at": back}
        yield Claim(f"the {name} comes back", before == after, shown)


def witness(row: int) -> Case:
    """The first channel of the second fold and layer, where head 2 is."""
    at = {"channel": 0, "bank": 3, "row": 66 + row, "burst": 5, "lane": 5}
    return Case(odd, at)


PLANTED: dict[Kind, tuple[Case, tuple[Bug, ...]]] = {
    KEY: (
        witness(row=11),
        (
            Swap("addresses.key_element", "burst % m.key_bursts", "burst"),
            Without("not in the rest of a row"),
        ),
    ),
    VALUE: (
        witness(row=12),
        (
            Swap("addresses.value_element", "channel % m.value_channels", "channel"),
            Without("not after the last granule"),
        ),
    ),
    SLOT: (
        witness(row=18),
        (
            Swap("addresses.slot_element", "zone_row * m.slots_per_row", "zone_row"),
            Without("in the Commit Zone rows"),
        ),
    ),
}

THEOREMS = tuple(
    Theorem(
        name=f"{kind.word}_addresses_are_used",
        clause="MAP-ONTO",
        given=partial(given, kind=kind),
        claim=claim,
        witness=case,
        planted=planted,
    )
    for kind, (case, planted) in PLANTED.items()
)
