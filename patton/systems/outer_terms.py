"""What outer products add up to: as `patton.systems.terms`, for modified units."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import numpy as np

from patton.commands import CommandStream, Op
from patton.device.cells import Ints
from patton.device.provenance.faults import fault_at
from patton.device.provenance.tags import UNWRITTEN, Fault, Kind, tags_of, token_of
from patton.device.provenance.vectors import NO_COMPONENT, operands_of
from patton.systems.outer import OuterUnit
from patton.systems.terms import Known, QueryTable, Window


@attrs.frozen(eq=False)
class _Sum:
    """What a channel has added up since its registers were cleared [bursts].

    row, burst: in memory; vector, position [bursts, parts]: of the weights.
    """

    row: Ints
    burst: Ints
    vector: Ints
    position: Ints


@attrs.frozen
class _Result:
    """A register that was read: of which channel, for what, by which command."""

    number: int
    channel: int
    register: int
    vector: int
    component: int
    sum: _Sum


def check_outer_outputs(
    stream: CommandStream, windows: Sequence[Window], known: Known, unit: OuterUnit
) -> None:
    """Every output is the sum of all visible Values, each once, and nothing else.

    Raises ValidationError.
    """
    frame = stream.frame
    queries = QueryTable.of(stream, known, known.heads // frame.heads)
    asked = len(queries.start) // unit.parts  # results are under the first part
    longest = int(queries.end.max())
    shape = asked * frame.heads_per_kv, unit.registers, longest
    times = np.zeros(shape, np.int64)
    for result in _results(stream, unit):
        query, head = divmod(result.vector, frame.heads_per_kv)
        own = result.sum.burst % unit.token_bursts == result.register // unit.lanes
        vector, position = result.sum.vector[own], result.sum.position[own]
        part = np.arange(unit.parts)
        wanted = (query + asked * part) * frame.heads_per_kv + head
        start, end = int(queries.start[query]), int(queries.end[query])
        good = (vector == wanted).all() and (position == position[:, :1]).all()
        good = good and query < asked and result.component == result.register
        if not good or (position < start).any() or (position >= end).any():
            due = "weights of its own query, in all parts of one token"
            raise _fault(stream, result, Fault.OPERAND, "another operand", due)
        np.add.at(times, (result.vector, result.register, position[:, 0]), 1)
        request = np.full(len(position), queries.request[query])
        numbers = known.numbers(request, position[:, 0])
        for bundle, window in enumerate(windows):
            _compare(stream, unit, window, result, own, numbers + bundle * unit.parts)
    of_vector = np.arange(len(times)) // frame.heads_per_kv
    every = np.arange(longest)
    seen = every < queries.end[of_vector][:, None]
    seen &= every >= queries.start[of_vector][:, None]
    wrong = (times != 1) & seen[:, None]
    if wrong.any():
        found = int(times[wrong][0])
        fault = Fault.DOUBLED if found else Fault.MISSING
        raise fault_at(stream, None, "an output", fault, f"{found} times", "once")


def _compare(
    stream: CommandStream,
    unit: OuterUnit,
    window: Window,
    result: _Result,
    own: Ints,
    numbers: Ints,
) -> None:
    """The lane that a register sums up holds, in all banks, what is due."""
    row, burst = result.sum.row[own], result.sum.burst[own]
    places = (result.channel * window.rows + row) * window.bursts + burst
    found = window.read_banks(places)[:, :, result.register % unit.lanes]
    bank = np.arange(unit.banks)
    assert stream.results is not None
    component = result.component + bank * stream.results.bank_stride
    head_dim = stream.frame.head_dim // unit.parts
    part, element = np.divmod(component, head_dim)
    due = tags_of(numbers[:, None] + part, Kind.VALUE, element, head_dim)
    wrong = (found != due) | (part != bank // unit.banks_per_head)
    if wrong.any():
        tag = int(found[wrong][0])
        fault = Fault.UNWRITTEN if token_of(tag) == UNWRITTEN else Fault.FOREIGN
        due_words = "its own elements"
        raise _fault(stream, result, fault, f"tag {tag:#x}", due_words)


def _fault(
    stream: CommandStream, result: _Result, fault: Fault, found: str, due: str
) -> Exception:
    what = f"register {result.register} of channel {result.channel}"
    return fault_at(stream, result.number, what, fault, found, due)


def _results(stream: CommandStream, unit: OuterUnit) -> list[_Result]:
    """All results and what went into them, command by command."""
    table, heads = stream.results, stream.frame.heads_per_kv
    assert table is not None
    follower = _Follower(stream, unit)
    numbers = stream.command_offsets()
    found = []
    for entry, command in enumerate(stream.commands()):
        channels = range(command.channel, command.channel + command.channels)
        if command.op == Op.RDMAC:
            group, head = divmod(command.reference, heads)
            for offset, channel in enumerate(channels):
                at = group + offset * table.group_stride
                found.append(
                    _Result(
                        int(numbers[entry]),
                        channel,
                        command.register,
                        int(table.query[at]) * heads + head,
                        int(table.origin[at]) + offset * table.channel_stride,
                        follower.sum_of(channel, command.register),
                    )
                )
        else:
            follower.follow(entry, command.op, channels)
    return found


class _Follower:
    """Global Buffers and sums of all channels as a stream goes by."""

    def __init__(self, stream: CommandStream, unit: OuterUnit) -> None:
        self.stream, self.unit = stream, unit
        self.operands = operands_of(stream)
        self.first = stream.payload_offsets()
        shape = stream.frame.channels_per_head, unit.bursts_per_row
        self.vector = np.full(shape, -1)
        self.component = np.full(shape, NO_COMPONENT)
        self.added: list[list[_Sum]] = [[] for _ in range(shape[0])]
        # Of each register, what had been added when it was cleared.
        self.cleared: list[dict[int, int]] = [{} for _ in range(shape[0])]

    def follow(self, entry: int, op: Op, channels: range) -> None:
        """One entry that returns nothing."""
        stream = self.stream
        if op == Op.WRGB:
            low = int(stream.burst[entry])
            bursts = slice(low, low + int(stream.count[entry]))
            loaded = slice(int(self.first[entry]), int(self.first[entry + 1]))
            for channel in channels:
                self.vector[channel, bursts] = self.operands.vector[loaded]
                self.component[channel, bursts] = self.operands.component[loaded]
        elif op == Op.WRBIAS:
            register = int(stream.register[entry])
            for channel in channels:
                self.cleared[channel][register] = len(self.added[channel])
        elif op == Op.MACSV:
            for channel in channels:
                self.added[channel].append(self._products(entry, channel))

    def _products(self, entry: int, channel: int) -> _Sum:
        unit, stream = self.unit, self.stream
        first = int(stream.burst[entry])
        burst = np.arange(first, first + int(stream.count[entry]))
        group, lane = np.divmod(burst // unit.token_bursts, unit.lanes)
        part = np.arange(unit.parts) * (unit.tokens_per_row // unit.lanes)
        at = int(stream.reference[entry]) + group[:, None] + part
        row = np.full(len(burst), int(stream.row[entry]))
        position = self.component[channel, at] + lane[:, None]
        return _Sum(row, burst, self.vector[channel, at], position)

    def sum_of(self, channel: int, register: int) -> _Sum:
        """What a register holds."""
        none, parts = np.zeros(0, np.int64), (0, self.unit.parts)
        empty = _Sum(none, none, np.zeros(parts, np.int64), np.zeros(parts, np.int64))
        sums = [empty, *self.added[channel][self.cleared[channel][register] :]]
        columns = zip(*(attrs.astuple(s, recurse=False) for s in sums), strict=True)
        return _Sum(*(np.concatenate(column) for column in columns))
