"""Small devices, and command streams that tests write entry by entry."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    CommandStream,
    Frame,
    Op,
    Phase,
    Source,
)
from patton.config import DeviceConfig
from patton.executor import Payload, Results


def small_device(**changes: Any) -> DeviceConfig:
    """Four channels of two banks, rows of four bursts of four lanes."""
    device = DeviceConfig("small", 4, 2, 16, 32, 8, result_registers=2)
    return attrs.evolve(device, **changes)


def frame_of(device: DeviceConfig, **changes: Any) -> Frame:
    """One head on all channels, in one plane that takes all rows."""
    frame = Frame(
        heads=1,
        heads_per_kv=1,
        groups=1,
        channels_per_head=device.channels,
        folds=1,
        rows_per_plane=device.rows,
        banks=device.banks,
        lanes=device.lanes,
        bursts_per_row=device.bursts_per_row,
        head_dim=device.lanes,
    )
    return attrs.evolve(frame, **changes)


class Script:
    """A stream that is written entry by entry."""

    def __init__(self, device: DeviceConfig, frame: Frame | None = None) -> None:
        self.device = device
        self.frame = frame_of(device) if frame is None else frame
        self.entries: list[dict[str, Any]] = []

    def add(self, op: Op, **fields: Any) -> Script:
        """An entry; what is not said is the whole device, or the first of all."""
        one_bank = op in (Op.RDCP, Op.WRCP)
        entry = {
            "op": op,
            "channel": 0,
            "channels": self.frame.channels_per_head,
            "bank": 0,
            "banks": 1 if one_bank else self.device.banks,
            "row": 0,
            "burst": 0,
            "count": 1,
            "register": 0,
            "reference": 0,
            "element": 0,
            "lanes": 2**self.device.lanes - 1,
            "fill": False,
        }
        assert fields.keys() <= entry.keys()
        self.entries.append(entry | fields)
        return self

    def stream(self, *, source: Source = "host", step: int = 0) -> CommandStream:
        """The stream; columns that only reads or writes need are there with them."""
        kinds = {entry["op"] for entry in self.entries}
        names = list(COLUMNS)
        names += ["element", "lanes"] if kinds & {Op.RD, Op.WR} else []
        names += ["fill"] if Op.WR in kinds else []
        types = {**COLUMNS, **OPTIONAL_COLUMNS}
        columns: dict[str, Any] = {
            name: np.array([entry[name] for entry in self.entries], types[name])
            for name in names
        }
        return CommandStream(
            phase=Phase.COMMIT, step=step, frame=self.frame, source=source, **columns
        )


def payload_of(
    stream: CommandStream, values: NDArray[np.uint16] | None = None
) -> Payload:
    """All payload bursts, zero or as given [bursts, heads, E]."""
    bursts = int(stream.payload_offsets()[-1])
    shape = bursts, stream.frame.heads, stream.frame.lanes
    table = np.zeros(shape, np.uint16) if values is None else values.reshape(shape)
    return Payload(table, np.arange(bursts, dtype=np.int32))


def filling(device: DeviceConfig, frame: Frame, rows: int) -> CommandStream:
    """Writes the first rows whole, so that products are of something."""
    script = Script(device, frame)
    for row in range(rows):
        script.add(Op.ACT, row=row)
        script.add(Op.WR, row=row, count=device.bursts_per_row)
    return script.stream()


def same_results(one: Results, other: Results) -> bool:
    """Whether two executors returned the same bits."""
    pairs = zip(attrs.astuple(one), attrs.astuple(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)
