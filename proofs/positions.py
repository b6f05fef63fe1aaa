"""Elements and addresses as unknowns, each inside what it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from patton import addresses
from patton.addresses import Address, Element
from proofs.geometry import Geometry
from proofs.spaces import Space


def granule(space: Space, g: Geometry, tag: str = "") -> Any:
    """Any granule index."""
    return space.number(f"granule{tag}", g.granules)


def slot(space: Space, g: Geometry, tag: str = "") -> Any:
    """Any slot index, over all stripes."""
    return space.number(f"slot{tag}", g.slots * g.map.stripes)


def layer(space: Space, g: Geometry, tag: str = "") -> Any:
    """Any layer."""
    return space.number(f"layer{tag}", g.layers)


def head(space: Space, g: Geometry, tag: str = "") -> Any:
    """Any KV head."""
    return space.number(f"head{tag}", g.heads)


def token(space: Space, g: Geometry, tag: str = "") -> Any:
    """Any token of a block."""
    return space.number(f"token{tag}", g.block_tokens)


def any_address(space: Space, g: Geometry) -> Address:
    """Any address of the device."""
    return Address(
        channel=space.number("channel", g.channels),
        bank=space.number("bank", g.map.banks),
        row=space.number("row", g.rows),
        burst=space.number("burst", g.bursts),
        lane=space.number("lane", g.map.lanes),
    )


# What follows says which addresses of a region hold an element: all but declared
# padding. The formulas are written on their own, not taken from the address map.


def _in_use(g: Geometry, at: Address, columns: Any) -> Iterator[tuple[str, Any]]:
    m = g.map
    fold = at.row // m.rows_per_plane % m.folds
    head_there = fold * m.groups + at.channel // m.channels_per_head
    yield "not in an idle channel", at.channel < m.groups * m.channels_per_head
    yield "not in a row after the last plane", at.row < g.planes * m.rows_per_plane
    yield "not in a channel group without a head", head_there < g.heads
    yield "not in the rest of a row", at.burst < columns


def key_home(g: Geometry, at: Address) -> Iterator[tuple[str, Any]]:
    """Conditions under which an address belongs to a Key granule."""
    m, row = g.map, at.row % g.map.rows_per_plane
    place = row * m.keys_per_row + at.burst // m.key_bursts // m.token_groups
    index = place * m.channels_per_head + at.channel % m.channels_per_head
    yield "in the Key rows", row < m.key_rows
    yield from _in_use(g, at, g.key_columns)
    yield "not after the last granule", index < g.granules


def value_home(g: Geometry, at: Address) -> Iterator[tuple[str, Any]]:
    """Conditions under which an address belongs to a Value granule."""
    m, row = g.map, at.row % g.map.rows_per_plane
    row_set = (row - m.key_rows) // m.rows_per_value
    place = row_set * m.values_per_set + at.burst // m.value_bursts
    stripe = at.channel // m.value_channels % m.stripes
    yield "after the Key rows", m.key_rows <= row
    yield "in the Value rows", row - m.key_rows < m.value_rows
    yield from _in_use(g, at, g.value_columns)
    yield "not after the last granule", place * m.stripes + stripe < g.granules


def slot_home(g: Geometry, at: Address) -> Iterator[tuple[str, Any]]:
    """Conditions under which an address belongs to a Commit Zone slot."""
    m, row = g.map, at.row % g.map.rows_per_plane
    yield "after the Value rows", m.key_rows + m.value_rows <= row
    yield "in the Commit Zone rows", row - m.key_rows - m.value_rows < g.zone_rows
    yield from _in_use(g, at, g.slot_columns)


@attrs.frozen
class Kind:
    """One of the three kinds of places, with its part of the address map.

    granule or slot: `index` makes any index of the kind. elements: of a head, with the
    places that pad it. home: conditions under which an address belongs to the kind.
    """

    word: str
    index_name: str
    index: Callable[[Space, Geometry, str], Any]
    indices: Callable[[Geometry], Any]
    elements: Callable[[Geometry], Any]
    home: Callable[[Geometry, Address], Iterator[tuple[str, Any]]]

    def place(self, space: Space, g: Geometry, tag: str = "") -> Element:
        """Any place of this kind, padding of heads included."""
        return Element(
            layer=layer(space, g, tag),
            head=head(space, g, tag),
            index=self.index(space, g, tag),
            token=token(space, g, tag),
            element=space.number(f"element{tag}", self.elements(g)),
        )

    def address(self, g: Geometry, *place: Any) -> Address:
        """The address of a place, from the shipped function."""
        found = getattr(addresses, f"{self.word}_address")(g.map, *place)
        assert isinstance(found, Address)
        return found

    def element(self, g: Geometry, at: Address) -> Element:
        """The element at an address, from the shipped function."""
        found = getattr(addresses, f"{self.word}_element")(g.map, at)
        assert isinstance(found, Element)
        return found


KEY = Kind(
    word="key",
    index_name="granule",
    index=granule,
    indices=lambda g: g.granules,
    elements=lambda g: g.key_elements,
    home=key_home,
)
VALUE = Kind(
    word="value",
    index_name="granule",
    index=granule,
    indices=lambda g: g.granules,
    elements=lambda g: g.value_elements,
    home=value_home,
)
SLOT = Kind(
    word="slot",
    index_name="slot",
    index=slot,
    indices=lambda g: g.slots * g.map.stripes,
    elements=lambda g: g.value_elements,
    home=slot_home,
)
KINDS = (KEY, VALUE, SLOT)
