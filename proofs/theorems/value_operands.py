"""SV: in every bank and channel a burst of weights meets the same tokens of a Value.

Clause MAP-ALIGN, for Values and for slots. A MACAB multiplies burst j of a bank with
burst j of the Global Buffer. The weights of a group of tokens, one per lane, are loaded
at the column of those tokens; a unit of MACABs begins where a row of the Value, or one
of the rows that a slot has side by side, has its first element; its results are one
element per bank, in bank order, channel after channel (Paper 4.4).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.positions import SLOT, VALUE, Kind, head, layer
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem


class Datum(NamedTuple):
    """A Value in a unit: which of its rows, and where in the row and in its burst."""

    part: Any  # row of the row set
    channel: Any  # of the stripe
    bank: Any
    group: Any  # of tokens
    lane: Any


def given(space: Space, kind: Kind) -> tuple[Kind, Geometry, Element, Datum]:
    """Any geometry, the first place of a block, and any datum of the block."""
    g = space.geometry()
    m = g.map
    index = kind.index(space, g, "")
    first = Element(layer(space, g), head(space, g), index, 0, 0)
    datum = Datum(
        part=space.number("row of the row set", m.rows_per_value),
        channel=space.number("channel of the stripe", m.value_channels),
        bank=space.number("bank", m.banks),
        group=space.number("token group", m.value_bursts),
        lane=space.number("lane", m.lanes),
    )
    return kind, g, first, datum


def claim(kind: Kind, g: Geometry, first: Element, x: Datum) -> Iterator[Claim]:
    """The bank has its element there, of the token that the weight's lane is."""
    m = g.map
    # A unit begins at this element, and the operands of a group at this token.
    unit = first._replace(element=x.part * m.value_channels * m.banks)
    start = kind.address(g, *unit)
    operand = kind.address(g, *unit._replace(token=x.group * m.lanes))
    element = (x.part * m.value_channels + x.channel) * m.banks + x.bank
    token = x.group * m.lanes + x.lane
    at = kind.address(g, *first._replace(token=token, element=element))
    shown = {"address": at, "address of the unit": start}
    yield Claim("one row", at.row == start.row, shown)
    yield Claim("the channel", at.channel == start.channel + x.channel, shown)
    yield Claim("the bank of the result", at.bank == x.bank, shown)
    yield Claim("the column of the operand", at.burst == operand.burst, shown)
    yield Claim("groups side by side", at.burst == start.burst + x.group, shown)
    yield Claim("the lane of the operand", at.lane == x.lane, shown)
    across = (at.channel - start.channel) * m.banks + at.bank
    yield Claim("the result's element", element == unit.element + across, shown)


def witness(kind: Kind) -> Case:
    """The last element and token of a slot or granule."""
    datum = {"row of the row set": 1, "channel of the stripe": 0, "bank": 3}
    place = {"layer": 1, "head": 2, kind.index_name: 3}
    return Case(odd, datum | place | {"token group": 1, "lane": 5})


PLANTED = {
    VALUE: (
        Swap("addresses.value_address", "element % m.banks", "element % m.lanes"),
        Swap(
            "addresses.value_address",
            "(place % m.values_per_set) * m.value_bursts + token // m.lanes",
            "place % m.values_per_set + token // m.lanes * m.values_per_set",
        ),
        Swap("addresses.value_address", "part // m.value_channels", "part"),
    ),
    SLOT: (
        Swap("addresses.slot_address", "token % m.lanes", "token // m.lanes"),
        Swap(
            "addresses.slot_address",
            "column * m.value_bursts + token // m.lanes",
            "column + token // m.lanes * (m.slots_per_row * m.rows_per_value)",
        ),
    ),
}

THEOREMS = tuple(
    Theorem(
        name=f"weights_meet_their_tokens_in_{kind.word}s",
        clause="MAP-ALIGN",
        given=partial(given, kind=kind),
        claim=claim,
        witness=witness(kind),
        planted=planted,
    )
    for kind, planted in PLANTED.items()
)
