"""Every error that PATTON raises on purpose.

A class declares its data as positional attrs fields and one `template` over them;
`str()` fills the template, so that the text names the offending value and what would
be accepted, and a program reads the same from the fields. Fields are never keyword-only
and are stored as given: that keeps every error picklable and its arguments in `args`.
"""

from __future__ import annotations

from typing import ClassVar

import attrs


@attrs.define
class PattonError(Exception):
    """Base of all errors of the library; a refused operation has changed nothing."""

    template: ClassVar[str] = "refused"

    def __str__(self) -> str:
        names = [field.name for field in attrs.fields(type(self))]
        return self.template.format_map({name: getattr(self, name) for name in names})


# --- configuration and layout ---------------------------------------------------


@attrs.define
class ConfigError(PattonError):
    """A parameter has a value that cannot be used.

    source: what was being configured (a preset, a file, "model on device");
    accepted: what would be accepted, in words.
    """

    template: ClassVar[str] = "{source}: {parameter} is {value!r}; accepted: {accepted}"

    source: str
    parameter: str
    value: object
    accepted: str


@attrs.define
class DeviceConfigError(ConfigError):
    """A device organisation, or the name of one, that does not exist."""


@attrs.define
class ModelConfigError(ConfigError):
    """A model shape, file or name from which no per-head K and V can be placed."""


@attrs.define
class LayoutError(ConfigError):
    """A model, device and block size that do not fit each other.

    fits: the nearest value of the parameter that fits, None if no value does.
    """

    fits: int | None = None


# --- placement and lifecycle ----------------------------------------------------


@attrs.define
class PlacementError(PattonError):
    """A lifecycle event that the runtime refuses; its state is as it was."""


@attrs.define
class BlockRangeError(PlacementError):
    """A block id outside the engine's range."""

    template: ClassVar[str] = "block {block!r} does not exist; accepted: 0 to {last}"

    block: object
    last: int


@attrs.define
class BlockStateError(PlacementError):
    """A block that is not in the state that the event needs."""

    template: ClassVar[str] = (
        "{event} of block {block}: it is {state}; accepted: {accepted}"
    )

    event: str
    block: int
    state: str
    accepted: str


@attrs.define
class OutOfPairsError(PlacementError):
    """No place for another block: the engine must evict, best from `candidates`.

    candidates: the first pairs that may be evicted, best first (possibly none), in the
    state that the events before this one left; a refused step has undone those events.
    """

    template: ClassVar[str] = (
        "no free pair for block {block} of request {request!r}; "
        "evict the blocks of one of the pairs {candidates} first"
    )

    request: object
    block: int
    candidates: tuple[int, ...]


@attrs.define
class SharedBlockError(PlacementError):
    """A write to a block that others may read, or that another request bound."""

    template: ClassVar[str] = (
        "request {request!r} writes position {position} in block {block}, which is "
        "{state}; accepted: a block that it bound itself and that was neither shared "
        "nor cached when step {step} began"
    )

    request: object
    position: int
    block: int
    state: str
    step: int


@attrs.define
class UnwrittenReadError(PlacementError):
    """A read of a token position that holds no Key and Value."""

    template: ClassVar[str] = (
        "request {request!r} reads position {position} of block {block} in step "
        "{step}, which was never written; written so far: {written} tokens of the block"
    )

    request: object
    position: int
    block: int
    step: int
    written: int


@attrs.define
class RequestError(PlacementError):
    """A request that is unknown, or an event that its state does not allow."""

    template: ClassVar[str] = (
        "{event} of request {request!r}: {value}; accepted: {accepted}"
    )

    event: str
    request: object
    value: str
    accepted: str


@attrs.define
class StepOrderError(PlacementError):
    """Work of one step used in another."""

    template: ClassVar[str] = "step {step} where step {expected} is due"

    step: int
    expected: int


@attrs.define
class StaleBindingError(PlacementError):
    """A block was bound anew after its placement was taken down."""

    template: ClassVar[str] = (
        "block {block} was taken down in epoch {epoch} and is now in epoch {current}"
    )

    block: int
    epoch: int
    current: int


@attrs.define
class InconsistencyError(PattonError):
    """`Runtime.check()` found state that contradicts itself: a defect, report it."""

    template: ClassVar[str] = "{what}: {found!r} where {expected!r} is due"

    what: str
    found: object
    expected: object


@attrs.define
class SnapshotError(PattonError):
    """Data that `Runtime.restore` cannot take; the runtime is as it was."""

    template: ClassVar[str] = "snapshot: {problem}; accepted: {accepted}"

    problem: str
    accepted: str


# --- AiM traces and their timing ------------------------------------------------


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
        "instruction {line} on channel {channel} waits for ever from cycle {cycle}: an "
        "activated request waits for a row that another closed, and may not reopen it"
    )

    line: int
    channel: int
    cycle: int


# --- workloads and the engine ---------------------------------------------------


@attrs.define
class WorkloadError(PattonError):
    """A workload file that cannot be read, told or used.

    line: counted from 1, 0 for the file as a whole.
    """

    template: ClassVar[str] = "{file}, line {line}: {problem}; accepted: {accepted}"

    file: str
    line: int
    problem: str
    accepted: str

    def __str__(self) -> str:
        text = super().__str__()
        return text if self.line else text.replace(", line 0:", ":", 1)


@attrs.define
class EngineError(PattonError):
    """Something that the serving engine refuses; its state is as it was."""


@attrs.define
class BlockPoolError(EngineError):
    """An event that does not fit the state of the block pool."""

    template: ClassVar[str] = "{event} of {value}; accepted: {accepted}"

    event: str
    value: str
    accepted: str


@attrs.define
class EngineStateError(EngineError):
    """A step scheduled or completed out of turn."""

    template: ClassVar[str] = (
        "{event}: {problem}; accepted: schedule, complete, in turn"
    )

    event: str
    problem: str


@attrs.define
class RequestTooLargeError(EngineError):
    """A request that does not fit even with all memory to itself."""

    template: ClassVar[str] = (
        "request {request} needs {needed_blocks} blocks; "
        "available, were it alone: {available_blocks}"
    )

    request: int
    needed_blocks: int
    available_blocks: int


# --- command streams ------------------------------------------------------------


@attrs.define
class StreamError(PattonError):
    """Text that is no command stream.

    line: its number from 1; problem: what stands there or is missing; accepted: in words.
    """

    template: ClassVar[str] = "line {line}: {problem}; accepted: {accepted}"

    line: int
    problem: str
    accepted: str


@attrs.define
class EventError(PattonError):
    """An event log that cannot be replayed."""

    template: ClassVar[str] = "line {line}: {problem}; accepted: {accepted}"

    line: int
    problem: str
    accepted: str


# --- execution ------------------------------------------------------------------


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


# --- reduction ------------------------------------------------------------------------


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
