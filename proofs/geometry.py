"""The geometries that theorems speak about: what an address map is used with.

A `Geometry` is the shipped `AddressMap` and the counts around it. Its fields are
integers, or symbolic numbers when all geometries are meant. `premises` is all that the
theorems assume about them; that every layout which the library accepts keeps them, and
that no other geometry could be accepted, are theorems as well (clause MAP-ACCEPT).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from patton.addresses import AddressMap
from patton.layout import Layout


@attrs.frozen(eq=False)
class Geometry:
    """An address map with its surroundings; in brackets the symbols of the layout."""

    map: AddressMap
    layers: Any  # [L]
    heads: Any  # [H] KV heads
    head_dim: Any  # [D]
    block_tokens: Any  # [T]
    pair_blocks: Any  # [N]
    pairs: Any  # [M]
    row_sets: Any  # Value row sets of a plane
    zone_rows: Any  # [nZ]
    channels: Any  # [C] of the device
    rows: Any  # [R] of the device
    bursts: Any  # [W] of a row

    @property
    def granules(self) -> Any:
        """Granule indices of a plane and head."""
        return self.pairs * self.pair_blocks

    @property
    def slots(self) -> Any:
        """Slots per stripe: Commit Zone rows are whole."""
        return self.zone_rows * self.map.slots_per_row

    @property
    def planes(self) -> Any:
        """Planes of the device: one per layer and fold."""
        return self.layers * self.map.folds

    @property
    def key_columns(self) -> Any:
        """Bursts of a row in which Keys may lie."""
        m = self.map
        return m.keys_per_row * m.token_groups * m.key_bursts

    @property
    def value_columns(self) -> Any:
        """Bursts of a row in which Values may lie."""
        return self.map.values_per_set * self.map.value_bursts

    @property
    def slot_columns(self) -> Any:
        """Bursts of a Commit Zone row in which slots may lie."""
        m = self.map
        return m.slots_per_row * m.rows_per_value * m.value_bursts

    @property
    def key_elements(self) -> Any:
        """Elements of a token's Key with the lanes that pad it."""
        return self.map.key_bursts * self.map.lanes

    @property
    def value_elements(self) -> Any:
        """Elements of a token's Value with the sub-blocks that pad it."""
        m = self.map
        return m.rows_per_value * m.value_channels * m.banks

    @classmethod
    def of(cls, layout: Layout) -> Geometry:
        """The geometry of a layout that the library accepted."""
        return cls(
            map=layout.map,
            layers=layout.model.layers,
            heads=layout.model.kv_heads,
            head_dim=layout.model.head_dim,
            block_tokens=layout.block_tokens,
            pair_blocks=layout.pair_blocks,
            pairs=layout.pairs,
            row_sets=layout.value_rows // layout.rows_per_value,
            zone_rows=layout.commit_zone_rows,
            channels=layout.device.channels,
            rows=layout.device.rows,
            bursts=layout.device.bursts_per_row,
        )


def premises(g: Geometry) -> Iterator[tuple[str, Any]]:
    """All that the theorems assume about a geometry."""
    yield from positive(g)
    m = g.map
    yield "c = u cv", m.channels_per_head == m.stripes * m.value_channels
    yield "tokens fill banks", g.block_tokens == m.token_groups * m.banks
    yield "tokens fill lanes", g.block_tokens == m.value_bursts * m.lanes
    yield "Key bursts hold a head", g.head_dim <= g.key_elements
    yield "sub-blocks hold a head", g.head_dim <= g.value_elements
    yield "folds hold all heads", g.heads <= m.folds * m.groups
    yield "channels suffice", m.groups * m.channels_per_head <= g.channels
    yield "a row holds its Keys", g.key_columns <= g.bursts
    yield "a row holds its Values", g.value_columns <= g.bursts
    yield "a row holds its slots", g.slot_columns <= g.bursts
    yield "Value rows are whole sets", m.value_rows == g.row_sets * m.rows_per_value
    yield (
        "a plane holds its regions",
        m.key_rows + m.value_rows + g.zone_rows <= m.rows_per_plane,
    )
    yield "rows suffice", g.planes * m.rows_per_plane <= g.rows
    keys = m.key_rows * m.keys_per_row * m.channels_per_head
    yield "Key rows hold all granules", g.granules <= keys
    values = g.row_sets * m.values_per_set * m.stripes
    yield "Value rows hold all granules", g.granules <= values


def positive(g: Geometry) -> Iterator[tuple[str, Any]]:
    """Every count is at least 1."""
    for owner in (g.map, g):
        for field in attrs.fields(type(owner)):
            if field.name != "map":
                yield f"{field.name} is positive", getattr(owner, field.name) >= 1
