"""Random command streams, legal ones and damaged ones.

The author of legal streams keeps a small account of its own of what a device allows, so
that they do not depend on the rules under test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import CommandStream, Frame, Op, Source
from patton.config import DeviceConfig, ElementType
from patton.executor import Payload
from tests.device.scripts import Script, frame_of


def random_device(rng: np.random.Generator) -> DeviceConfig:
    """A small device of odd sizes."""
    lanes = int(rng.choice([1, 2, 3, 4, 5, 7, 8, 16, 33, 64]))
    width = int(rng.integers(1, 7))
    return DeviceConfig(
        "random",
        channels=int(rng.integers(1, 7)),
        banks=int(rng.integers(1, 5)),
        rows=int(rng.integers(6, 25)),
        row_bytes=2 * lanes * width,
        burst_bytes=2 * lanes,
        element=ElementType.FP16 if rng.random() < 0.4 else ElementType.BF16,
        result_registers=int(rng.integers(1, 4)),
        copy_column="free" if rng.random() < 0.5 else "same",
        write_masks=bool(rng.random() < 0.6),
    )


def random_frame(rng: np.random.Generator, device: DeviceConfig) -> Frame:
    """A head shape that fits the device, sometimes with an incomplete last fold."""
    groups = int(rng.integers(1, device.channels + 1))
    folds = int(rng.integers(1, 3))
    layers = int(rng.integers(1, 3))
    return frame_of(
        device,
        heads=int(rng.integers((folds - 1) * groups + 1, folds * groups + 1)),
        groups=groups,
        channels_per_head=device.channels // groups,
        folds=folds,
        rows_per_plane=device.rows // (folds * layers),
    )


def layers_of(device: DeviceConfig, frame: Frame) -> int:
    """How many layers of this frame the device holds."""
    return device.rows // (frame.folds * frame.rows_per_plane)


class _Author:
    """Writes random legal entries."""

    def __init__(
        self, rng: np.random.Generator, script: Script, source: Source, rows: int
    ) -> None:
        self.rng = rng
        self.script = script
        self.source = source
        self.rows = rows
        channels = range(script.frame.channels_per_head)
        banks = range(script.device.banks)
        self.row_of = {(c, b): -1 for c in channels for b in banks}
        self.loaded: set[tuple[int, int]] = set()
        self.ready: set[tuple[int, int]] = set()
        self.returned = 0
        self.multiplied: tuple[dict[str, int], dict[str, int]] | None = None
        self.reads: list[tuple[dict[str, Any], int]] = []

    def span(self, limit: int) -> tuple[int, int]:
        """A first and a count inside the limit, often all."""
        if self.rng.random() < 0.3:
            return 0, limit
        first = int(self.rng.integers(limit))
        return first, int(self.rng.integers(1, limit - first + 1))

    def channels(self) -> dict[str, int]:
        first, many = self.span(self.script.frame.channels_per_head)
        return {"channel": first, "channels": many}

    def bursts(self) -> dict[str, int]:
        first, many = self.span(self.script.device.bursts_per_row)
        return {"burst": first, "count": many}

    def banks(self, op: Op) -> dict[str, int]:
        if op in (Op.RD, Op.WR):
            first, many = self.span(self.script.device.banks)
            return {"bank": first, "banks": many}
        if op in (Op.RDCP, Op.WRCP):
            first = int(self.rng.integers(self.script.device.banks))
            return {"bank": first, "banks": 1}
        return {"bank": 0, "banks": self.script.device.banks}

    def open_row(self, fields: dict[str, int]) -> None:
        """See to it that a row is open in these channels and banks."""
        places = _square(fields)
        rows = {self.row_of[place] for place in places}
        if len(rows) > 1 or rows == {-1} or self.rng.random() < 0.3:
            row = int(self.rng.integers(self.rows))
            self.script.add(Op.ACT, **fields, row=row)
            self.row_of |= dict.fromkeys(places, row)
        fields["row"] = self.row_of[places[0]]

    def load(self, fields: dict[str, int]) -> None:
        """See to it that these Global Buffer bursts are loaded."""
        wanted = {
            (c, b) for c in _range(fields, "channel") for b in _range(fields, "burst")
        }
        if not wanted <= self.loaded or self.rng.random() < 0.2:
            self.script.add(Op.WRGB, **fields)
            self.loaded |= wanted

    def initialise(self, fields: dict[str, int]) -> None:
        """See to it that this register is initialised."""
        wanted = {(c, fields["register"]) for c in _range(fields, "channel")}
        if not wanted <= self.ready or self.rng.random() < 0.1:
            self.script.add(Op.WRBIAS, **fields)
            self.ready |= wanted

    def register(self) -> dict[str, int]:
        return {"register": int(self.rng.integers(self.script.device.result_registers))}

    def macab(self) -> None:
        fields, bursts = self.channels(), self.bursts()
        if self.multiplied and self.rng.random() < 0.4:
            fields, bursts = self.multiplied
        self.multiplied = fields, bursts
        register = self.register()
        row = {**fields, **self.banks(Op.MACAB)}
        self.open_row(row)
        self.load({**fields, **bursts})
        self.initialise({**fields, **register})
        self.script.add(Op.MACAB, **row, **bursts, **register)

    def reduce(self) -> None:
        """A whole accumulation, as in real streams."""
        self.macab()
        last = self.script.entries.pop()
        fields = {key: last[key] for key in ("channel", "channels", "register")}
        self.script.add(Op.WRBIAS, **fields)
        self.script.entries.append(last)
        self.script.add(Op.RDMAC, **fields)
        self.ready -= {(c, fields["register"]) for c in _range(fields, "channel")}

    def rdmac(self) -> None:
        fields = {**self.channels(), **self.register()}
        if self.ready and self.rng.random() < 0.8:
            ready = sorted(self.ready)
            channel, register = ready[int(self.rng.integers(len(ready)))]
            fields = {"channel": channel, "channels": 1, "register": register}
        self.initialise(fields)
        self.script.add(Op.RDMAC, **fields)
        self.ready -= {(c, fields["register"]) for c in _range(fields, "channel")}

    def copy(self, op: Op) -> None:
        fields = {**self.channels(), **self.banks(op)}
        channels = {key: fields[key] for key in ("channel", "channels")}
        bursts = self.bursts()
        buffer = bursts["burst"]
        if self.script.device.copy_column == "free":
            most = self.script.device.bursts_per_row - bursts["count"]
            buffer = int(self.rng.integers(most + 1))
        self.open_row(fields)
        if op == Op.WRCP:
            self.load({**channels, "burst": buffer, "count": bursts["count"]})
        self.script.add(op, **fields, **bursts, reference=buffer)
        if op == Op.RDCP:
            many = range(buffer, buffer + bursts["count"])
            self.loaded |= {(c, b) for c in _range(fields, "channel") for b in many}

    def read(self) -> None:
        fields = {**self.channels(), **self.banks(Op.RD)}
        bursts = self.bursts()
        self.open_row(fields)
        self.reads.append(({**fields, **bursts}, self.returned))
        self.script.add(Op.RD, **fields, **bursts)
        self.returned += fields["channels"] * fields["banks"] * bursts["count"]

    def write(self) -> None:
        fields, reference = {**self.channels(), **self.banks(Op.WR), **self.bursts()}, 0
        if self.source == "read-back":
            if not self.reads:
                return
            fields, reference = self.reads[int(self.rng.integers(len(self.reads)))]
            fields = fields.copy()
            fields.pop("row", None)
        bursts = {key: fields.pop(key) for key in ("burst", "count")}
        self.open_row(fields)
        everything = 2**self.script.device.lanes - 1
        lanes = int(self.rng.integers(2**32)) << 32 | int(self.rng.integers(2**32))
        lanes = everything if self.rng.random() < 0.4 else lanes & everything
        fill = bool(self.rng.random() < 0.5)
        if not self.script.device.write_masks and not fill:
            lanes = everything
        self.script.add(
            Op.WR, **fields, **bursts, lanes=lanes, fill=fill, reference=reference
        )


def _range(fields: dict[str, int], name: str) -> range:
    many = "count" if name == "burst" else f"{name}s"
    return range(fields[name], fields[name] + fields[many])


def _square(fields: dict[str, int]) -> list[tuple[int, int]]:
    return [(c, b) for c in _range(fields, "channel") for b in _range(fields, "bank")]


def random_stream(
    rng: np.random.Generator,
    device: DeviceConfig,
    frame: Frame,
    *,
    source: Source = "host",
    actions: int = 20,
    step: int = 0,
) -> CommandStream:
    """A legal stream in which reads, writes, copies and products interleave."""
    author = _Author(rng, Script(device, frame), source, min(4, frame.rows_per_plane))
    kinds: list[Callable[[], None]] = [
        *(author.reduce, author.macab, author.macab, author.rdmac, author.read),
        *(lambda: author.copy(Op.RDCP), lambda: author.copy(Op.WRCP)),
    ]
    if source != "copy":
        kinds += [author.write, author.write]
    # A short alphabet makes long stretches of the same kind, as in real streams.
    chosen = rng.choice(len(kinds), int(rng.integers(2, len(kinds) + 1)))
    for kind in rng.choice(chosen, actions).tolist():
        kinds[kind]()
    return author.script.stream(source=source, step=step)


SPECIAL = {
    ElementType.BF16: [0, 0x8000, 1, 0x807F, 0x7F80, 0xFF80, 0x7FC1, 0xFFA5, 0x7F7F],
    ElementType.FP16: [0, 0x8000, 1, 0x83FF, 0x7C00, 0xFC00, 0x7E01, 0xFD55, 0x7BFF],
}


def random_bits(
    rng: np.random.Generator, shape: tuple[int, ...], device: DeviceConfig
) -> NDArray[np.uint16]:
    """Patterns of any kind, or of middling numbers, with special ones among them."""
    bits = rng.integers(0, 2**16, shape, np.uint16)
    if rng.random() < 0.7:
        bits = bits & np.uint16(0x83FF) | np.uint16(0x3800)
    share = rng.choice([0.0, 0.02, 0.3])
    special = rng.choice(np.array(SPECIAL[device.element], np.uint16), shape)
    return np.where(rng.random(shape) < share, special, bits)


def random_payload(
    rng: np.random.Generator, stream: CommandStream, device: DeviceConfig
) -> Payload:
    """Random bursts, some of which are sent several times."""
    many = int(stream.payload_offsets()[-1])
    kinds = int(rng.integers(1, max(2, many)))
    table = random_bits(rng, (kinds, stream.frame.heads, stream.frame.lanes), device)
    return Payload(table, rng.integers(0, kinds, many, np.int32))


def mutated(rng: np.random.Generator, stream: CommandStream) -> CommandStream:
    """The stream with an entry changed, lost, doubled or moved."""
    columns: dict[str, Any]
    columns = {name: column.copy() for name, column in stream.columns().items()}
    order = np.arange(len(stream))
    at, other = rng.integers(0, len(stream), 2).tolist()
    writes = np.flatnonzero(stream.op == Op.WR)
    if len(writes) and rng.random() < 0.4:  # they have rules of their own
        at = int(rng.choice(writes))
    match int(rng.integers(6)):
        case 0:
            order = np.delete(order, at)
        case 1:
            order = np.insert(order, at, other)
        case 2:
            order[[at, other]] = order[[other, at]]
        case _:
            _change(rng, columns, at)
    columns = {name: column[order] for name, column in columns.items()}
    return attrs.evolve(stream, **columns)


def _change(rng: np.random.Generator, columns: dict[str, Any], at: int) -> None:
    names = [name for name in columns if name != "op"]
    if columns["op"][at] == Op.WR and rng.random() < 0.5:
        names = ["lanes", "fill", "reference"]
    column = columns[str(rng.choice(names))]
    if column.dtype == np.bool_:
        column[at] ^= True
    elif rng.random() < 0.7:
        low = -1 if column.dtype == np.int32 else 0
        column[at] = rng.integers(low, 4)
    else:
        info = np.iinfo(column.dtype)
        column[at] = rng.integers(info.min, info.max, dtype=column.dtype, endpoint=True)
