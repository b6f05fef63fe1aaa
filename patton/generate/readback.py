"""Read-back: Keys and Values of cached positions returned to the host (layout 5).

Prefill behind a prefix hit needs them there. Tokens are listed range by range in
logical order; commands go range by range, and inside a range by row.
"""

from __future__ import annotations

import numpy as np

from patton.commands import Axes, CommandStream, Op, Phase
from patton.generate.assembly import frame_of
from patton.generate.ragged import changes
from patton.generate.rectangles import (
    Rectangles,
    Segments,
    key_axes,
    key_rectangles,
    row_entries,
    value_axes,
    value_rectangles,
)
from patton.generate.seen import Reads, see, table_blocks
from patton.steps import PlacedStep

READ_COLUMNS = ("element", "lanes")


def readback_streams(
    placed: PlacedStep,
) -> tuple[CommandStream | None, CommandStream | None]:
    """The streams that read Keys and Values back; None where nothing is read."""
    if not len(placed.readback_request):
        return None, None
    segments, layout = _segments(placed), placed.layout
    keys, values = key_rectangles(layout, segments), value_rectangles(layout, segments)

    frame = frame_of(layout)

    def stream(phase: Phase, rectangles: Rectangles, axes: Axes) -> CommandStream:
        entries = row_entries(frame, rectangles.by_row(), Op.RD, READ_COLUMNS)
        return entries.stream(placed, phase, axes=axes, tokens=segments.tokens())

    return (
        stream(Phase.READ_KEY, keys, key_axes(layout)),
        stream(Phase.READ_VALUE, values, value_axes(layout)),
    )


def _segments(placed: PlacedStep) -> Segments:
    """The blocks that the ranges cover, range by range."""
    reads = Reads(placed.readback_request, placed.readback_start, placed.readback_end)
    blocks = table_blocks(placed, reads)
    groups = changes(blocks.request)
    seen = see(reads, groups, blocks.request, blocks.position, blocks.opened)
    batch = seen.segment_read[seen.segment]
    order = np.argsort(batch, kind="stable")
    blocks, start = blocks[seen.index][order], seen.low[order]
    count = seen.high[order] - start
    assert count.sum() == (reads.end - reads.start).sum()
    return Segments(
        granule=blocks.granule,
        slot=blocks.slot,
        start=start,
        count=count,
        request=blocks.request,
        position=blocks.position + start,
        batch=batch[order],
    )
