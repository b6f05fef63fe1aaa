"""Events that the runtime refuses, and state that contradicts itself."""

from __future__ import annotations

from typing import ClassVar

import attrs

from patton.errors.base import PattonError


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
class PairRangeError(PlacementError):
    """A pair that the device does not have."""

    template: ClassVar[str] = "pair {pair!r} does not exist; accepted: 0 to {last}"

    pair: object
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
class OutOfRowsError(PlacementError):
    """No rows for more tokens of a request (`patton.systems`).

    needed: rows; free: in the channels that have most of them; longest: tokens that a
    request may have in any case.
    """

    template: ClassVar[str] = (
        "{system}: request {request!r} needs {needed} more rows, or is too long; "
        "accepted: {free} rows, {longest} tokens"
    )

    system: str
    request: object
    needed: int
    free: int
    longest: int


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
    """Placements of a step, asked for after the runtime had gone on.

    current: the step that the runtime is at.
    """

    template: ClassVar[str] = (
        "placements of step {step} are asked for too late, the runtime went on (it is "
        "at step {current}); accepted: StepPlan.place() right after apply_step()"
    )

    step: int
    current: int


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


@attrs.define
class EventError(PattonError):
    """An event log that cannot be replayed."""

    template: ClassVar[str] = "line {line}: {problem}; accepted: {accepted}"

    line: int
    problem: str
    accepted: str
