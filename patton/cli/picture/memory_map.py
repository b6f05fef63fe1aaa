"""The picture of a memory map: who holds which granule of one layer and KV head.

Rows run down, channels and the bursts of a row run to the right; a cell stands for all
banks of its channel. Value granules lie in all channels of their stripe, so the same
pattern is seen in each.
"""

from __future__ import annotations

from collections.abc import Iterator

from patton.addresses import Address, Element, key_address
from patton.cli.picture import colours, legend
from patton.cli.picture.anatomy import anatomy
from patton.cli.picture.cells import Cells
from patton.cli.picture.chart import LEFT, TOP, Band, Chart
from patton.cli.picture.footprint import Footprints
from patton.cli.picture.occupancy import Occupancy
from patton.cli.picture.shapes import Box, Label, Picture, Shape

MARGIN = 24
LEGEND_LEFTS = (24, 338, 710)
LEGEND_WIDTH, LEGEND_HEIGHT = 1170, 244
TICKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def memory_map(occupancy: Occupancy, *, layer: int = 0, head: int = 0) -> Picture:
    """The memory map of one layer and KV head. Raises LayoutError if there is none."""
    layout = occupancy.layout
    layout.address_of("key", Element(layer, head, 0, 0, 0))
    cells = Cells.of(occupancy, Footprints(layout, layer, head))
    chart = cells.chart
    origin = key_address(layout.map, layer, head, 0, 0, 0)
    steps = f"{occupancy.steps:,} engine step{'s' * (occupancy.steps != 1)}"
    title = f"PATTON memory map after {steps}"
    lines = (_what(cells, origin), *occupancy.words())
    items = (
        Label(MARGIN, 38, title, 20, bold=True),
        *(
            Label(MARGIN, 60 + 18 * number, line, 13, colours.QUIET)
            for number, line in enumerate(lines)
        ),
        *_columns(chart, origin.channel),
        *cells.free_places(),
        *cells.blocks(),
        *cells.slots(),
        *cells.borders(),
        *_rows(chart, origin.row),
        *_legend(cells, chart.bottom + 30),
    )
    return Picture(
        max(chart.right + MARGIN, LEGEND_WIDTH),
        chart.bottom + LEGEND_HEIGHT,
        title,
        " ".join(lines),
        items,
    )


def _what(cells: Cells, origin: Address) -> str:
    """Which part of which device is seen."""
    layout, at = cells.occupancy.layout, cells.footprints
    channels = range(origin.channel, origin.channel + layout.channels_per_head)
    rows = range(origin.row, origin.row + layout.rows_per_plane)
    more = len(channels) - cells.chart.channels
    return (
        f"Model {layout.model.name} on device {layout.device.name}, layer {at.layer}, "
        f"KV head {at.head}: {_span('channel', channels)}"
        + (f" (the last {more} not shown)" if more else "")
        + f", {_span('row', rows)}, all {layout.device.banks} banks in each cell."
    )


def _span(noun: str, numbers: range) -> str:
    first, last = numbers[0], numbers[-1]
    return f"{noun} {first}" if first == last else f"{noun}s {first} to {last}"


def _legend(cells: Cells, top: float) -> Iterator[Shape | Label]:
    occupancy = cells.occupancy
    left, middle, right = LEGEND_LEFTS
    yield from legend.meanings(left, top)
    yield from legend.requests(cells.numbers, occupancy.tokens, middle, top)
    yield from anatomy(occupancy.layout, right, top)


def _columns(chart: Chart, origin: int) -> Iterator[Shape | Label]:
    """Heads of the channels, and burst numbers."""
    per_row = chart.layout.device.bursts_per_row
    width = chart.channel_width
    step = next((t for t in TICKS if t * chart.burst_width >= 56), per_row)
    every = max(1, round(52 / width))
    for channel in range(chart.channels):
        left = chart.x(channel)
        if channel % every == 0:
            noun = "channel" if width >= 70 else "ch"
            words = f"{noun} {origin + channel}"
            middle = left + width / 2
            yield Label(middle, TOP - 20, words, 12, anchor="middle", bold=True)
        ticks = range(0, per_row, step) if width >= 70 else ()
        for burst in ticks:
            x = chart.x(channel, burst)
            yield Shape((Box(x, TOP - 5, 1, 5),), colours.UNOWNED_BORDER)
            words = f"burst {burst}" if not (channel or burst) else str(burst)
            yield Label(x, TOP - 8, words, 10, colours.QUIET)


def _rows(chart: Chart, origin: int) -> Iterator[Shape | Label]:
    """Names of the regions, row numbers, and what is left out."""
    for band in chart.bands:
        yield from _band(chart, band, origin)
    for y, rows in chart.omitted:
        words = _span("row", range(origin + rows.start, origin + rows.stop))
        yield Label(LEFT, y + 11, f"\u00b7 \u00b7 \u00b7  {words}", 10, colours.QUIET)


def _band(chart: Chart, band: Band, origin: int) -> Iterator[Shape | Label]:
    region = band.region
    top = chart.tops[band.rows[0]][0]
    last, height = chart.tops[band.rows[-1]]
    yield Shape((Box(LEFT - 40, top, 3, last + height - top),), colours.UNOWNED_BORDER)
    right = LEFT - 48
    yield Label(right, top + 12, region.name, 13, anchor="end", bold=True)
    if last + height - top > 26:
        words = f"{region.rows} rows" if region.rows > 1 else "1 row"
        yield Label(right, top + 27, words, 10, colours.QUIET, anchor="end")
        if len(band.rows) < region.rows:
            words = f"{len(band.rows)} shown"
            yield Label(right, top + 40, words, 10, colours.QUIET, anchor="end")
    starts = {run.start for run in band.runs}
    for row in band.rows:
        if row in starts or (row - region.first_row) % 4 == 0:
            y, height = chart.tops[row]
            middle, number = y + height / 2 + 3.5, str(origin + row)
            yield Label(LEFT - 5, middle, number, 9, colours.QUIET, anchor="end")
