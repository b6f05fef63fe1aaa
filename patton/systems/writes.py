"""What a step writes, or reads back: rectangles of bursts, and streams that visit them.

Every channel visits its rows in ascending order, each once; the channels' first rows
come first, then their second, so that no channel waits for another's.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import Axes, CommandStream, Frame, Op, Phase, Strides, Tokens
from patton.generate.ragged import changes, merged, numbers, offsets, owners, ranges
from patton.generate.rectangles import Rectangles, row_entries
from patton.steps import Ints
from patton.systems.maps import Holdings, KeyMap, Map, Spots
from patton.systems.system import Counts

WRITE_COLUMNS, READ_COLUMNS = ("element", "lanes", "fill"), ("element", "lanes")


@attrs.frozen(eq=False)
class Segments:
    """Consecutive tokens of requests, written or read back; arrays [segments]."""

    request: Ints
    position: Ints
    count: Ints

    def tokens(self, spread: int) -> Tokens:
        """All tokens, segment by segment, and that for each part."""
        position = ranges(self.position, self.count)
        request = self.request.repeat(self.count) * spread
        part = np.arange(spread)[:, None]
        return Tokens((request + part).ravel(), np.tile(position, spread))


@attrs.frozen(eq=False)
class Pieces:
    """Segments cut into groups; arrays [pieces].

    low, high: tokens of the group; token: the index of the group's token 0 among all
    tokens of a part, of which there are `total`.
    """

    request: Ints
    group: Ints
    low: Ints
    high: Ints
    token: Ints
    total: int

    @classmethod
    def of(cls, segments: Segments, size: int) -> Pieces:
        """Groups are of `size` tokens."""
        end = segments.position + segments.count
        first = segments.position // size
        counts = (end - 1) // size + 1 - first
        owner, group = owners(counts), ranges(first, counts)
        base = offsets(segments.count)
        start = group * size
        return cls(
            segments.request[owner],
            group,
            np.maximum(segments.position[owner] - start, 0),
            np.minimum(end[owner] - start, size),
            base[:-1][owner] + start - segments.position[owner],
            int(base[-1]),
        )


def key_axes(frame: Frame) -> Axes:
    """Tokens over banks, elements along bursts and lanes."""
    return Axes(Strides(0, 1, 0, 0), Strides(0, 0, frame.lanes, 1))


def value_axes(frame: Frame) -> Axes:
    """Elements over channels and banks, tokens in lanes."""
    return Axes(Strides(0, 0, 0, 1), Strides(frame.banks, 1, 0, 0))


def key_rectangles(at: KeyMap, held: Holdings, segments: Segments) -> Rectangles:
    """A rectangle for each piece and part: a bank for each token, a Key's bursts."""
    frame = at.key_frame
    pieces = Pieces.of(segments, frame.banks)
    spots = at.keys(held, pieces.request, pieces.group)
    first = (pieces.token + pieces.low)[:, None]
    part = np.arange(spots.shape[1])
    return rectangles_of(
        spots,
        channels=1,
        bank=pieces.low[:, None],
        banks=(pieces.high - pieces.low)[:, None],
        count=np.array(-(-frame.head_dim // frame.lanes)),
        reference=first + pieces.total * part,
        element=np.array(0),
        lanes=np.array(2**frame.lanes - 1, np.uint64),
    )


def value_rectangles(at: Map, held: Holdings, segments: Segments) -> Rectangles:
    """A rectangle for each piece, part and piece of an element vector: a burst."""
    frame = at.value_frame
    pieces = Pieces.of(segments, frame.lanes)
    spots = at.values(held, pieces.request, pieces.group)
    below = np.array([2**lane - 1 for lane in range(frame.lanes + 1)], np.uint64)
    part = np.arange(spots.shape[1])[:, None]
    return rectangles_of(
        spots,
        channels=at.value_channels,
        bank=np.array(0),
        banks=np.array(frame.banks),
        count=np.array(1),
        reference=pieces.token[:, None, None] + pieces.total * part,
        element=at.elements,
        lanes=(below[pieces.high] & ~below[pieces.low])[:, None, None],
    )


def rectangles_of(
    spots: Spots, channels: int, **fields: NDArray[np.generic]
) -> Rectangles:
    """Rectangles in the order of a stream, from arrays that broadcast to one shape."""
    names = ("channel", "row", "burst", *fields)
    every = np.broadcast_arrays(*spots, *fields.values())
    columns = dict(zip(names, (np.ravel(column) for column in every), strict=True))
    channel, row = columns["channel"], columns["row"]
    order = np.lexsort((row, channel))
    channel, row = channel[order], row[order]
    visits = changes(channel, row)
    first = changes(channel[visits])
    visit = np.arange(len(visits)) - first[numbers(first, len(visits))]
    batch = np.empty_like(order)
    batch[order] = visit[numbers(visits, len(order))]
    order = np.lexsort((columns["channel"], batch))
    return Rectangles(
        batch=batch[order],
        channels=channels,
        **{name: column[order] for name, column in columns.items()},
    )


def burst_stream(
    rectangles: Rectangles,
    op: Op,
    *,
    phase: Phase,
    step: int,
    frame: Frame,
    axes: Axes,
    tokens: Tokens,
) -> CommandStream:
    """The stream of all rectangles: WR, or RD."""
    optional = WRITE_COLUMNS if op is Op.WR else READ_COLUMNS
    columns: dict[str, Any] = row_entries(frame, rectangles, op, optional).columns
    return CommandStream(
        phase=phase,
        step=step,
        frame=frame,
        axes=axes,
        tokens=tokens,
        **columns,
    )


def burst_counts(rectangles: Rectangles, frame: Frame, burst_bytes: int) -> Counts:
    """What the stream of all rectangles takes, for all frame heads."""
    size, banks = len(rectangles.row), rectangles.banks
    visits = changes(rectangles.batch, rectangles.row, rectangles.channel)
    opened = merged(numbers(visits, size), rectangles.bank, banks, frame.banks)
    wide = rectangles.channels * frame.heads
    return Counts(
        activations=int(opened.count.sum()) * wide / frame.banks,
        bytes=int((banks * rectangles.count).sum()) * wide * burst_bytes,
    )
