"""Every error that PATTON raises on purpose.

A class declares its data as positional attrs fields and one `template` over them;
`str()` fills the template, so that the text names the offending value and what would
be accepted, and a program reads the same from the fields. Fields are never keyword-only
and are stored as given: that keeps every error picklable and its arguments in `args`.
"""

from __future__ import annotations

from patton.errors.base import ArgumentError, PattonError
from patton.errors.configuration import (
    ConfigError,
    DeviceConfigError,
    LayoutError,
    ModelConfigError,
)
from patton.errors.placement import (
    BlockRangeError,
    BlockStateError,
    EventError,
    InconsistencyError,
    OutOfPairsError,
    OutOfRowsError,
    PairRangeError,
    PlacementError,
    RequestError,
    SharedBlockError,
    SnapshotError,
    StaleBindingError,
    StepOrderError,
    UnwrittenReadError,
)
from patton.errors.serving import (
    BlockPoolError,
    EngineError,
    EngineStateError,
    MismatchError,
    RequestTooLargeError,
    SchedulerOutputError,
    UnwrittenHitError,
    WorkloadError,
)
from patton.errors.simulators import SimulatorError
from patton.errors.streams import (
    ExecutionError,
    FrameError,
    PayloadError,
    ProtocolError,
    StalledTraceError,
    StreamError,
    TraceError,
    UnwrittenResultError,
    ValidationError,
)

__all__ = [
    "ArgumentError",
    "BlockPoolError",
    "BlockRangeError",
    "BlockStateError",
    "ConfigError",
    "DeviceConfigError",
    "EngineError",
    "EngineStateError",
    "EventError",
    "ExecutionError",
    "FrameError",
    "InconsistencyError",
    "LayoutError",
    "MismatchError",
    "ModelConfigError",
    "OutOfPairsError",
    "OutOfRowsError",
    "PairRangeError",
    "PattonError",
    "PayloadError",
    "PlacementError",
    "ProtocolError",
    "RequestError",
    "RequestTooLargeError",
    "SchedulerOutputError",
    "SharedBlockError",
    "SimulatorError",
    "SnapshotError",
    "StaleBindingError",
    "StalledTraceError",
    "StepOrderError",
    "StreamError",
    "TraceError",
    "UnwrittenHitError",
    "UnwrittenReadError",
    "UnwrittenResultError",
    "ValidationError",
    "WorkloadError",
]
