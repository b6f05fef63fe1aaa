"""What a step reads, as units of work: one result register of every bank each.

A unit opens a row of a channel, multiplies some of its bursts with those of a vector
and returns one value for each bank: the scores of sixteen tokens, or a sum for sixteen
elements of an output. Units are listed once for all query heads of a Key head.
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import Frame, Loads, Queries
from patton.device.cells import split_points, spread_over
from patton.generate.ragged import changes, merged, offsets, owners, ranges
from patton.steps import Ints
from patton.systems.maps import Holdings, KeyMap, Map, Spots
from patton.systems.system import Counts


@attrs.frozen(eq=False)
class Reads:
    """Visible ranges [start, end) of the step's queries; request: its index."""

    request: Ints
    start: Ints
    end: Ints

    def queries(self, spread: int) -> Queries:
        """The queries of a stream whose frame heads stand for so many heads."""
        part = np.arange(spread)[:, None]
        request = (self.request * spread + part).ravel()
        return Queries(request, np.tile(self.start, spread), np.tile(self.end, spread))


@attrs.frozen(eq=False)
class Work:
    """Units of one phase for one frame head; arrays [units].

    They are in the order in which a channel works them off: row by row, so that each is
    opened once, in a row query by query; or, by request, one query after another, each
    row by row. pattern: the vector, an entry of `loads`;
    origin: the component of bank 0. channels: of every unit, beginning at `channel`.
    alike: whether channels do the same rows for the same vectors.
    """

    frame: Frame
    loads: Loads
    channels: int
    channel: Ints
    row: Ints
    burst: Ints
    count: Ints
    pattern: Ints
    origin: Ints
    alike: bool = False

    @classmethod
    def of(
        cls,
        frame: Frame,
        loads: Loads,
        channels: int,
        spots: Spots,
        count: Ints,
        pattern: Ints,
        origin: Ints,
        *,
        by_request: bool,
    ) -> Work:
        """From arrays that broadcast to one shape."""
        every = np.broadcast_arrays(*spots, count, pattern, origin)
        channel, row, burst, *others = (np.ravel(column) for column in every)
        query = loads.query[others[1]] if by_request else np.zeros_like(row)
        order = np.lexsort((burst, others[1], row, query, channel))
        count, pattern, origin = (column[order] for column in others)
        return cls(
            frame=frame,
            loads=loads,
            channels=channels,
            channel=channel[order],
            row=row[order],
            burst=burst[order],
            count=count,
            pattern=pattern,
            origin=origin,
        )

    def missing_loads(self) -> tuple[Ints, Ints, Ints]:
        """Bursts that a single query head finds not loaded: unit, burst, count.

        The Global Buffer keeps what no later load has replaced. Where several query
        heads take turns at the same bursts, each replaces what the one before loaded,
        and all bursts of all units are missing.
        """
        if self.frame.heads_per_kv > 1:
            return np.arange(len(self.row)), self.burst, self.count
        # Between two neighbouring points units load all bursts or none.
        points = split_points(self.burst, self.count)
        cells = spread_over(points, self.burst, self.count)
        unit, interval = cells.source, cells.value
        place, content = self.channel[unit] * len(points) + interval, self.pattern[unit]
        order = np.argsort(place, kind="stable")
        missing = np.ones(len(unit), np.bool_)
        changed = (np.diff(place[order]) != 0) | (np.diff(content[order]) != 0)
        missing[order[1:]] = changed
        unit, first = unit[missing], points[interval[missing]]
        count = points[interval[missing] + 1] - first
        runs = merged(unit, first, count, self.frame.bursts_per_row)
        return runs.group, runs.first, runs.count

    def counts(self, burst_bytes: int) -> Counts:
        """What the work takes, for all frame heads and query heads."""
        heads = self.frame.heads_per_kv
        loaded = heads * int(self.missing_loads()[2].sum())
        results = heads * len(self.row)
        wide = self.channels * self.frame.heads
        return Counts(
            activations=float(len(changes(self.channel, self.row)) * wide),
            macs=heads * int(self.count.sum()) * wide,
            bytes=(loaded + 2 * results) * wide * burst_bytes,
        )


def score_work(
    layout_map: KeyMap, held: Holdings, reads: Reads, *, by_request: bool
) -> Work | None:
    """QK: sixteen scores a unit; None where nothing is read."""
    if not len(reads.request):
        return None
    frame = layout_map.key_frame
    tokens, width = frame.banks, -(-frame.head_dim // frame.lanes)
    first = reads.start // tokens
    counts = (reads.end - 1) // tokens + 1 - first
    query, group = owners(counts), ranges(first, counts)
    spots = layout_map.keys(held, reads.request[query], group)
    spread = spots.shape[1]
    queries = len(reads.request)
    work = Work.of(
        frame,
        _query_loads(frame, spread * queries, width),
        1,
        spots,
        count=np.array(width),
        pattern=query[:, None] + queries * np.arange(spread),
        origin=group[:, None] * tokens,
        by_request=by_request,
    )
    return attrs.evolve(work, alike=layout_map.keys_alike)


def _query_loads(frame: Frame, queries: int, width: int) -> Loads:
    """Every query at each place of a row where a Key may be."""
    places = frame.bursts_per_row // width
    return Loads(
        query=np.arange(queries),
        ptr=np.arange(queries + 1) * places,
        burst=np.tile(np.arange(places) * width, queries),
        count=np.full(places * queries, width),
        origin=np.zeros(places * queries, np.int64),
    )


def value_work(
    layout_map: Map, held: Holdings, reads: Reads, *, by_request: bool
) -> Work | None:
    """SV: sixteen elements a unit, over all that is seen of a run of a row."""
    if not len(reads.request):
        return None
    frame, lanes = layout_map.value_frame, layout_map.value_frame.lanes
    size = layout_map.value_run * lanes
    first = reads.start // size
    counts = (reads.end - 1) // size + 1 - first
    query, run = owners(counts), ranges(first, counts)
    low = np.maximum(reads.start[query], run * size) // lanes
    high = (np.minimum(reads.end[query], (run + 1) * size) - 1) // lanes
    spots = layout_map.values(held, reads.request[query], low)
    spread = spots.shape[1]
    part, queries = np.arange(spread)[:, None], len(reads.request)
    pattern = np.arange(len(query)) + len(query) * part  # part after part
    count = high - low + 1
    return Work.of(
        frame,
        _weight_loads(
            (query + queries * part).ravel(),
            pattern.T[:, :, None],
            spots,
            count[:, None, None],
            low[:, None, None] * lanes,
        ),
        layout_map.value_channels,
        spots,
        count=count[:, None, None],
        pattern=pattern.T[:, :, None],
        origin=layout_map.elements,
        by_request=by_request,
    )


def _weight_loads(
    query: Ints, pattern: Ints, spots: Spots, count: Ints, origin: Ints
) -> Loads:
    """The weights of each run at all bursts where pieces of its Values are."""
    every = np.broadcast_arrays(pattern, spots.burst, count, origin)
    pattern, burst, count, origin = (column.ravel() for column in every)
    order = np.lexsort((burst, pattern))
    kept = order[changes(pattern[order], burst[order])]
    ptr = offsets(np.bincount(pattern[kept], minlength=len(query)))
    return Loads(query, ptr, burst[kept], count[kept], origin[kept])
