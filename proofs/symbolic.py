"""Shipped objects with symbolic numbers in their fields.

The classes are the shipped ones, so that their methods are. Their constructors are
passed over, since they demand integers; a field that is not given here is missing, so
that no code can quietly rely on it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, TypeVar

from patton.config import DeviceConfig, ModelConfig
from patton.layout import Layout
from proofs.geometry import Geometry

T = TypeVar("T")


def made(cls: type[T], **fields: Any) -> T:
    """An object of a frozen class with these fields and no others."""
    item = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(item, name, value)
    return item


def device_of(
    channels: Any, banks: Any, rows: Any, bursts: Any, lanes: Any, element_bytes: Any
) -> DeviceConfig:
    """A device with rows of so many bursts of so many lanes."""
    burst_bytes = lanes * element_bytes
    return made(
        DeviceConfig,
        name="symbolic",
        channels=channels,
        banks=banks,
        rows=rows,
        row_bytes=bursts * burst_bytes,
        burst_bytes=burst_bytes,
        element=SimpleNamespace(bytes=element_bytes),
    )


def layout_of(g: Geometry) -> Layout:
    """The layout whose geometry this is."""
    m = g.map
    return made(
        Layout,
        device=device_of(g.channels, m.banks, g.rows, g.bursts, m.lanes, 2),
        model=made(
            ModelConfig,
            name="symbolic",
            layers=g.layers,
            kv_heads=g.heads,
            head_dim=g.head_dim,
        ),
        map=m,
        block_tokens=g.block_tokens,
        pair_blocks=g.pair_blocks,
        pairs=g.pairs,
        granules=g.granules,
        slots=g.slots,
        stripes=m.stripes,
        values_per_set=m.values_per_set,
        rows_per_plane=m.rows_per_plane,
        key_rows=m.key_rows,
        value_rows=m.value_rows,
    )
