"""Which channels, rows and bursts a granule or slot takes, for one layer and KV head.

Channels are counted from the head's first channel and rows from the plane's first row.
All comes from the functions of `patton.addresses`, asked for the first element of each
part of a granule.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import attrs
import numpy as np

from patton.addresses import (
    Address,
    key_address,
    key_element,
    slot_address,
    value_address,
    value_element,
)
from patton.layout import Kind, Layout


class Area(NamedTuple):
    """Bursts [burst, end) of rows [first_row, last_row] of one channel."""

    channel: int
    first_row: int
    last_row: int
    burst: int
    end: int


@attrs.frozen
class Footprints:
    """Areas of granules and slots of one layer and head of a layout."""

    layout: Layout
    layer: int
    head: int

    def areas(self, kind: Kind, index: int) -> list[Area]:
        """The areas of one granule or slot, by channel."""
        channels, rows, bursts = (axis.tolist() for axis in self._parts(kind, index))
        width = self.layout.key_width if kind == "key" else self.layout.value_width
        found: dict[int, Area] = {}
        for channel, row, burst in zip(channels, rows, bursts, strict=True):
            area = Area(channel, row, row, burst, burst + width)
            found[channel] = _united(found.get(channel, area), area)
        return list(found.values())

    def rows(self, kind: Kind, indices: Collection[int]) -> set[int]:
        """The rows that these granules or slots take."""
        column = np.array(sorted(indices), np.int64)[:, None]
        return set(self._parts(kind, column)[1].ravel().tolist())

    def granules_on(self, kind: Kind, rows: Collection[int]) -> set[int]:
        """The granules whose Key, or whose Value, lies on one of these rows.

        Asked of the rows, since a device may have millions of granules.
        """
        layout = self.layout
        origin = key_address(layout.map, self.layer, self.head, 0, 0, 0)
        channels = origin.channel + np.arange(layout.channels_per_head)[:, None, None]
        at_rows = origin.row + np.array(sorted(rows), np.int64)[:, None]
        bursts = np.arange(layout.device.bursts_per_row)
        inverse = key_element if kind == "key" else value_element
        found = inverse(layout.map, Address(channels, 0, at_rows, bursts, 0)).index
        inside: list[int] = np.unique(found[found < layout.granules]).tolist()
        return set(inside)

    def pair_areas(self, pair: int) -> list[Area]:
        """Where a pair lies: adjacent granules of the same rows are one area."""
        size = self.layout.pair_blocks
        found: dict[tuple[int, int], Area] = {}
        for granule in range(pair * size, (pair + 1) * size):
            for area in (*self.areas("key", granule), *self.areas("value", granule)):
                where = area.channel, area.first_row
                found[where] = _united(found.get(where, area), area)
        return list(found.values())

    def _parts(self, kind: Kind, index: Any) -> tuple[Any, Any, Any]:
        """Channel, row and first burst of each part, which is the last axis."""
        m = self.layout.map
        origin = key_address(m, self.layer, self.head, 0, 0, 0)
        if kind == "key":
            address = key_address(m, self.layer, self.head, index, 0, np.zeros(1, int))
        else:
            parts = self.layout.rows_per_value * self.layout.value_channels
            elements = np.arange(parts) * self.layout.device.banks
            place = value_address if kind == "value" else slot_address
            address = place(m, self.layer, self.head, index, 0, elements)
        return _relative(address, origin)


def _relative(address: Address, origin: Address) -> tuple[Any, Any, Any]:
    axes = (address.channel - origin.channel, address.row - origin.row, address.burst)
    channel, row, burst = np.broadcast_arrays(*axes)
    return channel, row, burst


def _united(one: Area, other: Area) -> Area:
    return Area(
        one.channel,
        min(one.first_row, other.first_row),
        max(one.last_row, other.last_row),
        min(one.burst, other.burst),
        max(one.end, other.end),
    )
