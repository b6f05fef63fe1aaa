"""Command streams made by hand, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from patton.commands import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    Axes,
    CommandStream,
    Frame,
    Op,
    Phase,
    Strides,
)

# Keys lie with tokens over banks, Values with tokens over lanes; 4 banks, 8 lanes.
KEY_AXES = Axes(token=Strides(0, 1, 0, 0), element=Strides(0, 0, 8, 1))
VALUE_AXES = Axes(token=Strides(0, 0, 8, 1), element=Strides(4, 1, 0, 0))
ALL_LANES = 0xFF

DEFAULTS = {"channels": 1, "banks": 4, "count": 1}


def frame(head_dim: int = 20) -> Frame:
    """Three heads of two query heads each, 2 channels, 4 banks, bursts of 8."""
    return Frame(
        heads=3,
        heads_per_kv=2,
        groups=3,
        channels_per_head=2,
        folds=1,
        rows_per_plane=10,
        banks=4,
        lanes=8,
        bursts_per_row=32,
        head_dim=head_dim,
    )


def stream(
    phase: Phase, entries: Sequence[dict[str, Any]], **tables: Any
) -> CommandStream:
    """A stream of these entries; missing fields are 0, or one channel, all banks."""
    types = {**COLUMNS, **(OPTIONAL_COLUMNS if tables.get("axes") else {})}
    columns = {
        name: np.array(
            [entry.get(name, DEFAULTS.get(name, 0)) for entry in entries], kind
        )
        for name, kind in types.items()
    }
    return CommandStream(phase=phase, step=4, **{"frame": frame(), **columns, **tables})


def entry(op: Op, **fields: int) -> dict[str, int]:
    """One entry, for `stream`."""
    return {"op": op, **fields}
