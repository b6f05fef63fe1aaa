"""Rectangles of bursts that hold tokens of blocks, and streams that visit them by row.

Writes, commits and read-backs touch the same rectangles; they differ in direction, in
order, and in where data come from.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.addresses import key_address, slot_address, value_address
from patton.commands import Axes, Frame, Op, Strides, Tokens
from patton.commit_zone import NO_SLOT
from patton.generate.assembly import Entries, first_elements, token_places
from patton.generate.ragged import (
    changes,
    merged,
    numbers,
    offsets,
    owners,
    ranges,
)
from patton.layout import Layout
from patton.steps import Ints


@attrs.frozen(eq=False)
class Segments:
    """Consecutive tokens of blocks [segments].

    start, count: tokens inside the block; request, position: whose, and where the first
    is; slot: NO_SLOT for the block's O1V; batch: rows are visited batch by batch.
    """

    granule: Ints
    slot: Ints
    start: Ints
    count: Ints
    request: Ints
    position: Ints
    batch: Ints

    def tokens(self) -> Tokens:
        """All tokens, in order of segments."""
        request = np.repeat(self.request, self.count)
        return Tokens(request, ranges(self.position, self.count))


@attrs.frozen(eq=False)
class Rectangles:
    """Bursts of the tokens of segments; arrays [rectangles].

    reference: the token of lane 0, bank and burst offset 0; element: of the first
    channel and bank; lanes: a mask of those that carry tokens. Values take all banks of
    the `channels` of a stripe, Keys a bank per token in one channel.
    """

    batch: Ints
    channel: Ints
    channels: int
    bank: Ints
    banks: Ints
    row: Ints
    burst: Ints
    count: Ints
    reference: Ints
    element: Ints
    lanes: NDArray[np.uint64]

    def __getitem__(self, index: Ints) -> Rectangles:
        values: dict[str, Any] = attrs.asdict(self, recurse=False)
        for name, value in values.items():
            values[name] = value[index] if isinstance(value, np.ndarray) else value
        return Rectangles(**values)

    def row_order(self) -> Ints:
        """Batch by batch, those of a row and channel together, else as they are."""
        return np.lexsort((self.channel, self.row, self.batch))

    def by_row(self) -> Rectangles:
        """The same in `row_order`."""
        return self[self.row_order()]

    def bank_by_bank(self) -> Rectangles:
        """Values in pieces of one bank each, a visit's banks one after another."""
        visits = changes(self.batch, self.row, self.channel)
        owner, bank = owners(self.banks), ranges(self.bank, self.banks)
        pieces = attrs.evolve(
            self[owner],
            bank=bank,
            banks=np.ones_like(bank),
            element=self.element[owner] + bank - self.bank[owner],
        )
        return pieces[np.lexsort((bank, numbers(visits, len(self.row))[owner]))]


def key_axes(layout: Layout) -> Axes:
    """Tokens over banks, elements along bursts and lanes (Paper 4.3)."""
    return Axes(Strides(0, 1, 0, 0), Strides(0, 0, layout.device.lanes, 1))


def value_axes(layout: Layout) -> Axes:
    """Elements over channels and banks, tokens along bursts and lanes (Paper 4.4)."""
    lanes, banks = layout.device.lanes, layout.device.banks
    return Axes(Strides(0, 0, lanes, 1), Strides(banks, 1, 0, 0))


def key_rectangles(layout: Layout, segments: Segments) -> Rectangles:
    """The Keys of segments: one rectangle per group of as many tokens as banks."""
    banks = layout.device.banks
    group = np.arange(layout.map.token_groups) * banks
    start, end = segments.start[:, None], (segments.start + segments.count)[:, None]
    low, high = np.maximum(start, group), np.minimum(end, group + banks)
    segment, column = np.nonzero(low < high)
    token, banks_used = low[segment, column], (high - low)[segment, column]
    at = key_address(layout.map, 0, 0, segments.granule[segment], token, 0)
    first_token = offsets(segments.count)[:-1] - segments.start
    return Rectangles(
        batch=segments.batch[segment],
        channel=at.channel,
        channels=1,
        bank=at.bank,
        banks=banks_used,
        row=at.row,
        burst=at.burst,
        count=np.full(len(segment), layout.key_bursts),
        reference=first_token[segment] + token,
        element=np.zeros_like(segment),
        lanes=np.full(len(segment), _below(layout)[-1]),
    )


