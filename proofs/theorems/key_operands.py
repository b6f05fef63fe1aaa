"""QK: in every bank the query's burst meets the same elements of a Key.

Clause MAP-ALIGN. A MACAB multiplies burst j of a bank with burst j of the Global
Buffer. The query is loaded so that column j holds its burst `j % key_bursts`, for all
Keys of a row at once (Paper 4.3); a unit of MACABs begins where the first token of a
group has its first element, takes as many columns as a Key has bursts, and its results
are one token per bank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.positions import KEY, granule, head, layer
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem


def given(space: Space) -> tuple[Geometry, Element, Any, Any, Any]:
    """Any geometry, a group of tokens of a block, and a bank, a burst and a lane."""
    g = space.geometry()
    group = space.number("token group", g.map.token_groups)
    first = Element(
        layer(space, g), head(space, g), granule(space, g), group * g.map.banks, 0
    )
    bank = space.number("bank", g.map.banks)
    burst = space.number("burst of the Key", g.map.key_bursts)
    return g, first, bank, burst, space.number("lane", g.map.lanes)


def claim(
    g: Geometry, first: Element, bank: Any, burst: Any, lane: Any
) -> Iterator[Claim]:
    """The bank has its token there, at the element that the operand's lane is."""
    m = g.map
    start = KEY.address(g, *first)
    token, element = first.token + bank, burst * m.lanes + lane
    at = KEY.address(g, *first._replace(token=token, element=element))
    shown = {"address": at, "address of the first": start}
    yield Claim("one channel", at.channel == start.channel, shown)
    yield Claim("one row", at.row == start.row, shown)
    yield Claim("the bank of the result", at.bank == bank, shown)
    yield Claim("the column of the operand", at.burst == start.burst + burst, shown)
    yield Claim("the lane of the operand", at.lane == lane, shown)
    operand = at.burst % m.key_bursts * m.lanes + at.lane
    yield Claim("the operand is of this element", operand == element, shown)


THEOREMS = (
    Theorem(
        name="queries_meet_their_elements",
        clause="MAP-ALIGN",
        given=given,
        claim=claim,
        witness=Case(
            odd,
            {
                "layer": 1,
                "head": 2,
                "granule": 11,
                "token group": 2,
                "bank": 3,
                "burst of the Key": 1,
                "lane": 5,
            },
        ),
        planted=(
            Swap("addresses.key_address", "element % m.lanes", "element % m.banks"),
            Swap("addresses.key_address", "token % m.banks", "token // m.banks"),
            Swap(
                "addresses.key_address",
                "group * m.key_bursts + element // m.lanes",
                "group + element // m.lanes * (m.keys_per_row * m.token_groups)",
            ),
        ),
    ),
)
