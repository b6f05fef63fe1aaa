"""Small drawings of the inside of a block: what banks, bursts and lanes hold.

One token is picked out: its Key lies along one bank, its Value in one lane of all.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from patton.cli.picture import colours
from patton.cli.picture.shapes import Box, Label, Shape
from patton.layout import Layout

WIDTH, HEIGHT = 120, 112  # of one drawing
STEP = 158  # from one to the next
GAP = 3
TOKEN = 3
ACCENT = colours.REQUESTS[0]
LINE_HEIGHT_LEAST = 3  # below, lines between banks would be a grey area


@attrs.frozen
class Drawing:
    """Blocks of cells: channels to the right, rows down, bursts and banks inside.

    marked: bursts of each block in which the token lies, in its bank or its lane.
    """

    name: str
    words: tuple[str, str]
    channels: int
    rows: int
    bursts: int
    marked: range
    in_bank: bool


def anatomy(layout: Layout, left: float, top: float) -> Iterator[Shape | Label]:
    """Key granule, Value granule and slot, with one token picked out."""
    token = min(TOKEN, layout.device.banks - 1, layout.device.lanes - 1)
    title = f"Inside one block: all {layout.device.banks} banks, token {token} in red"
    yield Label(left, top, title, 13, bold=True)
    for number, drawing in enumerate(_drawings(layout)):
        frame = Box(left + number * STEP, top + 13, WIDTH, HEIGHT)
        yield from _grid(drawing, layout, token, frame)
        y = frame.y + HEIGHT + 17
        yield Label(frame.x, y, drawing.name, 12, bold=True)
        for line, text in enumerate(drawing.words, 1):
            yield Label(frame.x, y + 15 * line, text, 11, colours.QUIET)


def _drawings(layout: Layout) -> tuple[Drawing, ...]:
    channels, rows = layout.value_channels, layout.rows_per_value
    width = layout.value_width
    return (
        Drawing(
            "Key",
            (f"{_count(layout.key_width, 'burst')}, 1 row, 1 channel", "token = bank"),
            channels=1,
            rows=1,
            bursts=layout.key_width,
            marked=range(layout.key_bursts),
            in_bank=True,
        ),
        Drawing(
            "Value",
            (
                f"{_count(rows, 'row')}, {_count(channels, 'channel')}",
                "token = lane in each burst",
            ),
            channels=channels,
            rows=rows,
            bursts=width,
            marked=range(1),
            in_bank=False,
        ),
        Drawing(
            "Value in the Commit Zone",
            (f"1 row, {_count(channels, 'channel')}", "its rows side by side"),
            channels=channels,
            rows=1,
            bursts=rows * width,
            marked=range(0, rows * width, width),
            in_bank=False,
        ),
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _grid(drawing: Drawing, layout: Layout, token: int, frame: Box) -> Iterator[Shape]:
    """One drawing in its frame."""
    width = (frame.width + GAP) / drawing.channels - GAP
    height = (frame.height + GAP) / drawing.rows - GAP
    lines: list[Box] = []
    marks: list[Box] = []
    blocks: list[Box] = []
    for channel in range(drawing.channels):
        for row in range(drawing.rows):
            x = frame.x + channel * (width + GAP)
            y = frame.y + row * (height + GAP)
            block = Box(x, y, width, height)
            blocks.append(block)
            lines += _lines(block, drawing.bursts, layout.device.banks)
            marks += _marks(block, drawing, layout, token)
    yield Shape(tuple(blocks), colours.GROUND)
    yield Shape(tuple(lines), colours.FAINT)
    yield Shape(tuple(marks), ACCENT)
    yield Shape(tuple(blocks), None, colours.UNOWNED_BORDER)


def _lines(block: Box, bursts: int, banks: int) -> Iterator[Box]:
    """Thin lines between bursts and between banks."""
    for burst in range(1, bursts):
        x = block.x + burst * block.width / bursts
        yield Box(x - 0.25, block.y, 0.5, block.height)
    if block.height / banks >= LINE_HEIGHT_LEAST:
        for bank in range(1, banks):
            y = block.y + bank * block.height / banks
            yield Box(block.x, y - 0.25, block.width, 0.5)


def _marks(block: Box, drawing: Drawing, layout: Layout, token: int) -> Iterator[Box]:
    """Where the token lies in one block."""
    burst_width = block.width / drawing.bursts
    for burst in drawing.marked:
        x = block.x + burst * burst_width
        if drawing.in_bank:
            height = block.height / layout.device.banks
            yield Box(x, block.y + token * height, burst_width, height)
        else:
            width = burst_width / layout.device.lanes
            least = max(width, 1)
            yield Box(x + token * width, block.y, least, block.height)