def value_rectangles(layout: Layout, segments: Segments) -> Rectangles:
    """The Values of segments: per row, whole bursts, and those with fewer tokens.

    In a slot the rows of an O1V lie side by side in one row.
    """
    low, high = _burst_ranges(layout, segments)
    rows = layout.rows_per_value
    in_rows = np.broadcast_to((low < high)[:, None, :], (len(low), rows, 3))
    segment, part_row, column = np.nonzero(in_rows)
    token, last = low[segment, column], high[segment, column] - 1
    element = first_elements(layout)[part_row]
    channel, row, burst = _value_places(layout, segments, segment, token, element)
    first, end = token_places(layout, token), token_places(layout, last)
    below = _below(layout)
    first_token = offsets(segments.count)[:-1] - segments.start
    return Rectangles(
        batch=segments.batch[segment],
        channel=channel,
        channels=layout.value_channels,
        bank=np.zeros_like(segment),
        banks=np.full(len(segment), layout.device.banks),
        row=row,
        burst=burst,
        count=end.burst - first.burst + 1,
        reference=first_token[segment] + token - first.lane,
        element=element,
        lanes=below[end.lane + 1] & ~below[first.lane],
    )


def row_entries(
    frame: Frame, rectangles: Rectangles, op: Op, optional: tuple[str, ...]
) -> Entries:
    """RD or WR entries in the given order; a row is opened where it changes.

    Only the banks used are opened, one ACT for each run of them. `optional`: columns
    of the stream beyond the common ones.
    """
    size = len(rectangles.row)
    visits = changes(rectangles.batch, rectangles.row, rectangles.channel)
    visit = numbers(visits, size)
    acts = merged(visit, rectangles.bank, rectangles.banks, frame.banks)
    act_ends = offsets(np.bincount(acts.group))[1:]
    entries = Entries.of(size + len(acts.group), frame, optional)
    opened = visits[acts.group]
    entries.put(
        Op.ACT,
        np.arange(len(acts.group)) + opened,
        channel=rectangles.channel[opened],
        channels=rectangles.channels,
        bank=acts.first,
        banks=acts.count,
        row=rectangles.row[opened],
    )
    fields = ("channel", "channels", "bank", "banks", "row", "burst", "count")
    names = (*fields, "reference", "element", "lanes")
    values: dict[str, Any] = {name: getattr(rectangles, name) for name in names}
    if op is Op.WR:
        # The write that opens a burst is whole, so that no stale lane is ever read.
        values["fill"] = rectangles.lanes & np.uint64(1)
    entries.put(op, np.arange(size) + act_ends[visit], **values)
    return entries


def whole_bursts(layout: Layout, segments: Segments) -> Segments:
    """The segments begun at lane 0 of their first burst, with earlier tokens there."""
    lane = token_places(layout, segments.start).lane
    return attrs.evolve(
        segments,
        start=segments.start - lane,
        count=segments.count + lane,
        position=segments.position - lane,
    )


def _burst_ranges(layout: Layout, segments: Segments) -> tuple[Ints, Ints]:
    """Token ranges [low, high) of a burst begun before, whole bursts, an open one.

    Arrays [segments, 3]; a range that a segment has not is empty.
    """
    lanes, start = layout.device.lanes, segments.start
    end = start + segments.count
    first = token_places(layout, start)
    last = token_places(layout, end - 1)
    next_burst = np.minimum(start - first.lane + lanes, end)
    body = np.where(first.lane > 0, next_burst, start)
    last_burst = np.maximum(end - last.lane - 1, body)
    tail = np.where(last.lane < lanes - 1, last_burst, end)
    return np.stack([start, body, tail], 1), np.stack([body, tail, end], 1)


def _value_places(
    layout: Layout, segments: Segments, segment: Ints, token: Ints, element: Ints
) -> tuple[Ints, Ints, Ints]:
    """Channel, row and burst of elements of blocks, in their slot or their O1V."""
    granule, slot = segments.granule[segment], segments.slot[segment]
    home = value_address(layout.map, 0, 0, granule, token, element)
    zone = slot_address(layout.map, 0, 0, slot, token, element)
    is_home = slot == NO_SLOT
    channel = np.where(is_home, home.channel, zone.channel)
    row = np.where(is_home, home.row, zone.row)
    return channel, row, np.where(is_home, home.burst, zone.burst)


def _below(layout: Layout) -> NDArray[np.uint64]:
    """Masks of the lanes below 0, 1, ..., and at the end of all lanes."""
    masks = [(1 << lane) - 1 for lane in range(layout.device.lanes + 1)]
    return np.array(masks, np.uint64)
