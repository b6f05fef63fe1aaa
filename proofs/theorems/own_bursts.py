"""A burst holds lanes of one block only.

Clause DEV-ALONE, for Keys, Values and slots of every geometry. What a MACAB reads of a
burst is thus of one block, and what is written into the burst is of that block too: a
request's results can depend on other requests only through what they left there before
(see `first_writes`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.numbers import every
from proofs.positions import KEY, SLOT, VALUE, Kind
from proofs.spaces import Space
from proofs.theorem import Bug, Case, Claim, Swap, Theorem, Without


def given(space: Space, kind: Kind) -> tuple[Kind, Geometry, Element, Element]:
    """Any geometry, and two places in one burst of one bank."""
    g = space.geometry()
    x, y = kind.place(space, g), kind.place(space, g, "_2")
    a, b = kind.address(g, *x), kind.address(g, *y)
    same = every(left == right for left, right in zip(a[:4], b[:4], strict=True))
    space.assume("in one burst of one bank", same)
    return kind, g, x, y


def claim(kind: Kind, g: Geometry, x: Element, y: Element) -> Iterator[Claim]:
    """They are of one block, head and layer."""
    a, b = kind.address(g, *x), kind.address(g, *y)
    for at in (a, b):
        kind.element(g, at)  # so that the proof may look at what is found there
    shown = {"one address": a, "the other address": b}
    yield Claim("one block", x.index == y.index, shown)
    yield Claim("one layer", x.layer == y.layer, shown)
    yield Claim("one head", x.head == y.head, shown)


def witness(kind: Kind) -> Case:
    """Two lanes of one burst."""
    first = {"layer": 1, "head": 2, kind.index_name: 3, "token": 1, "element": 0}
    other = first | ({"element": 1} if kind is KEY else {"token": 2})
    return Case(odd, first | {f"{name}_2": value for name, value in other.items()})


_FORGET = Without("in one burst of one bank")
PLANTED: dict[Kind, tuple[Bug, ...]] = {
    KEY: (
        Swap("addresses.key_address", "place % m.keys_per_row", "0"),
        _FORGET,
    ),
    VALUE: (
        Swap("addresses.value_address", "place % m.values_per_set", "0"),
        _FORGET,
    ),
    SLOT: (
        Swap("addresses.slot_address", "column * m.value_bursts", "column"),
        _FORGET,
    ),
}

THEOREMS = tuple(
    Theorem(
        name=f"a_burst_of_{kind.word}s_is_of_one_block",
        clause="DEV-ALONE",
        given=partial(given, kind=kind),
        claim=claim,
        witness=witness(kind),
        planted=planted,
    )
    for kind, planted in PLANTED.items()
)
