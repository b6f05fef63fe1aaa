"""Counts of streams, as `PlacedStep.counts` says them of a step."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from patton.commands import CommandStream, Op, Phase
from patton.systems.system import Counts

PRODUCTS = (Op.MACAB, Op.MACSV)
ON_PINS = (Op.WRGB, Op.WRBIAS, Op.RDMAC, Op.RD, Op.WR)


def counts_of(
    streams: Iterable[CommandStream], burst_bytes: int
) -> dict[Phase, Counts]:
    """What each stream does, by its phase."""
    return {stream.phase: stream_counts(stream, burst_bytes) for stream in streams}


def stream_counts(stream: CommandStream, burst_bytes: int) -> Counts:
    """What a stream does in one layer, over all channels of all heads."""
    heads = stream.frame.heads
    commands = stream.command_counts() * stream.channels * heads
    return Counts(
        activations=stream.activations() * heads,
        macs=int(commands[np.isin(stream.op, PRODUCTS)].sum()),
        bytes=int(commands[np.isin(stream.op, ON_PINS)].sum()) * burst_bytes,
    )
