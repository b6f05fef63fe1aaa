"""What a device asks of a stream: whom it suits, and which commands are legal when.

The rules are applied here to one single command after another, as a device would meet
them. `patton.device.protocol` finds the first bad entry of a long stream at once, in
another way; both are compared in the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

import attrs
import numpy as np

from patton.arguments import expect, expect_fields
from patton.commands import Command, CommandStream, Op
from patton.config import DeviceConfig
from patton.errors import (
    DeviceConfigError,
    FrameError,
    PayloadError,
    ProtocolError,
)
from patton.executor import Payload

# What a command of each kind refers to.
ALL_BANKS = frozenset({Op.WRBIAS, Op.MACAB, Op.RDMAC})
ONE_BANK = frozenset({Op.RDCP, Op.WRCP})
SOME_BANKS = frozenset({Op.ACT, Op.RD, Op.WR})
OPEN_ROW = frozenset({Op.MACAB, Op.RDCP, Op.WRCP, Op.RD, Op.WR})
OWN_BUFFER = frozenset({Op.WRGB, Op.MACAB})  # Global Buffer burst b with bank burst b
NAMED_BUFFER = ONE_BANK  # Global Buffer bursts from `reference` on
LOADS = frozenset({Op.WRGB, Op.RDCP})
OPERANDS = frozenset({Op.MACAB, Op.WRCP})
REGISTERS = frozenset({Op.WRBIAS, Op.MACAB, Op.RDMAC})
BANK_BY_BANK = frozenset({Op.RD, Op.WR})
FOREIGN = frozenset({Op.RDAF, Op.MACSV})  # commands of units that no device here has
SINGLE = frozenset({Op.ACT, Op.WRBIAS, Op.RDMAC, Op.RDAF})


class Rule(StrEnum):
    """What a command can break; the first of several in this order is reported."""

    STEP = "step"
    ADDRESS = "address"
    FUNCTION = "function"  # of a unit that the device has not
    COLUMN = "copy column"
    MASK = "write mask"
    SOURCE = "write source"
    ROW = "row"
    OPERAND = "operand"
    REGISTER = "register"


class Single(NamedTuple):
    """One command of an entry.

    number: counted over the stream; place: inside the entry; bank, burst: of this
    command; buffer: its Global Buffer burst; whole: the entry.
    """

    number: int
    entry: int
    place: int
    bank: int
    burst: int
    buffer: int
    whole: Command

    @property
    def op(self) -> Op:
        """Kind of the command."""
        return self.whole.op

    @property
    def banks(self) -> slice:
        """The banks of this command."""
        many = 1 if self.op in BANK_BY_BANK else self.whole.banks
        return slice(self.bank, self.bank + many)

    @property
    def channels(self) -> range:
        """The channels of every head that receive it."""
        return range(self.whole.channel, self.whole.channel + self.whole.channels)

    def __str__(self) -> str:
        changes = {"bank": self.bank, "banks": self.banks.stop - self.bank}
        if self.op not in SINGLE:
            changes |= {"burst": self.burst, "count": 1}
        if self.op in NAMED_BUFFER:
            changes["reference"] = self.buffer
        return str(attrs.evolve(self.whole, **changes))


def single_commands(stream: CommandStream) -> Iterator[Single]:
    """The commands of all entries in order."""
    number = 0
    for entry, whole in enumerate(stream.commands()):
        for place, (bank, burst, buffer) in enumerate(_places(whole)):
            yield Single(number, entry, place, bank, burst, buffer, whole)
            number += 1


def _places(whole: Command) -> Iterator[tuple[int, int, int]]:
    """Bank, burst and Global Buffer burst of every command of an entry."""
    count = 1 if whole.op in SINGLE else whole.count
    first = whole.reference if whole.op in NAMED_BUFFER else whole.burst
    for bank in range(whole.banks if whole.op in BANK_BY_BANK else 1):
        for i in range(count):
            yield whole.bank + bank, whole.burst + i, first + i


# --- the stream as a whole ------------------------------------------------------------


def check_device(device: DeviceConfig) -> None:
    """Raises DeviceConfigError where elements can be placed but not computed with."""
    expect("device", "device", device, DeviceConfig)
    if not device.element.arithmetic:
        accepted = "an element type with arithmetic: bf16 or fp16"
        raise DeviceConfigError(device.name, "element", device.element, accepted)


def check_arguments(
    stream: CommandStream, payload: Payload, layer: int, stop: int | None
) -> None:
    """Raises ArgumentError where `Executor.run` is called with something else."""
    expect("run", "stream", stream, CommandStream)
    expect("run", "payload", payload, Payload)
    expect_fields("run: payload", payload, table=np.ndarray, index=np.ndarray)
    expect("run", "layer", layer, int)
    expect("run", "stop", stop, int, type(None))


def check_step(stream: CommandStream, layer: int, last: int | None) -> None:
    """Raises ProtocolError where a later step of this layer was executed before."""
    if last is not None and stream.step < last:
        first = next(single_commands(stream), None)
        text = "no command" if first is None else str(first)
        found = f"step {stream.step} of layer {layer} after step {last}"
        raise ProtocolError(Rule.STEP, 0, 0, text, found, f"step {last} or later")


def check_frame(stream: CommandStream, device: DeviceConfig, layer: int) -> None:
    """Raises FrameError for a stream of another device, or a layer beyond it."""
    frame = stream.frame

    def ask(holds: bool, parameter: str, value: object, accepted: str) -> None:
        if not holds:
            raise FrameError(parameter, value, accepted)

    for name in ("banks", "lanes", "bursts_per_row"):
        due = getattr(device, name)
        ask(getattr(frame, name) == due, name, getattr(frame, name), str(due))
    least = min(frame.heads, frame.groups, frame.channels_per_head, frame.folds)
    ask(least >= 1, "heads, groups, channels per head or folds", least, "from 1")
    used = frame.groups * frame.channels_per_head
    ask(used <= device.channels, "channels", used, f"up to {device.channels}")
    places = frame.groups * frame.folds
    ask(frame.heads <= places, "heads", frame.heads, f"up to groups * folds, {places}")
    rows = frame.folds * frame.rows_per_plane
    ask(1 <= rows <= device.rows, "rows of a layer", rows, f"1 to {device.rows}")
    layers = device.rows // rows
    ask(0 <= layer < layers, "layer", layer, f"0 to {layers - 1}")
    lengths = {name: len(column) for name, column in stream.columns().items()}
    equal = set(lengths.values()) == {len(stream)}
    ask(equal, "column lengths", lengths, "equal lengths")
    known = not len(stream) or int(stream.op.max()) < len(Op)
    ask(known, "op", stream.op.max(initial=0), f"0 to {len(Op) - 1}")


def check_payload(stream: CommandStream, payload: Payload) -> None:
    """Raises PayloadError where the host data do not have the stream's shape."""
    frame, table, index = stream.frame, payload.table, payload.index
    due = (frame.heads, frame.lanes)
    if table.ndim != 3 or table.shape[1:] != due:
        raise PayloadError("table shape", table.shape, f"(bursts, {due[0]}, {due[1]})")
    if table.dtype != np.uint16:
        raise PayloadError("table type", str(table.dtype), "uint16")
    bursts = int(stream.payload_offsets()[-1])
    if index.shape != (bursts,):
        raise PayloadError("index shape", index.shape, f"({bursts},)")
    if bursts and not 0 <= index.min() <= index.max() < len(table):
        wrong = index[(index < 0) | (index >= len(table))][0]
        raise PayloadError("index", int(wrong), f"0 to {len(table) - 1}")


