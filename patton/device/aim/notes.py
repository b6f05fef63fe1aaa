"""Notes in which a trace carries the rest of a command stream.

The first line of a stream has a header: phase, step, layer, frame and the tables that
say what its data mean. The first line of each entry has the columns in which the entry
differs from what the line itself says, and the rows that were opened before it. All of
them are comments to the simulator.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, get_args

import attrs
import numpy as np

from patton.commands import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    Axes,
    Command,
    CommandStream,
    Frame,
    Loads,
    Op,
    Phase,
    Queries,
    ResultTable,
    Source,
    Strides,
    Tokens,
)
from patton.device.aim.trace import Instruction, Note, Opcode

OPS: Final = {
    Opcode.WR_GB: Op.WRGB,
    Opcode.WR_BIAS: Op.WRBIAS,
    Opcode.MAC_ABK: Op.MACAB,
    Opcode.RD_MAC: Op.RDMAC,
    Opcode.RD_AF: Op.RDAF,
    Opcode.COPY_BKGB: Op.RDCP,
    Opcode.COPY_GBBK: Op.WRCP,
    Opcode.RD_SBK: Op.RD,
    Opcode.R_MEM: Op.RD,
    Opcode.WR_SBK: Op.WR,
    Opcode.W_MEM: Op.WR,
    Opcode.WR_ABK: Op.WR,
}
ONE_BANK: Final = frozenset({Op.RD, Op.WR, Op.RDCP, Op.WRCP})
TABLES: Final[Mapping[str, Any]] = {
    "tokens": Tokens,
    "loads": Loads,
    "results": ResultTable,
    "queries": Queries,
}
NO_NUMBERS: Final = "-"


class Header(NamedTuple):
    """What the note of a stream's first line says.

    entries: how many, with those that have no line; optional: the columns beyond the
    common ones; tables: fields of the stream.
    """

    phase: Phase
    step: int
    layer: int
    operands: str
    source: Source
    entries: int
    optional: tuple[str, ...]
    frame: Frame
    tables: dict[str, Any]


def header_note(stream: CommandStream, layer: int, operands: str) -> Note:
    """The note of a stream's first line."""
    optional = [name for name in OPTIONAL_COLUMNS if getattr(stream, name) is not None]
    return (
        ("stream", stream.phase.value),
        ("step", str(stream.step)),
        ("layer", str(layer)),
        ("operands", operands),
        ("source", stream.source),
        ("entries", str(len(stream))),
        ("columns", ",".join(optional) or NO_NUMBERS),
        ("frame", _numbers(attrs.astuple(stream.frame))),
        *_table_pairs(stream),
    )


def read_header(note: Note) -> Header:
    """The header in a note. Raises KeyError, ValueError, TypeError for a bad one."""
    pairs = dict(note)
    optional = tuple(n for n in OPTIONAL_COLUMNS if n in pairs["columns"].split(","))
    if pairs["source"] not in get_args(Source):
        raise ValueError(f"source {pairs['source']!r}")
    return Header(
        phase=Phase(pairs["stream"]),
        step=int(pairs["step"]),
        layer=int(pairs["layer"]),
        operands=pairs["operands"],
        source=pairs["source"],  # type: ignore[arg-type]
        entries=int(pairs["entries"]),
        optional=optional,
        frame=Frame(*_read_numbers(pairs["frame"])),
        tables=dict(_read_tables(pairs)),
    )


def _table_pairs(stream: CommandStream) -> Iterator[tuple[str, str]]:
    if stream.axes is not None:
        yield "axes.token", _numbers(stream.axes.token)
        yield "axes.element", _numbers(stream.axes.element)
    for name in TABLES:
        table = getattr(stream, name)
        if table is not None:
            for field, value in attrs.asdict(table, recurse=False).items():
                numbers = value.tolist() if isinstance(value, np.ndarray) else [value]
                yield f"{name}.{field}", _numbers(numbers)


def _read_tables(pairs: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    if "axes.token" in pairs:
        token, element = (pairs[f"axes.{name}"] for name in ("token", "element"))
        yield (
            "axes",
            Axes(Strides(*_read_numbers(token)), Strides(*_read_numbers(element))),
        )
    for name, kind in TABLES.items():
        fields = [field.name for field in attrs.fields(kind)]
        if f"{name}.{fields[0]}" in pairs:
            columns = [_read_numbers(pairs[f"{name}.{field}"]) for field in fields]
            is_constant = [field.endswith("_stride") for field in fields]
            values = [
                column[0] if constant else np.array(column, np.int64)
                for column, constant in zip(columns, is_constant, strict=True)
            ]
            yield name, kind(*values)


# --- entries --------------------------------------------------------------------


def act_word(entry: Command) -> str:
    """An ACT as a word of a note."""
    return (
        f"{entry.channel}+{entry.channels}:{entry.bank}+{entry.banks}:{entry.row}"
        f":{entry.burst}+{entry.count}:{entry.register}:{entry.reference}"
    )


def read_act(word: str) -> dict[str, int]:
    """The columns of an ACT from its word. Raises ValueError for a bad one."""
    numbers = word.replace("+", ":").split(":")
    names = [name for name in COLUMNS if name != "op"]
    found = dict(zip(names, map(int, numbers), strict=True))
    return {"op": int(Op.ACT), **found}


def entry_note(frame: Frame, entry: Command, line: Instruction, base: int) -> Note:
    """What an entry says beyond its first line; base: the plane's first row."""
    said = line_columns(frame, line, base)
    found = []
    for name, plain in said.items():
        value = getattr(entry, name)
        if value is not None and value != plain:
            found.append((name, _shown(name, value)))
    return tuple(found)


def line_columns(frame: Frame, line: Instruction, base: int) -> dict[str, int]:
    """The columns of an entry as far as a line alone tells.

    Its channels are those of the first head that it addresses.
    """
    op = OPS[line.opcode]
    width = frame.channels_per_head
    channels = [c for c in line.channels if c // width == line.channels[0] // width]
    single = op in ONE_BANK and line.opcode != Opcode.WR_ABK
    return {
        "op": int(op),
        "channel": channels[0] % width,
        "channels": len(channels),
        "bank": line.bank if single else 0,
        "banks": 1 if single else frame.banks,
        "row": line.row - base if op in ONE_BANK or op == Op.MACAB else 0,
        "burst": 0,
        "count": line.opsize,
        "register": 0,
        "reference": 0,
        "element": 0,
        "lanes": 0,
        "fill": 0,
    }


def noted_columns(note: Note) -> dict[str, int]:
    """The columns that a note gives. Raises ValueError for what is no number."""
    names = {**COLUMNS, **OPTIONAL_COLUMNS}
    return {name: int(value, 0) for name, value in note if name in names}


def _shown(name: str, value: int) -> str:
    return f"{int(value):#x}" if name == "lanes" else str(int(value))


def _numbers(values: Any) -> str:
    return ",".join(map(str, values)) or NO_NUMBERS


def _read_numbers(text: str) -> list[int]:
    return [] if text == NO_NUMBERS else [int(word) for word in text.split(",")]
