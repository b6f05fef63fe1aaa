"""The first illegal entry of a whole stream, found at once.

The rules are those of `patton.device.rules`, which takes one command after another and
names the command; this is its counterpart for streams of a million entries.
"""

from __future__ import annotations

import numpy as np

from patton.commands import CommandStream, Op
from patton.config import DeviceConfig
from patton.device import rules
from patton.device.cells import (
    Flags,
    Ints,
    Whole,
    last_before,
    split_points,
    spread_over,
)


def check(stream: CommandStream, device: DeviceConfig) -> None:
    """Raises ProtocolError for the first command that breaks a rule."""
    entry = first_bad_entry(stream, device)
    if entry is not None:
        violation = rules.first_violation(stream, device)
        assert violation is not None
        assert violation.entry == entry
        raise violation


def first_bad_entry(stream: CommandStream, device: DeviceConfig) -> int | None:
    """The first entry with a command that breaks a rule, or None."""
    has_commands = stream.command_counts() > 0
    bad = np.flatnonzero(_bad_fields(stream, device) & has_commands)
    end = int(bad[0]) if len(bad) else len(stream)
    # What comes before is inside the device, so that state can be looked up.
    before = _Prefix(stream, has_commands[:end])
    first = min(end, before.bad_row(), before.bad_operand(), before.bad_register())
    return first if first < len(stream) else None


def is_op(stream: CommandStream, ops: frozenset[Op]) -> Flags:
    """Which entries are of these kinds [entries]."""
    table = np.zeros(len(Op), np.bool_)
    table[list(ops)] = True
    flags: Flags = table[stream.op]
    return flags


def buffer_first(stream: CommandStream) -> Ints:
    """First Global Buffer burst of each entry, where it has one [entries]."""
    named = is_op(stream, rules.NAMED_BUFFER)
    return np.where(named, stream.reference, stream.burst).astype(np.int64)


# --- what an entry alone shows --------------------------------------------------------


def _bad_fields(stream: CommandStream, device: DeviceConfig) -> Flags:
    bad: Flags = _bad_address(stream, device) | is_op(stream, rules.FOREIGN)
    copies = is_op(stream, rules.NAMED_BUFFER)
    if device.copy_column == "same":
        bad |= copies & (stream.reference != stream.burst)
    writes = stream.op == Op.WR
    if not writes.any():
        return bad
    if stream.lanes is None or stream.fill is None or stream.source == "copy":
        bad |= writes
        return bad
    if not device.write_masks:
        full = np.uint64(2**device.lanes - 1)
        bad |= writes & ~stream.fill & (stream.lanes != full)
    if stream.source == "read-back":
        first = stream.reference.astype(np.int64)
        end = first + _rectangle(stream)
        bad |= writes & ((first < 0) | (end > stream.read_offsets()[:-1]))
    return bad


def _bad_address(stream: CommandStream, device: DeviceConfig) -> Flags:
    frame, count = stream.frame, stream.count
    bad: Flags = _outside(stream.channel, stream.channels, frame.channels_per_head)
    bad |= stream.channels == 0
    some_banks = is_op(stream, rules.SOME_BANKS)
    bad |= some_banks & _outside(stream.bank, stream.banks, device.banks)
    bad |= (stream.op == Op.ACT) & (stream.banks == 0)
    all_banks = is_op(stream, rules.ALL_BANKS)
    bad |= all_banks & ((stream.bank != 0) | (stream.banks != device.banks))
    one_bank = is_op(stream, rules.ONE_BANK)
    bad |= one_bank & ((stream.bank >= device.banks) | (stream.banks != 1))
    with_row = is_op(stream, rules.OPEN_ROW | {Op.ACT})
    bad |= with_row & (stream.row >= frame.rows_per_plane)
    with_burst = is_op(stream, rules.OPEN_ROW)
    bad |= with_burst & _outside(stream.burst, count, device.bursts_per_row)
    with_buffer = is_op(stream, rules.OWN_BUFFER | rules.NAMED_BUFFER)
    first = buffer_first(stream)
    outside = (first < 0) | _outside(first, count, device.bursts_per_row)
    bad |= with_buffer & outside
    with_register = is_op(stream, rules.REGISTERS)
    bad |= with_register & (stream.register >= device.result_registers)
    if stream.lanes is not None and device.lanes < stream.lanes.dtype.itemsize * 8:
        beyond = stream.lanes >> np.uint64(device.lanes) != 0
        bad |= (stream.op == Op.WR) & beyond
    return bad


def _outside(first: Whole, count: Whole, limit: int) -> Flags:
    flags: Flags = first.astype(np.int64) + count > limit
    return flags


def _rectangle(stream: CommandStream) -> Ints:
    banks = stream.channels.astype(np.int64) * stream.banks
    return banks * stream.count


# --- what its predecessors show -------------------------------------------------------


class _Prefix:
    """The entries before one that is known to be bad, all with proper addresses."""

    def __init__(self, stream: CommandStream, has_commands: Flags) -> None:
        self.stream = stream
        self.end = len(has_commands)
        self.has_commands = has_commands
        # Channels that every entry treats alike are looked at once.
        used = slice(0, self.end)
        self.points = split_points(stream.channel[used], stream.channels[used])

    def bad_row(self) -> int:
        """First entry for a row that is not open in all of its banks."""
        stream = self.stream
        touching = rules.OPEN_ROW | {Op.ACT}
        entry, place = self._places(touching, stream.bank, stream.banks)
        opening = stream.op[entry] == Op.ACT
        last = last_before(place, opening)
        is_open = (last >= 0) & (stream.row[entry[last]] == stream.row[entry])
        return self._first(entry[~opening & ~is_open])

    def bad_operand(self) -> int:
        """First entry for a Global Buffer burst that was not loaded."""
        stream = self.stream
        touching = rules.LOADS | rules.OPERANDS
        first = buffer_first(stream)
        entry, place = self._places(touching, first, stream.count)
        loading = is_op(stream, rules.LOADS)[entry]
        last = last_before(place, loading)
        return self._first(entry[~loading & (last < 0)])

    def bad_register(self) -> int:
        """First entry for a register that was not initialised since it was read."""
        stream = self.stream
        one = np.ones_like(stream.count)
        entry, place = self._places(rules.REGISTERS, stream.register, one)
        op = stream.op[entry]
        last = last_before(place, op != Op.MACAB)
        ready = (last >= 0) & (op[last] == Op.WRBIAS)
        return self._first(entry[(op != Op.WRBIAS) & ~ready])

    def _places(
        self, ops: frozenset[Op], first: Whole, count: Whole
    ) -> tuple[Ints, Ints]:
        """Entries of these kinds over the channels and places that they touch."""
        stream = self.stream
        chosen = np.flatnonzero(is_op(stream, ops)[: self.end] & self.has_commands)
        channels = spread_over(
            self.points, stream.channel[chosen], stream.channels[chosen]
        )
        entry = chosen[channels.source]
        points = split_points(first[chosen], count[chosen])
        places = spread_over(points, first[entry], count[entry])
        channel = channels.value[places.source]
        width = max(1, len(points))
        return entry[places.source], channel * width + places.value

    def _first(self, entries: Ints) -> int:
        return int(entries.min(initial=self.end))