# --- one command after another --------------------------------------------------------


def first_violation(
    stream: CommandStream, device: DeviceConfig
) -> ProtocolError | None:
    """The first command that breaks a rule, or None; the frame must suit."""
    state = _State(stream, device)
    for single in single_commands(stream):
        for rule, check in state.checks.items():
            problem = check(single)
            if problem is not None:
                text = str(single)
                return ProtocolError(rule, single.number, single.entry, text, *problem)
        state.follow(single)
    return None


Problem = tuple[str, str]  # what was found, what would be accepted
Span = tuple[str, int, int, int]  # name, first, count, limit


class _State:
    """The channels of one head while a stream goes by; all heads are in the same."""

    def __init__(self, stream: CommandStream, device: DeviceConfig) -> None:
        self.stream = stream
        self.device = device
        channels = range(stream.frame.channels_per_head)
        closed: list[int | None] = [None] * device.banks
        self.open_row = [closed.copy() for _ in channels]
        self.loaded: list[set[int]] = [set() for _ in channels]
        self.ready: list[set[int]] = [set() for _ in channels]
        self.returned = stream.read_offsets()
        self.checks = {
            Rule.ADDRESS: self._address,
            Rule.FUNCTION: self._function,
            Rule.COLUMN: self._column,
            Rule.MASK: self._mask,
            Rule.SOURCE: self._source,
            Rule.ROW: self._row,
            Rule.OPERAND: self._operand,
            Rule.REGISTER: self._register,
        }

    def follow(self, single: Single) -> None:
        """The state after the command."""
        for channel in single.channels:
            if single.op == Op.ACT:
                rows = [single.whole.row] * single.whole.banks
                self.open_row[channel][single.banks] = rows
            elif single.op in LOADS:
                self.loaded[channel].add(single.buffer)
            elif single.op == Op.WRBIAS:
                self.ready[channel].add(single.whole.register)
            elif single.op == Op.RDMAC:
                self.ready[channel].remove(single.whole.register)

    def _address(self, single: Single) -> Problem | None:
        for name, first, count, limit in self._spans(single):
            if count < 1 or first < 0 or first + count > limit:
                return f"{name} {first}+{count}", f"1 or more of 0 to {limit - 1}"
        banks = single.whole.banks
        if single.op in ALL_BANKS and banks != self.device.banks:
            return f"{banks} banks", f"all {self.device.banks} banks"
        if single.op in ONE_BANK and banks != 1:
            return f"{banks} banks", "one bank"
        return None

    def _spans(self, single: Single) -> Iterator[Span]:
        """What the command addresses."""
        op, whole, device = single.op, single.whole, self.device
        yield "channel", whole.channel, whole.channels, len(self.open_row)
        if op in ALL_BANKS | ONE_BANK | SOME_BANKS:
            yield "bank", single.bank, single.banks.stop - single.bank, device.banks
        if op in OPEN_ROW | {Op.ACT}:
            yield "row", whole.row, 1, self.stream.frame.rows_per_plane
        if op in OPEN_ROW:
            yield "burst", single.burst, 1, device.bursts_per_row
        if op in OWN_BUFFER | NAMED_BUFFER:
            yield "buffer burst", single.buffer, 1, device.bursts_per_row
        if op in REGISTERS:
            yield "register", whole.register, 1, device.result_registers
        if op == Op.WR and whole.lanes:
            yield "lane", 0, whole.lanes.bit_length(), device.lanes

    def _function(self, single: Single) -> Problem | None:
        if single.op == Op.RDAF:
            return "the device has no activation function", "RDMAC"
        if single.op == Op.MACSV:
            return "the device has no outer-product unit", "MACAB"
        return None

    def _column(self, single: Single) -> Problem | None:
        free = self.device.copy_column == "free"
        if single.op not in NAMED_BUFFER or free or single.buffer == single.burst:
            return None
        found = f"a copy between burst {single.burst} and {single.buffer}"
        return found, "the same burst of bank and Global Buffer"

    def _mask(self, single: Single) -> Problem | None:
        if single.op != Op.WR:
            return None
        lanes, fill = single.whole.lanes, single.whole.fill
        if lanes is None or fill is None:
            return "a write without columns for lanes and fill", "both"
        if self.device.write_masks or fill or lanes == 2**self.device.lanes - 1:
            return None
        return "a write of single lanes", "whole bursts: the device has no write masks"

    def _source(self, single: Single) -> Problem | None:
        if single.op != Op.WR or self.stream.source == "host":
            return None
        if self.stream.source == "copy":
            return "a write in a stream of copies", "WRCP"
        whole = single.whole
        first = whole.reference + single.place
        last = first + (whole.channels - 1) * whole.banks * whole.count
        returned = int(self.returned[single.entry])
        if 0 <= first and last < returned:
            return None
        return f"bursts {first} to {last} of the reads", f"0 to {returned - 1}"

    def _row(self, single: Single) -> Problem | None:
        if single.op not in OPEN_ROW:
            return None
        due = single.whole.row
        for channel in single.channels:
            rows = self.open_row[channel][single.banks]
            if rows.count(due) != len(rows):
                other = next(row for row in rows if row != due)
                state = "no row" if other is None else f"row {other}"
                return f"{state} open in channel {channel}", f"row {due} open"
        return None

    def _operand(self, single: Single) -> Problem | None:
        if single.op not in OPERANDS:
            return None
        for channel in single.channels:
            if single.buffer not in self.loaded[channel]:
                found = f"Global Buffer burst {single.buffer} of channel {channel}"
                return f"{found} not loaded", "WRGB or RDCP before"
        return None

    def _register(self, single: Single) -> Problem | None:
        if single.op not in {Op.MACAB, Op.RDMAC}:
            return None
        register = single.whole.register
        for channel in single.channels:
            if register not in self.ready[channel]:
                found = f"register {register} of channel {channel}"
                return f"{found} not initialised", "WRBIAS before"
        return None
