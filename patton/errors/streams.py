"""Streams, their payloads, execution and results."""

from __future__ import annotations

from typing import ClassVar

import attrs

from patton.errors.base import PattonError


@attrs.define
class StreamError(PattonError):
    """Text that is no command stream.

    line: its number from 1; problem: what stands there or is missing.
    """

    template: ClassVar[str] = "line {line}: {problem}; accepted: {accepted}"

    line: int
    problem: str
    accepted: str


@attrs.define
class ExecutionError(PattonError):
    """A stream that an executor refuses; it has executed none of it."""


@attrs.define
class ProtocolError(ExecutionError):
    """A command that a device in its state cannot obey.

    rule: the broken rule in a word; index: of the command, counted over the stream's
    single commands; entry: of the stream; command: the single command.
    """

    template: ClassVar[str] = (
        "command {index} (entry {entry}, {command}): {found}; accepted: {accepted}"
    )

    rule: str
    index: int
    entry: int
    command: str
    found: str
    accepted: str


@attrs.define
class FrameError(ExecutionError):
    """A stream that was made for another device, or a layer beyond the rows."""

    template: ClassVar[str] = "stream with {parameter} {value!r}; accepted: {accepted}"

    parameter: str
    value: object
    accepted: str


@attrs.define
class PayloadError(ExecutionError):
    """Host data that do not fit the stream that they are sent with."""

    template: ClassVar[str] = "payload with {parameter} {value!r}; accepted: {accepted}"

    parameter: str
    value: object
    accepted: str


@attrs.define
class UnwrittenResultError(PattonError):
    """A result that is used was made from cells that were never written.

    phase: of the stream; request: its index in the step; start, end: the token
    positions in question; head: the Key and Value head.
    """

    template: ClassVar[str] = (
        "{phase} of step {step}: head {head} of request number {request}, positions "
        "from {start} before {end}, gives a result that rests on unwritten cells"
    )

    phase: str
    step: int
    request: int
    start: int
    end: int
    head: int


@attrs.define
class ValidationError(PattonError):
    """A stream that does something else than its step asks for: a defect, report it.

    index: of the command that shows it, counted over the stream's single commands (the
    number of all of them where a command is missing); entry: of the stream; command: in
    readable form; output: what comes out wrong; fault: the kind, in words.
    """

    template: ClassVar[str] = (
        "{phase} of step {step}, command {index} (entry {entry}, {command}): {output}: "
        "{fault}: {found}; due: {due}"
    )

    phase: str
    step: int
    index: int
    entry: int
    command: str
    output: str
    fault: str
    found: str
    due: str


@attrs.define
class TraceError(PattonError):
    """A line of a trace that the simulator would refuse or misread.

    source: the file; line: counted from 1; text: the line itself.
    """

    template: ClassVar[str] = (
        "{source}, line {line}: {problem}; accepted: {accepted}; read: {text!r}"
    )

    source: str
    line: int
    text: str
    problem: str
    accepted: str


@attrs.define
class StalledTraceError(PattonError):
    """A trace on which the simulated controller would wait for ever.

    cycle: the last cycle in which anything happened; line: index of the instruction
    that cannot proceed.
    """

    template: ClassVar[str] = (
        "instruction {line} on channel {channel} waits for ever from cycle {cycle}: it "
        "and activated requests before it close each other's rows"
    )

    line: int
    channel: int
    cycle: int
