"""Weights of different tokens never meet in one column of the Global Buffer.

Clause MAP-COLUMNS. Within a row and stripe, the column tells the block and the group of
its tokens, in a slot also which of the rows that lie side by side. So the weights of a
whole run are loaded at once and none overwrites another (Paper 4.4). Across rows of
different row sets columns do repeat, which is why a run stays in one (MAP-RUN).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.numbers import either, every, implies
from proofs.positions import SLOT, VALUE, Kind
from proofs.spaces import Space
from proofs.theorem import Bug, Case, Claim, Swap, Theorem, Without


def given(space: Space, kind: Kind) -> tuple[Kind, Geometry, Element, Element]:
    """Any geometry, and two places in the channels of one stripe and in one row."""
    g = space.geometry()
    x, y = kind.place(space, g), kind.place(space, g, "_2")
    a, b = kind.address(g, *x), kind.address(g, *y)
    m = g.map
    stripes = a.channel // m.value_channels, b.channel // m.value_channels
    space.assume("in one row", a.row == b.row)
    space.assume("in one stripe", stripes[0] == stripes[1])
    return kind, g, x, y


def claim(kind: Kind, g: Geometry, x: Element, y: Element) -> Iterator[Claim]:
    """In one column they are of one block and of one group of tokens."""
    m = g.map
    a, b = kind.address(g, *x), kind.address(g, *y)
    for at in (a, b):
        kind.element(g, at)  # so that the proof may look at what is found there
    shown = {"one address": a, "the other address": b}
    column = a.burst == b.burst
    yield Claim("one block", implies(column, x.index == y.index), shown)
    groups = x.token // m.lanes, y.token // m.lanes
    yield Claim("one group of tokens", implies(column, groups[0] == groups[1]), shown)
    rows = tuple(z.element // m.banks // m.value_channels for z in (x, y))
    yield Claim("one row of the block", implies(column, rows[0] == rows[1]), shown)
    apart = either((x.index != y.index, groups[0] != groups[1]))
    says = "other tokens are in another column"
    yield Claim(says, implies(apart, a.burst != b.burst), shown)
    lane = every((column, a.lane == b.lane))
    yield Claim("a lane is one token", implies(lane, x.token == y.token), shown)


def witness(kind: Kind) -> Case:
    """Two tokens of two blocks that lie side by side in one row."""
    place = {"layer": 1, "head": 2, kind.index_name: 2, "token": 3, "element": 7}
    other = place | {kind.index_name: 3, "token": 8}
    return Case(odd, place | {f"{name}_2": value for name, value in other.items()})


PLANTED: dict[Kind, tuple[Bug, ...]] = {
    VALUE: (
        Swap("addresses.value_address", "place % m.values_per_set", "0"),
        Without("in one row"),
    ),
    SLOT: (
        Swap("addresses.slot_address", "column * m.value_bursts", "column"),
        Without("in one row"),
    ),
}

THEOREMS = tuple(
    Theorem(
        name=f"columns_tell_{kind.word}_tokens_apart",
        clause="MAP-COLUMNS",
        given=partial(given, kind=kind),
        claim=claim,
        witness=witness(kind),
        planted=planted,
    )
    for kind, planted in PLANTED.items()
)
