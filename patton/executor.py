"""What executes command streams, seen from the host: data in, results out."""

from __future__ import annotations

from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import CommandStream


@attrs.frozen(eq=False)
class Payload:
    """Host data of a stream.

    table: uint16 [bursts, heads, E], bit patterns of elements. index: int32, the table
    burst of each payload burst of the stream's entries, in stream order
    (`CommandStream.payload_offsets`); bursts that are sent often are stored once.
    """

    table: NDArray[np.uint16]
    index: NDArray[np.int32]


@attrs.frozen(eq=False)
class Results:
    """What a stream returned, zero and unwritten where it was stopped before.

    mac: uint16 [rows, heads, B], a row per channel of every RDMAC
    (`CommandStream.mac_offsets`); mac_written: bool, whether every lane that was
    accumulated into the value had been written. read: uint16 [bursts, heads, E]
    (`CommandStream.read_offsets`); read_written: bool, per lane.
    """

    mac: NDArray[np.uint16]
    mac_written: NDArray[np.bool_]
    read: NDArray[np.uint16]
    read_written: NDArray[np.bool_]

    @classmethod
    def empty(cls, stream: CommandStream) -> Results:
        """The results of a stream of which nothing was executed yet."""
        frame = stream.frame
        macs = int(stream.mac_offsets()[-1]), frame.heads, frame.banks
        reads = int(stream.read_offsets()[-1]), frame.heads, frame.lanes
        return cls(
            np.zeros(macs, np.uint16),
            np.zeros(macs, np.bool_),
            np.zeros(reads, np.uint16),
            np.zeros(reads, np.bool_),
        )


class Executor(Protocol):
    """A device that holds Key and Value: a model of one, a simulator, a real one."""

    def run(
        self,
        stream: CommandStream,
        payload: Payload,
        *,
        layer: int = 0,
        stop: int | None = None,
    ) -> Results:
        """Execute a stream for all heads of one layer.

        stop: flat number of the command to stop before, as if interrupted there; over
        several folds the numbers go on, fold after fold.

        Raises an ExecutionError before it executes anything.
        """
        ...
