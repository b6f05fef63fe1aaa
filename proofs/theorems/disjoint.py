"""No two granules of any order and no two slots share an address.

Clause MAP-DISJOINT. An Order-0 granule is a block's tokens in one sub-block of a head,
Order 1 the block, Order 2 a pair; each is a set of places. So it is enough that two
places at one address are of one kind and are the same place; places that pad a head
belong to their granule and are included.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.numbers import implies, negation, same
from proofs.positions import KEY, SLOT, VALUE, Kind
from proofs.spaces import Space
from proofs.theorem import Bug, Case, Claim, Swap, Theorem


def given(
    space: Space, kinds: tuple[Kind, Kind]
) -> tuple[tuple[Kind, Kind], Geometry, Element, Element]:
    """Any geometry, and any two places of these kinds."""
    g = space.geometry()
    first, second = kinds
    return kinds, g, first.place(space, g), second.place(space, g, "_2")


def claim(
    kinds: tuple[Kind, Kind], g: Geometry, x: Element, y: Element
) -> Iterator[Claim]:
    """At one address there is one place."""
    first, second = kinds
    a, b = first.address(g, *x), second.address(g, *y)
    shown = {f"address of the {first.word}": a, f"address of the {second.word}": b}
    if first is not second:
        yield Claim("the rows are different", a.row != b.row, shown)
        yield Claim("the addresses are different", negation(same(a, b)), shown)
        return
    # What is found at an address depends on the address alone.
    found = first.element(g, a), first.element(g, b)
    yield Claim("one element is found there", implies(same(a, b), same(*found)), shown)
    for name, one, other in zip(x._fields, x, y, strict=True):
        says = f"it has the same {name}"
        yield Claim(says, implies(same(a, b), one == other), shown)
    orders = {
        "sub-block": (x.element // g.map.banks, y.element // g.map.banks),
        "block": (x.index, y.index),
        "pair": (x.index // g.pair_blocks, y.index // g.pair_blocks),
    }
    for order, (one, other) in orders.items():
        says = f"another {order} is at another address"
        yield Claim(says, implies(one != other, negation(same(a, b))), shown)


def witness(first: Kind, second: Kind) -> Case:
    """Two places of different heads."""
    at = {"layer": 1, "head": 2, first.index_name: 3, "token": 9, "element": 6}
    other = {"layer": 1, "head": 0, second.index_name: 3, "token": 9, "element": 6}
    return Case(odd, at | {f"{name}_2": value for name, value in other.items()})


PLANTED: dict[tuple[Kind, Kind], tuple[Bug, ...]] = {
    (KEY, KEY): (Swap("addresses.key_address", "token // m.banks", "0"),),
    (VALUE, VALUE): (Swap("addresses.value_address", "part // m.value_channels", "0"),),
    (SLOT, SLOT): (
        Swap("addresses.slot_address", "column * m.value_bursts", "column"),
    ),
    (KEY, VALUE): (
        Swap("addresses.value_address", "m.key_rows + set_row", "m.key_rows - set_row"),
    ),
    (KEY, SLOT): (
        Swap("addresses.slot_address", "m.key_rows + m.value_rows", "m.value_rows"),
    ),
    (VALUE, SLOT): (
        Swap("addresses.slot_address", "m.key_rows + m.value_rows", "m.key_rows"),
    ),
}

THEOREMS = tuple(
    Theorem(
        name=f"{kinds[0].word}_and_{kinds[1].word}_share_no_address",
        clause="MAP-DISJOINT",
        given=partial(given, kinds=kinds),
        claim=claim,
        witness=witness(*kinds),
        planted=planted,
    )
    for kinds, planted in PLANTED.items()
)
