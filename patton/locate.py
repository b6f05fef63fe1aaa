"""What lies at an address, and what is there where nothing lies: in words, for people.

`Layout.element_at` answers for programs: an element or nothing. Here nothing has a
reason: padding of a granule, the end of a row, an unused row, an idle channel. Places
are taken apart by the functions of `patton.addresses` alone, so no formula is repeated.
"""

from __future__ import annotations

from typing import Literal

import attrs

from patton.addresses import (
    Address,
    Element,
    key_address,
    key_element,
    slot_address,
    slot_element,
    value_address,
    value_element,
)
from patton.layout import Kind, Layout

Use = Literal["element", "padding", "unused"]

_MAPS = {
    "key": (key_address, key_element),
    "value": (value_address, value_element),
    "slot": (slot_address, slot_element),
}
_HELD = {"key": "Key granule", "value": "Value granule", "slot": "slot"}


@attrs.frozen
class Region:
    """Consecutive rows of a plane with one purpose; kind: what they hold, if anything.

    first_row: counted from the plane's first row.
    """

    name: str
    kind: Kind | None
    first_row: int
    rows: int

    @property
    def end_row(self) -> int:
        """The row after the last."""
        return self.first_row + self.rows


@attrs.frozen
class Location:
    """An address and what it is for.

    kind and element: of what lies there; of padding too, whose element is one that the
    head does not have. note: why nothing lies there, empty for an element. region: the
    name of the rows, empty beyond the last plane.
    """

    address: Address
    use: Use
    region: str
    kind: Kind | None = None
    element: Element | None = None
    note: str = ""


def regions(layout: Layout) -> tuple[Region, ...]:
    """The regions of every plane, in the order of their rows (Paper 4.2 to 4.4)."""
    zone_row = layout.key_rows + layout.value_rows
    unused_row = zone_row + layout.commit_zone_rows
    return (
        Region("Key", "key", 0, layout.key_rows),
        Region("Value", "value", layout.key_rows, layout.value_rows),
        Region("Commit Zone", "slot", zone_row, layout.commit_zone_rows),
        Region("unused", None, unused_row, layout.unused_rows),
    )


def first_row(layout: Layout, layer: int, head: int) -> int:
    """The first row of the plane of a layer and head."""
    return int(key_address(layout.map, layer, head, 0, 0, 0).row)


def locate(layout: Layout, address: Address) -> Location:
    """What lies at an address of the device, or why nothing does.

    Raises LayoutError if the device has no such address.
    """
    found = layout.element_at(address)
    here = key_element(layout.map, address._replace(channel=0))
    if here.layer >= layout.model.layers:
        note = f"beyond the rows of the last of {layout.planes} planes"
        return Location(address, "unused", "", note=note)
    row = address.row - first_row(layout, here.layer, here.head)
    region = next(item for item in regions(layout) if row < item.end_row)
    if found is not None:
        return Location(address, "element", region.name, *found)
    head = key_element(layout.map, address).head
    if head >= layout.model.kv_heads:
        note = f"no KV head of the {layout.model.kv_heads} is on this channel"
        return Location(address, "unused", region.name, note=note)
    if region.kind is None:
        note = "a row that is left over: another pair does not fit the plane"
        return Location(address, "unused", region.name, note=note)
    return _in_region(layout, address, region.name, region.kind)


def _in_region(layout: Layout, address: Address, region: str, kind: Kind) -> Location:
    """An address of a head's channels that holds no element of its region."""
    forward, inverse = _MAPS[kind]
    element = inverse(layout.map, address)
    if forward(layout.map, *element) != address:
        note = f"the end of a row, too short for another {_HELD[kind]}"
        return Location(address, "unused", region, note=note)
    last = layout.granules if kind != "slot" else layout.slots * layout.stripes
    if element.index >= last:
        note = f"after the last {_HELD[kind]}, which is {last - 1}"
        return Location(address, "unused", region, note=note)
    assert element.element >= layout.model.head_dim
    note = f"padding: a head has {layout.model.head_dim} elements"
    return Location(address, "padding", region, kind, element, note)


def address_words(address: Address) -> str:
    """An address as errors and reports put it."""
    names = zip(address._fields, address, strict=True)
    return ", ".join(f"{name} {value}" for name, value in names)


def element_words(layout: Layout, kind: Kind, element: Element) -> str:
    """An element as errors and reports put it."""
    of_what = "Key" if kind == "key" else "Value"
    if kind == "slot":
        holder = f"slot {element.index}"
    else:
        pair = layout.pair_of(element.index)
        place = element.index - pair * layout.pair_blocks
        holder = f"granule {element.index} (place {place} of pair {pair})"
    return (
        f"{of_what} in {holder}, token {element.token}, element {element.element}, "
        f"KV head {element.head}, layer {element.layer}"
    )
