"""Workloads, the engine and checked runs."""

from __future__ import annotations

from typing import ClassVar

import attrs

from patton.errors.base import PattonError


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


@attrs.define
class SchedulerOutputError(EngineError):
    """A step of vLLM's scheduler that cannot be placed."""

    template: ClassVar[str] = "scheduler output: {field}: {value}; accepted: {accepted}"

    field: str
    value: str
    accepted: str


@attrs.define
class UnwrittenHitError(EngineError):
    """A prefix hit on a block whose tokens were never computed.

    An engine that caches a block when it schedules it, and then drops the step's
    tokens, hits it later all the same. written: tokens of the block.
    """

    template: ClassVar[str] = (
        "request {request!r} hits block {block} in step {step}, of which only "
        "{written} tokens were ever written; accepted: a block that is full, or filled "
        "in this step"
    )

    request: object
    block: int
    step: int
    written: int


@attrs.define
class MismatchError(PattonError):
    """The device and the reference disagree: a defect, report it.

    found, expected: the two values, in words.
    """

    template: ClassVar[str] = (
        "{what} of request {request} in step {step}, layer {layer}: the device gives "
        "{found}, the reference {expected}"
    )

    what: str
    request: int
    step: int
    layer: int
    found: str
    expected: str
