"""A picture as a display list: rectangles and texts, in the order of painting.

Lengths are pixels of the picture at its natural size, from the top left corner.
"""

from __future__ import annotations

from typing import Literal

import attrs

Anchor = Literal["start", "middle", "end"]


@attrs.frozen
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def inset(self, by: float) -> Box:
        """The rectangle without a margin of `by` on each side."""
        return Box(self.x + by, self.y + by, self.width - 2 * by, self.height - 2 * by)

    def lowest(self, part: float) -> Box:
        """The lowest part of the rectangle, 0 to 1 of its height."""
        height = self.height * part
        return Box(self.x, self.y + self.height - height, self.width, height)


@attrs.frozen
class Hatch:
    """A fill of diagonal lines on a ground."""

    ground: str
    line: str


Fill = str | Hatch


@attrs.frozen
class Shape:
    """Rectangles that look alike and are one thing.

    tip: what it is, shown when it is pointed at; owners: names that it belongs to, by
    which a viewer can pick it out.
    """

    boxes: tuple[Box, ...]
    fill: Fill | None = None
    stroke: str | None = None
    stroke_width: float = 1.0
    tip: str = ""
    owners: tuple[str, ...] = ()


@attrs.frozen
class Label:
    """One line of text; x, y: the anchor on the base line."""

    x: float
    y: float
    text: str
    size: float = 12
    colour: str = "#1e293b"
    anchor: Anchor = "start"
    bold: bool = False


@attrs.frozen
class Picture:
    """A display list and what it shows, in words."""

    width: float
    height: float
    title: str
    description: str
    items: tuple[Shape | Label, ...]


def hatches(picture: Picture) -> list[Hatch]:
    """The hatches of a picture, in the order of their first use."""
    fills = (item.fill for item in picture.items if isinstance(item, Shape))
    return list(dict.fromkeys(fill for fill in fills if isinstance(fill, Hatch)))
