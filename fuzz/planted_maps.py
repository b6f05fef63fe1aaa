"""Faults of the address map, of layouts, and of what allocation knows of them.

Each function makes a wrong one from the right one; its name in the catalogue says what
went wrong. `fuzz.maps` looks at small layouts in every place.
"""

from __future__ import annotations

from typing import Any

from fuzz.bugs import Register, Wrong, bug
from patton import addresses, layout
from patton.addresses import Address, AddressMap, Element
from patton.layout import BlockShapes, Layout
from patton.pairs import PairPool


def mapped(name: str, clause: str, attribute: str) -> Register:
    """Register a fault of a function of the address map."""
    return bug(name, clause, addresses, attribute, finder="maps", budget=40)


@mapped("Values begin where their plane does", "MAP-INSIDE", "value_address")
def _(old: Wrong) -> Wrong:
    def value_address(m: AddressMap, *place: Any) -> Address:
        at: Address = old(m, *place)
        return at._replace(row=at.row - m.key_rows)

    return value_address


@mapped("a Key's groups of tokens lie on each other", "MAP-DISJOINT", "key_address")
def _(old: Wrong) -> Wrong:
    def key_address(m: AddressMap, *place: Any) -> Address:
        layer, head, granule, token, element = place
        at: Address = old(m, layer, head, granule, token % m.banks, element)
        return at

    return key_address


@mapped("a lane is taken for a burst on the way back", "MAP-INVERSE", "key_element")
def _(old: Wrong) -> Wrong:
    def key_element(m: AddressMap, at: Address) -> Element:
        found: Element = old(m, at)
        return found._replace(element=at.burst % m.key_bursts + at.lane * m.key_bursts)

    return key_element


@mapped("the last channel of a head is left idle", "MAP-ONTO", "key_address")
def _(old: Wrong) -> Wrong:
    def key_address(m: AddressMap, *place: Any) -> Address:
        at: Address = old(m, *place)
        last = at.channel % m.channels_per_head == m.channels_per_head - 1
        return at._replace(channel=at.channel - last * (m.channels_per_head > 1))

    return key_address


@mapped("every other head turns its banks", "MAP-SHIFT", "key_address")
def _(old: Wrong) -> Wrong:
    def key_address(m: AddressMap, *place: Any) -> Address:
        at: Address = old(m, *place)
        return at._replace(bank=(at.bank + place[1] % 2) % m.banks)

    return key_address


@mapped("tokens are spread over the blocks of a row", "MAP-ALIGN", "value_address")
def _(old: Wrong) -> Wrong:
    def value_address(m: AddressMap, *place: Any) -> Address:
        at: Address = old(m, *place)
        granule, token = place[2] // m.stripes, place[3]
        across = token // m.lanes * m.values_per_set + granule % m.values_per_set
        return at._replace(burst=across)

    return value_address


@mapped("blocks of a row set share their columns", "MAP-COLUMNS", "value_address")
def _(old: Wrong) -> Wrong:
    def value_address(m: AddressMap, *place: Any) -> Address:
        at: Address = old(m, *place)
        return at._replace(burst=at.burst % m.value_bursts)

    return value_address


@mapped("further sub-blocks begin on any channel", "MAP-RUN", "value_address")
def _(old: Wrong) -> Wrong:
    def value_address(m: AddressMap, *place: Any) -> Address:
        at: Address = old(m, *place)
        channel = at.channel % m.value_channels
        turned = (channel + place[2] // m.stripes) % m.value_channels
        further = place[4] // m.banks > 0
        return at._replace(channel=at.channel + (turned - channel) * further)

    return value_address


@mapped("slots hold their banks the other way round", "MAP-COMMIT", "slot_address")
def _(old: Wrong) -> Wrong:
    def slot_address(m: AddressMap, *place: Any) -> Address:
        at: Address = old(m, *place)
        return at._replace(bank=m.banks - 1 - at.bank)

    return slot_address


@bug(
    "the first Value row is looked up as a Key's",
    *("MAP-LOOKUP", Layout, "_kind_of_row"),
    finder="maps",
    budget=40,
)
def _(old: Wrong) -> Wrong:
    return lambda self, row: old(self, max(0, row - 1))


@bug(
    "stripes are forgotten in a pair's row set",
    *("MAP-PAIR", Layout, "value_set_of_pair"),
    finder="maps",
    budget=40,
)
def _(_: Wrong) -> Wrong:
    return lambda self, pair: pair * self.pair_blocks // self.values_per_set


@bug(
    "one pair less than fits",
    *("MAP-ACCEPT", layout, "_most_pairs"),
    finder="maps",
    budget=40,
)
def _(old: Wrong) -> Wrong:
    return lambda *shapes: max(1, old(*shapes) - 1)


@bug(
    "Values of a pair are not counted in rows",
    *("MAP-INDEX", BlockShapes, "rows_for"),
    finder="maps",
    budget=40,
)
def _(old: Wrong) -> Wrong:
    def rows_for(self: BlockShapes, blocks: int, slots: int) -> tuple[int, int, int]:
        keys, values, zone = old(self, blocks, slots)
        return keys, max(self.rows_per_value, values - self.rows_per_value), zone

    return rows_for


@bug(
    "allocation knows one pair more than there is",
    *("MAP-INDEX", PairPool, "of"),
    finder="maps",
    budget=40,
)
def _(old: Wrong) -> Wrong:
    def of(cls: type[PairPool], whole: Layout, choice: Any = "spread") -> PairPool:
        pool: PairPool = old(cls, whole, choice)
        pool.free_pairs += 1
        return pool

    return classmethod(of)  # type: ignore[return-value]
