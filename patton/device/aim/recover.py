"""From a trace to command streams: those that were exported, and any others.

A trace that `convert` wrote with notes gives back the streams it was made of, column by
column; lines that its notes do not account for are refused. Other traces, and those
without notes, are read line by line as a stream of one head that owns all channels:
rows that a command needs open are opened, and lines for channels that are no neighbours
become an entry for each run of them. What streams have no command for is refused; host
lines, barriers and lines that do nothing have no entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NoReturn

import attrs
import numpy as np

from patton.commands import COLUMNS, OPTIONAL_COLUMNS, CommandStream, Frame, Op, Phase
from patton.device.aim.convert import (
    BANK_BY_BANK,
    NAMES_ROW,
    OPERAND_WAYS,
    Operands,
    Sender,
    stream_trace,
)
from patton.device.aim.notes import (
    OPS,
    Header,
    line_columns,
    noted_columns,
    read_act,
    read_header,
)
from patton.device.aim.trace import (
    BANKS,
    CHANNELS,
    Instruction,
    Opcode,
    format_line,
    mask_of,
)
from patton.errors import FrameError, TraceError

HOST_LINES: Final = frozenset(
    {Opcode.SYNC, Opcode.EOC, Opcode.EWADD}
    | {Opcode.W_GPR, Opcode.R_GPR, Opcode.W_CFR, Opcode.R_CFR}
)
# A trace without notes: one head on all channels, with AiM's rows and BF16 lanes.
PLAIN_FRAME: Final = Frame(1, 1, 1, CHANNELS, 1, 16_384, BANKS, 16, 64, 128)
ALL_LANES: Final = (1 << PLAIN_FRAME.lanes) - 1
CLOSED: Final = -1
MOST_BURSTS: Final = 2**16 - 1

# What a note may add to a line that stands for itself.
PLAIN_NOTES: Final = ("burst", "register", "reference", "element", "lanes", "fill")

ACT_COLUMNS: Final = {
    **dict.fromkeys(("burst", "register", "reference", "element", "lanes", "fill"), 0),
    "op": int(Op.ACT),
    "count": 1,
}
PHASES: Final = {
    Op.MACAB: Phase.QK,
    Op.WRCP: Phase.COMMIT,
    Op.WR: Phase.KEY_WRITE,
    Op.RD: Phase.READ_KEY,
}

Row = dict[str, int]


@attrs.frozen
class Recovered:
    """A stream, the layer it was made for, and how its operands were sent.

    start, end: the instructions that it was read from.
    """

    stream: CommandStream
    layer: int
    operands: Operands
    start: int
    end: int


def streams_of(
    trace: Sequence[Instruction], *, source: str = "trace", notes: bool = True
) -> list[Recovered]:
    """The streams of a trace in their order; notes: False to read the lines alone.

    Raises TraceError, whose line counts instructions from 1, for what no stream says
    and for lines that contradict their notes.
    """
    reader = _Reader(trace, source)
    return list(reader.streams(notes=notes))


@attrs.define
class _Reader:
    """Goes through a trace. at: index of the next instruction."""

    trace: Sequence[Instruction]
    source: str
    at: int = 0

    def streams(self, *, notes: bool) -> Iterator[Recovered]:
        """Exported streams, and between them what was not."""
        while self.at < len(self.trace):
            if notes and self._begins():
                yield self._exported()
                continue
            start = self.at
            rows: list[Row] = []
            banks = OpenRows()
            while self.at < len(self.trace) and not (notes and self._begins()):
                rows += self._plain(self.trace[self.at], banks)
                self.at += 1
            if rows:
                stream = _plain_stream(rows)
                yield Recovered(stream, 0, OPERAND_WAYS[0], start, self.at)

    def _begins(self) -> bool:
        note = self.trace[self.at].note
        return bool(note) and note[0][0] == "stream"

    def _exported(self) -> Recovered:
        """A stream with its notes; what it converts to must be what was read."""
        start = self.at
        header = self._guarded(read_header, self.trace[start].note)
        rows = list(self._entries(header))
        stream = self._guarded(_stream, header, rows)
        try:
            expected = stream_trace(
                stream, layer=header.layer, operands=header.operands
            )
        except (FrameError, ArithmeticError, LookupError, ValueError) as error:
            self.at = start
            self._refuse(f"notes of no stream ({error})", "notes as exported")
        for offset, line in enumerate(expected):
            self.at = start + offset
            if self.at >= len(self.trace) or self.trace[self.at] != line:
                words = format_line(line)
                self._refuse("another line than its notes call for", words)
        self.at = start + len(expected)
        return Recovered(stream, header.layer, header.operands, start, self.at)

    def _entries(self, header: Header) -> Iterator[Row]:
        """The columns of all entries, from the lines that carry their notes."""
        base = header.layer * header.frame.folds * header.frame.rows_per_plane
        found = 0
        while found < header.entries:
            if self.at >= len(self.trace):
                self._refuse("the trace ends within a stream", "its further lines")
            line = self.trace[self.at]
            for word in _acts(line):
                yield self._guarded(read_act, word)
                found += 1
            if line.opcode in OPS:
                row = self._guarded(_noted_row, header, line, base)
                yield row
                found += 1
                self.at += self._guarded(_line_count, header, row)
            else:
                self.at += 1
        if self.at > len(self.trace):
            self._refuse("the trace ends within an entry", "its further lines")

    def _plain(self, line: Instruction, banks: OpenRows) -> Iterator[Row]:
        """The entries of a line without notes, and those that open its rows."""
        if line.opcode in HOST_LINES or not line.mask or not line.opsize:
            return
        if line.opcode not in OPS:
            name = line.opcode.name
            self._refuse(f"{name}, which no stream has", ", ".join(o.name for o in OPS))
        if line.opsize > MOST_BURSTS:
            self._refuse(f"{line.opsize} bursts", f"at most {MOST_BURSTS}")
        noted = self._guarded(noted_columns, line.note)
        for channels in _runs(line.channels):
            part = line._replace(mask=mask_of(channels))
            row = line_columns(PLAIN_FRAME, part, 0) | {"lanes": ALL_LANES}
            if line.opcode == Opcode.WR_ABK:
                row["lanes"] = 1  # one element to each bank
            row |= {name: noted[name] for name in PLAIN_NOTES if name in noted}
            yield from banks.opened_for(row)
            yield row
            if line.opcode == Opcode.WR_ABK:
                banks.close(row)

    def _guarded(self, read: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return read(*arguments)
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self._refuse(f"a note that cannot be read ({error})", "notes as exported")

    def _refuse(self, problem: str, accepted: str) -> NoReturn:
        index = min(self.at, len(self.trace) - 1)
        text = format_line(self.trace[index])
        raise TraceError(self.source, index + 1, text, problem, accepted)


def _noted_row(header: Header, line: Instruction, base: int) -> Row:
    return line_columns(header.frame, line, base) | noted_columns(line.note)


def _acts(line: Instruction) -> list[str]:
    words = dict(line.note).get("act")
    return words.split(",") if words else []


def _line_count(header: Header, row: Row) -> int:
    """How many lines an entry takes in the first fold."""
    sender = Sender.of(header.frame, header.layer, 0, header.operands)
    channels = row["channel"], row["channels"]
    for_one_burst = sender.lines(row["op"], *channels, row["bank"], 1, row["row"], 1)
    times = row["banks"] * row["count"] if row["op"] in BANK_BY_BANK else 1
    return len(for_one_burst) * times


def _stream(header: Header, rows: Sequence[Row]) -> CommandStream:
    columns = _columns(rows, header.optional)
    return CommandStream(
        phase=header.phase,
        step=header.step,
        frame=header.frame,
        source=header.source,
        **columns,
        **header.tables,
    )


def _columns(rows: Sequence[Row], optional: Sequence[str]) -> dict[str, Any]:
    kinds = {**COLUMNS, **{name: OPTIONAL_COLUMNS[name] for name in optional}}
    return {
        name: np.array([row.get(name, 0) for row in rows], kind)
        for name, kind in kinds.items()
    }


# --- traces without notes ---------------------------------------------------------


class OpenRows:
    """Which row is open in every bank, as the commands of a stream leave them."""

    def __init__(self) -> None:
        self.rows = [[CLOSED] * BANKS for _ in range(CHANNELS)]

    def opened_for(self, row: Row) -> Iterator[Row]:
        """The ACTs that a command needs before it."""
        if row["op"] not in NAMES_ROW:
            return
        banks = slice(row["bank"], row["bank"] + row["banks"])
        first = row["channel"]
        closed = [
            channel
            for channel in range(first, first + row["channels"])
            if any(open_row != row["row"] for open_row in self.rows[channel][banks])
        ]
        for channels in _runs(closed):
            place = {"channel": channels[0], "channels": len(channels)}
            yield {**row, **place, **ACT_COLUMNS}
            for channel in channels:
                self.rows[channel][banks] = [row["row"]] * row["banks"]

    def close(self, row: Row) -> None:
        """After a command that precharges its banks."""
        for channel in range(row["channel"], row["channel"] + row["channels"]):
            self.rows[channel] = [CLOSED] * BANKS


def _runs(channels: Sequence[int]) -> Iterator[list[int]]:
    """Ascending channels in runs of neighbours."""
    run: list[int] = []
    for channel in channels:
        if run and channel != run[-1] + 1:
            yield run
            run = []
        run.append(channel)
    if run:
        yield run


def _plain_stream(rows: Sequence[Row]) -> CommandStream:
    ops = {row["op"] for row in rows}
    optional = tuple(OPTIONAL_COLUMNS) if ops & {Op.RD, Op.WR} else ()
    # No line says what it is for; the first phase that has such commands will do.
    phase = next((PHASES[op] for op in PHASES if op in ops), Phase.QK)
    columns = _columns(rows, optional)
    return CommandStream(phase=phase, step=0, frame=PLAIN_FRAME, **columns)
