"""`Layout.element_at` knows of every address of the device what is placed there.

Clause MAP-LOOKUP. It finds an element if and only if one lies there, of the right kind,
without the padding of heads; else it finds nothing. This code branches; the proof
follows every path.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patton.addresses import Address, Element
from patton.errors import LayoutError
from patton.layout import Layout
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.numbers import same
from proofs.positions import KEY, SLOT, VALUE, Kind, any_address
from proofs.spaces import Space
from proofs.symbolic import layout_of
from proofs.theorem import Bug, Case, Claim, Swap, Theorem


def given_element(space: Space, kind: Kind) -> tuple[Layout, Kind, Element, Address]:
    """Any layout, any element, and the address where it lies."""
    g = space.geometry()
    x = kind.place(space, g)
    space.assume("not padding of a head", x.element < g.head_dim)
    return layout_of(g), kind, x, kind.address(g, *x)


def claim_element(
    layout: Layout, kind: Kind, x: Element, at: Address
) -> Iterator[Claim]:
    """It is found."""
    try:
        found = layout.element_at(at)
    except LayoutError as error:
        yield Claim("the address is accepted", False, {"error": str(error)})
        return
    yield Claim("something is found", found is not None, {"address": at})
    if found is not None:
        shown = {"address": at, "kind found": found[0], "element found": found[1]}
        yield Claim("of its kind", found[0] == kind.word, shown)
        yield Claim("itself", same(found[1], x), shown)


def given_address(space: Space) -> tuple[Geometry, Layout, Address]:
    """Any layout, and any address of its device."""
    g = space.geometry()
    return g, layout_of(g), any_address(space, g)


def claim_address(g: Geometry, layout: Layout, at: Address) -> Iterator[Claim]:
    """What is found there exists, and lies there."""
    try:
        found = layout.element_at(at)
    except LayoutError as error:
        yield Claim("the address is accepted", False, {"error": str(error)})
        return
    if found is None:
        return
    word, x = found
    kind = {"key": KEY, "value": VALUE, "slot": SLOT}[word]
    shown = {"address": at, "kind found": word, "element found": x}
    counts = (g.layers, g.heads, kind.indices(g), g.block_tokens, g.head_dim)
    for name, value, count in zip(x._fields, x, counts, strict=True):
        yield Claim(f"there is such a {name}", value < count, shown)
    yield Claim("it lies there", same(kind.address(g, *x), at), shown)


def witness(kind: Kind) -> Case:
    """An element of the last head of the last layer."""
    at = {"layer": 1, "head": 2, kind.index_name: 3, "token": 9, "element": 6}
    return Case(odd, at)


PLANTED: dict[Kind, tuple[Bug, ...]] = {
    KEY: (Swap("layout.Layout._kind_of_row", "row < self.key_rows", "row < 1"),),
    VALUE: (
        Swap(
            "layout.Layout._kind_of_row",
            "row < self.key_rows + self.value_rows",
            "row < self.value_rows",
        ),
    ),
    SLOT: (
        Swap(
            "layout.Layout._element_bounds", "self.slots * self.stripes", "self.slots"
        ),
    ),
}

THEOREMS = (
    *(
        Theorem(
            name=f"{kind.word}_is_found_at_its_address",
            clause="MAP-LOOKUP",
            kind="all geometries, every path",
            given=partial(given_element, kind=kind),
            claim=claim_element,
            witness=witness(kind),
            planted=planted,
            branches=True,
        )
        for kind, planted in PLANTED.items()
    ),
    Theorem(
        name="nothing_else_is_found",
        clause="MAP-LOOKUP",
        kind="all geometries, every path",
        given=given_address,
        claim=claim_address,
        witness=Case(odd, {"channel": 0, "bank": 3, "row": 0, "burst": 4, "lane": 2}),
        planted=(
            Swap(
                "layout.Layout.element_at",
                "self.address_of(kind, element) == address",
                "True",
            ),
            Swap("layout.Layout.element_at", "value >= most", "value > most"),
        ),
        branches=True,
    ),
)
