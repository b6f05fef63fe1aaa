"""Entries put in their places: the columns of a stream from lists of its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.addresses import Address, value_address
from patton.commands import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    CommandStream,
    Frame,
    Op,
    Phase,
)
from patton.layout import Layout
from patton.steps import Ints, PlacedStep


def frame_of(layout: Layout) -> Frame:
    """How a stream for one head and plane covers a layer of this layout."""
    return Frame(
        heads=layout.model.kv_heads,
        heads_per_kv=layout.model.query_heads_per_kv,
        groups=layout.groups,
        channels_per_head=layout.channels_per_head,
        folds=layout.folds,
        rows_per_plane=layout.rows_per_plane,
        banks=layout.device.banks,
        lanes=layout.device.lanes,
        bursts_per_row=layout.device.bursts_per_row,
        head_dim=layout.model.head_dim,
    )


def first_elements(layout: Layout) -> Ints:
    """The head element at the first channel and bank of each row of a row set."""
    step = layout.value_channels * layout.device.banks
    return np.arange(layout.rows_per_value) * step


def token_places(layout: Layout, token: Ints) -> Address:
    """Burst and lane of Value tokens, the burst counted from their block's first.

    They are the same in every block, and go on beyond its end.
    """
    return value_address(layout.map, 0, 0, 0, token, 0)


def typed(**fields: Ints | int) -> dict[str, Any]:
    """Fields in the types of their columns, for many puts of the same values."""
    return {
        name: values.astype(COLUMNS[name]) if isinstance(values, np.ndarray) else values
        for name, values in fields.items()
    }


@attrs.frozen(eq=False)
class Entries:
    """The columns of a stream while they are being filled in."""

    columns: dict[str, NDArray[Any]]

    @classmethod
    def of(cls, size: int, frame: Frame, optional: tuple[str, ...] = ()) -> Entries:
        """`size` entries at their defaults; op and channels have none."""
        columns = _zeros(
            size, {**COLUMNS, **{name: OPTIONAL_COLUMNS[name] for name in optional}}
        )
        columns["banks"].fill(frame.banks)
        columns["count"].fill(1)
        return cls(columns)

    def put(self, op: Op, at: Ints, **fields: NDArray[Any] | int) -> None:
        """Set these fields of the entries at these places."""
        self.columns["op"][at] = op
        for name, values in fields.items():
            self.columns[name][at] = values

    @classmethod
    def of_rows(cls, rows: Sequence[Sequence[int]]) -> Entries:
        """Entries from their fields, in the order of COLUMNS."""
        kinds = zip(zip(*rows, strict=True), COLUMNS.items(), strict=True)
        return cls({name: np.array(values, kind) for values, (name, kind) in kinds})

    def followed_by(self, other: Entries) -> Entries:
        """These entries and then the others, which have the same columns."""
        pairs = (
            (name, (self.columns[name], other.columns[name])) for name in self.columns
        )
        return Entries({name: np.concatenate(pair) for name, pair in pairs})

    def stream(self, placed: PlacedStep, phase: Phase, **tables: Any) -> CommandStream:
        """The finished stream."""
        frame = frame_of(placed.layout)
        fields: dict[str, Any] = {**self.columns, **tables}
        return CommandStream(phase=phase, step=placed.step, frame=frame, **fields)


def _zeros(size: int, kinds: Mapping[str, type[np.generic]]) -> dict[str, NDArray[Any]]:
    """Columns of zeros, in one piece of memory.

    Many pieces are given back to the system each time, and fetching their pages anew
    takes longer than filling them.
    """
    types = {name: np.dtype(kind) for name, kind in kinds.items()}
    widths = [
        size * kind.itemsize + -size * kind.itemsize % 8 for kind in types.values()
    ]
    memory = np.zeros(sum(widths), np.uint8)
    ends = np.cumsum(widths).tolist()
    return {
        name: memory[end - width :][: size * kind.itemsize].view(kind)
        for (name, kind), width, end in zip(types.items(), widths, ends, strict=True)
    }
