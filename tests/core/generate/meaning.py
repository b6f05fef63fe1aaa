"""Entries of a stream with what they mean in place of references."""

from __future__ import annotations

from typing import Any

import numpy as np

from patton.commands import Command, CommandStream, Op
from tests.core.generate.plain import Entry


def entries(stream: CommandStream | None) -> list[Entry]:
    """The stream's entries in the form of the slow generator."""
    if stream is None:
        return []
    reads: list[Command] = []
    found = []
    for command in stream.commands():
        fields = {
            name: getattr(command, name)
            for name in ("op", "channel", "channels", "bank", "banks", "row", "burst")
        }
        if command.op in (Op.RD, Op.WR):
            fields["lanes"] = command.lanes
            fields["fill"] = command.fill if command.op is Op.WR else None
        meaning = _meaning(stream, command, reads)
        register, count = command.register, command.count
        found.append(Entry(**fields, count=count, register=register, meaning=meaning))
        if command.op is Op.RD:
            reads.append(command)
    return found


def _meaning(stream: CommandStream, command: Command, reads: list[Command]) -> Any:
    match command.op:
        case Op.WRGB:
            return _load(stream, command)
        case Op.RDMAC:
            return _result(stream, command)
        case Op.WR if stream.source == "read-back":
            return _data(stream, _origin(command, reads))
        case Op.WR | Op.RD:
            return _data(stream, command)
        case Op.RDCP | Op.WRCP:
            return command.reference
        case _:
            assert command.reference == 0
            return None


def _load(stream: CommandStream, command: Command) -> Any:
    assert stream.loads is not None
    loads, heads = stream.loads, stream.frame.heads_per_kv
    pattern, head = divmod(command.reference, heads)
    components = {}
    for run in range(loads.ptr[pattern], loads.ptr[pattern + 1]):
        for k in range(loads.count[run]):
            burst = int(loads.burst[run]) + k
            assert burst not in components
            components[burst] = int(loads.origin[run]) + k * stream.frame.lanes
    vector = int(loads.query[pattern]), head
    bursts = range(command.burst, command.burst + command.count)
    return [(vector, components[burst]) for burst in bursts]


def _result(stream: CommandStream, command: Command) -> Any:
    assert stream.results is not None
    table, heads = stream.results, stream.frame.heads_per_kv
    group, head = divmod(command.reference, heads)
    origin = int(table.origin[group])
    components = [
        [
            origin + k * table.channel_stride + b * table.bank_stride
            for b in range(command.banks)
        ]
        for k in range(command.channels)
    ]
    return (int(table.query[group]), head), components


def _data(stream: CommandStream, command: Command) -> Any:
    axes, first = stream.axes, command.element
    assert axes is not None
    assert first is not None
    assert stream.tokens is not None
    assert command.lanes is not None
    request, position = stream.tokens.request, stream.tokens.position
    shape = (command.channels, command.banks, command.count)
    lanes = [lane for lane in range(stream.frame.lanes) if command.lanes >> lane & 1]

    def datum(*offsets: int) -> Any:
        token = command.reference + int(np.dot(axes.token, offsets))
        element = first + int(np.dot(axes.element, offsets))
        assert token >= 0
        return (int(request[token]), int(position[token])), element

    return [
        [
            [[datum(k, b, burst, lane) for lane in lanes] for burst in range(shape[2])]
            for b in range(shape[1])
        ]
        for k in range(shape[0])
    ]


def _origin(command: Command, reads: list[Command]) -> Command:
    """The RD whose bursts a WR of a read-back writes."""
    ordinal = 0
    for read in reads:
        if ordinal == command.reference:
            same = ("channel", "channels", "bank", "banks", "count", "lanes")
            assert all(getattr(read, name) == getattr(command, name) for name in same)
            return read
        ordinal += read.channels * read.banks * read.count
    raise AssertionError(f"no read begins at burst {command.reference}")
