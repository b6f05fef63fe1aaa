"""Where rows, channels and bursts lie in the picture, and which rows it shows.

A device has many more rows than a picture. Where a region has too many, the chart shows
the first that hold something, and marks what it leaves out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from patton.cli.picture.footprint import Area
from patton.cli.picture.shapes import Box
from patton.layout import Layout
from patton.locate import Region

ROWS_MOST = 48  # of a region
BURSTS_MOST = 4096  # of all channels together
LEFT, TOP = 156, 138
WIDTH, HEIGHT = 1024, 480  # that the cells should fill
BURST_WIDTHS = (1, 12)  # least and most
ROW_HEIGHTS = (7, 15)
CHANNEL_GAP, GAP, BAND_GAP = 12, 15, 12
ZONE_FACTOR = 2  # Commit Zone rows are few, and their fill levels matter


@attrs.frozen
class Band:
    """The rows of a region that are shown, ascending."""

    region: Region
    rows: tuple[int, ...]

    @classmethod
    def of(cls, region: Region, used: Iterable[int], unit: int) -> Band:
        """Rows to show of a region, in units of so many that belong together."""
        whole = max(1, ROWS_MOST // unit) * unit
        if region.rows <= whole:
            return cls(region, tuple(range(region.first_row, region.end_row)))
        in_use = sorted(used) or range(region.first_row, region.first_row + unit)
        # An empty row is easier to see past than a mark that one was left out.
        bridged = _bridged(in_use, unit)
        return cls(region, tuple(bridged if len(bridged) <= whole else in_use[:whole]))

    @property
    def runs(self) -> list[range]:
        """The rows as runs of adjacent ones."""
        found: list[range] = []
        for row in self.rows:
            if found and found[-1].stop == row:
                found[-1] = range(found[-1].start, row + 1)
            else:
                found.append(range(row, row + 1))
        return found


@attrs.define(eq=False)
class Chart:
    """Positions of the cells; rows and channels as in `Footprints`.

    tops: of each row that is shown, with its height. omitted: (y, rows) of what is left
    out. bottom: the end of the last row.
    """

    layout: Layout
    channels: int
    burst_width: float
    bands: tuple[Band, ...]
    tops: dict[int, tuple[float, float]] = attrs.field(factory=dict)
    omitted: list[tuple[float, range]] = attrs.field(factory=list)
    bottom: float = TOP

    @classmethod
    def of(cls, layout: Layout, bands: tuple[Band, ...]) -> Chart:
        """A chart of these bands, from top to bottom."""
        per_row = layout.device.bursts_per_row
        channels = min(layout.channels_per_head, max(1, BURSTS_MOST // per_row))
        width = _clamped(WIDTH / (channels * per_row), *BURST_WIDTHS)
        chart = cls(layout, channels, width, bands)
        zone = ZONE_FACTOR - 1
        rows = sum(
            len(band.rows) * (1 + zone * (band.region.kind == "slot")) for band in bands
        )
        height = _clamped(HEIGHT / max(1, rows), *ROW_HEIGHTS)
        for band in bands:
            chart._add(band, height * (1 + zone * (band.region.kind == "slot")))
        return chart

    def _add(self, band: Band, height: float) -> None:
        """Put a band below what is there."""
        due = band.region.first_row
        for run in band.runs:
            self._omit(range(due, run.start))
            for row in run:
                self.tops[row] = (self.bottom, height)
                self.bottom += height
            due = run.stop
        self._omit(range(due, band.region.end_row))
        self.bottom += BAND_GAP

    def _omit(self, rows: range) -> None:
        if rows:
            self.omitted.append((self.bottom, rows))
            self.bottom += GAP

    @property
    def channel_width(self) -> float:
        """Of one channel, without the gap after it."""
        return self.layout.device.bursts_per_row * self.burst_width

    @property
    def right(self) -> float:
        """The end of the last channel."""
        return self.x(self.channels - 1) + self.channel_width

    def x(self, channel: int, burst: int = 0) -> float:
        """The left edge of a burst."""
        step = self.channel_width + CHANNEL_GAP
        return LEFT + channel * step + burst * self.burst_width

    def box(self, area: Area) -> Box | None:
        """An area as a rectangle; None where it is not shown."""
        shown = area.first_row in self.tops and area.last_row in self.tops
        if not shown or area.channel >= self.channels:
            return None
        top = self.tops[area.first_row][0]
        last, height = self.tops[area.last_row]
        left = self.x(area.channel, area.burst)
        width = (area.end - area.burst) * self.burst_width
        return Box(left, top, width, last + height - top)

    def boxes(self, areas: Iterable[Area]) -> tuple[Box, ...]:
        """The rectangles of the areas that are shown."""
        return tuple(box for box in map(self.box, areas) if box is not None)


def _bridged(rows: Sequence[int], gap: int) -> list[int]:
    """The rows, and those between two of them that are few."""
    found = [rows[0]]
    for row in rows[1:]:
        few = row - found[-1] - 1 <= gap
        found += range(found[-1] + 1, row + 1) if few else (row,)
    return found


def _clamped(value: float, least: float, most: float) -> float:
    """A whole number of pixels between two, for sharp edges."""
    return max(least, min(most, int(value)))
