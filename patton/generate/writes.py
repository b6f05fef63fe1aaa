"""Writes of the Keys and Values of a step's new tokens (Paper 4.3 and 4.4, layout 5).

By default rows are visited in ascending order, each once, whoever wrote to it, so that
tokens of many requests in one Commit Zone row share its activation.
"""

from __future__ import annotations

import numpy as np

from patton.commands import CommandStream, Op, Phase
from patton.generate.assembly import frame_of
from patton.generate.rectangles import (
    Rectangles,
    Segments,
    key_axes,
    key_rectangles,
    row_entries,
    value_axes,
    value_rectangles,
    whole_bursts,
)
from patton.generate.schedule import PAPER, Schedule
from patton.steps import PlacedStep

WRITE_COLUMNS = ("element", "lanes", "fill")


def key_writes(placed: PlacedStep, schedule: Schedule = PAPER) -> CommandStream | None:
    """The stream that writes Keys: whole bursts, zero from head_dim on.

    Tokens are in the order of the step's write segments. None if nothing is written.
    """
    segments, layout = written(placed), placed.layout
    if not len(segments.start):
        return None
    rectangles = key_rectangles(layout, segments)
    if schedule.write_rows == "grouped":
        rectangles = rectangles.by_row()
    entries = row_entries(frame_of(layout), rectangles, Op.WR, WRITE_COLUMNS)
    return entries.stream(
        placed, Phase.KEY_WRITE, axes=key_axes(layout), tokens=segments.tokens()
    )


def value_writes(
    placed: PlacedStep, schedule: Schedule = PAPER
) -> CommandStream | None:
    """The stream that writes Values, to slots or O1V; None if nothing is written.

    Tokens are in the order of the step's write segments. On a device without write
    masks a burst is written whole every time, so the tokens before a segment in its
    first burst precede it in the table, and the host supplies their Values again.
    """
    segments, layout = written(placed), placed.layout
    if not len(segments.start):
        return None
    if not layout.device.write_masks:
        segments = whole_bursts(layout, segments)
    rectangles = scheduled(value_rectangles(layout, segments), schedule)
    entries = row_entries(frame_of(layout), rectangles, Op.WR, WRITE_COLUMNS)
    return entries.stream(
        placed, Phase.VALUE_WRITE, axes=value_axes(layout), tokens=segments.tokens()
    )


def scheduled(rectangles: Rectangles, schedule: Schedule) -> Rectangles:
    """Values in the order in which a schedule writes them."""
    if schedule.write_rows == "grouped":
        rectangles = rectangles.by_row()
    if schedule.write_order == "bank-major":
        rectangles = rectangles.bank_by_bank()
    return rectangles


def written(placed: PlacedStep) -> Segments:
    """The step's write segments, in the engine's order."""
    return Segments(
        granule=placed.write_granule,
        slot=placed.write_slot,
        start=placed.write_start,
        count=placed.write_count,
        request=placed.write_request,
        position=placed.write_position,
        batch=np.zeros_like(placed.write_start),
    )
