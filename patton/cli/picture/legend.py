"""The legend: what the cells mean, and which colour is which request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from patton.cli.picture import colours
from patton.cli.picture.shapes import Box, Label, Shape
from patton.steps import Request

LINE = 20
REQUESTS_MOST = 24
REQUESTS_PER_COLUMN = 8
COLUMN_WIDTH = 112
SAMPLE = colours.REQUESTS[2]
OUTLINE_WIDTH = 1.25


def meanings(left: float, top: float) -> Iterator[Shape | Label]:
    """What a cell may look like."""
    yield Label(left, top, "What the cells mean", 13, bold=True)
    for number, words in enumerate(_MEANINGS):
        box = Box(left, top + 13 + number * LINE, 26, 14)
        yield from _MEANINGS[words](box)
        yield Label(left + 36, box.y + 11, words)


def _plain(box: Box) -> Iterator[Shape]:
    yield Shape((box,), SAMPLE)


def _shared(box: Box) -> Iterator[Shape]:
    yield Shape((box,), colours.SHARED)


def _cached(box: Box) -> Iterator[Shape]:
    yield Shape((box,), colours.CACHED)


def _partial(box: Box) -> Iterator[Shape]:
    yield Shape((box.inset(0.5),), colours.GROUND, SAMPLE)
    yield Shape((box.lowest(0.4),), SAMPLE)


def _reserved(box: Box) -> Iterator[Shape]:
    yield Shape((box.inset(0.5),), colours.GROUND, SAMPLE)


def _owned_free(box: Box) -> Iterator[Shape]:
    yield Shape((box,), colours.pale(SAMPLE, colours.TINT))


def _unowned_free(box: Box) -> Iterator[Shape]:
    yield Shape((box.inset(0.5),), None, colours.FAINT)


def _free_slot(box: Box) -> Iterator[Shape]:
    yield Shape((box,), colours.FREE_SLOT)


def _pairs(box: Box) -> Iterator[Shape]:
    for number, (colour, width) in enumerate(
        (
            (colours.OWNED_BORDER, OUTLINE_WIDTH),
            (colours.UNOWNED_BORDER, OUTLINE_WIDTH),
            (colours.FAINT, 0.75),
        )
    ):
        part = Box(box.x + 9 * number, box.y, 8, box.height)
        yield Shape((part.inset(0.5),), None, colour, width)


_MEANINGS = {
    "block of one request, in its colour": _plain,
    "block that several requests share": _shared,
    "cached block: no request holds it": _cached,
    "partly written; the height is its tokens": _partial,
    "reserved: the Value is in the Commit Zone": _reserved,
    "free place of a pair that a request owns": _owned_free,
    "free place of a pair without an owner": _unowned_free,
    "free slot of the Commit Zone": _free_slot,
    "pairs: owned, without an owner, free": _pairs,
}


def requests(
    numbers: Mapping[Request, int],
    tokens: Mapping[Request, int],
    left: float,
    top: float,
) -> Iterator[Shape | Label]:
    """Which colour is which request, and how many tokens it has."""
    yield Label(left, top, "Running requests, and their tokens", 13, bold=True)
    if not numbers:
        yield Label(left, top + 24, "none", 12, colours.QUIET)
    for request, number in numbers.items():
        if number == REQUESTS_MOST:
            more = f"and {len(numbers) - number} more"
            y = top + 24 + REQUESTS_PER_COLUMN * LINE
            yield Label(left, y, more, 12, colours.QUIET)
            return
        column, line = divmod(number, REQUESTS_PER_COLUMN)
        x, y = left + column * COLUMN_WIDTH, top + 13 + line * LINE
        owners = (str(request),)
        tip = f"request {request}: {tokens[request]:,} tokens"
        box = Box(x, y, 14, 14)
        yield Shape((box,), colours.of_request(number), tip=tip, owners=owners)
        name = f"{request!s:.8}"
        yield Label(x + 20, y + 11, name, 12, bold=True)
        amount = f"{tokens[request]:,}"
        yield Label(x + 94, y + 11, amount, 12, colours.QUIET, anchor="end")
