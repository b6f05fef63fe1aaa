"""From the placements of a step to the command streams that carry it out (layout 5).

A stream depends on placements only: it serves all layers and all heads.
"""

from __future__ import annotations

from typing import get_args

import attrs

from patton.arguments import expect, is_one_of
from patton.commands import CommandStream
from patton.config import CommitWay
from patton.errors import ArgumentError
from patton.generate.commits import commit_stream
from patton.generate.readback import readback_streams
from patton.generate.schedule import PAPER, Order, Schedule, best_schedule
from patton.generate.scores import score_stream
from patton.generate.values import partial_stream, value_stream
from patton.generate.writes import key_writes, value_writes
from patton.steps import PlacedStep

__all__ = [
    "PAPER",
    "Order",
    "Schedule",
    "StepStreams",
    "best_schedule",
    "commit_stream",
    "generate_step",
    "key_writes",
    "partial_stream",
    "readback_streams",
    "score_stream",
    "value_stream",
    "value_writes",
]


@attrs.frozen(eq=False)
class StepStreams:
    """The streams of a step in the order of their execution; None where one is empty.

    Per layer all writes come before all reads, and commits are last (layout 4).
    """

    key_write: CommandStream | None
    value_write: CommandStream | None
    read_key: CommandStream | None
    read_value: CommandStream | None
    qk: CommandStream | None
    sv: CommandStream | None
    partial: CommandStream | None
    commit: CommandStream | None

    def present(self) -> list[CommandStream]:
        """The streams that are not empty, in the order of their execution."""
        streams = attrs.astuple(self, recurse=False)
        return [stream for stream in streams if stream is not None]


def generate_step(
    placed: PlacedStep,
    *,
    commit_way: CommitWay | None = None,
    schedule: Schedule = PAPER,
) -> StepStreams:
    """All streams of a step; commit_way as in `commit_stream`.

    schedule: the paper's, or for instance `best_schedule` of the device.
    """
    expect("generate_step", "placed", placed, PlacedStep)
    expect("generate_step", "schedule", schedule, Schedule)
    if commit_way is not None and not is_one_of(commit_way, get_args(CommitWay)):
        accepted = " or ".join(get_args(CommitWay))
        raise ArgumentError("generate_step", "commit_way", commit_way, accepted)
    read_key, read_value = readback_streams(placed)
    return StepStreams(
        key_write=key_writes(placed, schedule),
        value_write=value_writes(placed, schedule),
        read_key=read_key,
        read_value=read_value,
        qk=score_stream(placed, schedule),
        sv=value_stream(placed, schedule),
        partial=partial_stream(placed, schedule),
        commit=commit_stream(placed, commit_way, schedule),
    )
