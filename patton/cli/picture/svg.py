"""A picture as SVG: one path per shape, with its tip as a native tooltip."""

from __future__ import annotations

from html import escape

from patton.cli.picture.shapes import Box, Hatch, Label, Picture, Shape, hatches

FONTS = "Helvetica, Arial, 'DejaVu Sans', sans-serif"
PERIOD = 6  # of a hatch


def to_svg(picture: Picture, *, owners: bool = False) -> str:
    """The text of an SVG file; equal pictures give equal texts.

    owners: name the owners of each shape, for a script in the page.
    """
    used = {hatch: f"hatch{number}" for number, hatch in enumerate(hatches(picture))}
    size = f"{_number(picture.width)} {_number(picture.height)}"
    width, height = size.split()
    begin = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
        f'width="{width}" height="{height}" role="img" font-family="{FONTS}">'
    )
    lines = [
        begin,
        f"<title>{escape(picture.title)}</title>",
        f"<desc>{escape(picture.description)}</desc>",
        *(_pattern(hatch, name) for hatch, name in used.items()),
        f'<path fill="#fff" d="M0 0H{width}V{height}H0z"/>',
    ]
    for item in picture.items:
        if isinstance(item, Label):
            lines.append(_text(item))
        else:
            lines.append(_path(item, used, owners))
    return "\n".join([*lines, "</svg>", ""])


def _number(value: float) -> str:
    """At most two decimals, and no more than it takes."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _pattern(hatch: Hatch, name: str) -> str:
    side = f'width="{PERIOD}" height="{PERIOD}"'
    return (
        f'<pattern id="{name}" {side} patternUnits="userSpaceOnUse">'
        f'<path fill="{hatch.ground}" d="M0 0h{PERIOD}v{PERIOD}h-{PERIOD}z"/>'
        f'<path stroke="{hatch.line}" d="M-1 1L1-1M0 {PERIOD}L{PERIOD} 0'
        f'M{PERIOD - 1} {PERIOD + 1}L{PERIOD + 1} {PERIOD - 1}"/></pattern>'
    )


def _path(shape: Shape, used: dict[Hatch, str], owners: bool) -> str:
    fill = shape.fill or "none"
    if isinstance(fill, Hatch):
        fill = f"url(#{used[fill]})"
    words = f'fill="{fill}"'
    if shape.stroke:
        words += f' stroke="{shape.stroke}"'
        if shape.stroke_width != 1:
            words += f' stroke-width="{_number(shape.stroke_width)}"'
    if owners and shape.owners:
        words += f' data-of="{escape("|".join(shape.owners))}"'
    outline = f'<path {words} d="{"".join(map(_outline, shape.boxes))}"'
    if not shape.tip:
        return outline + "/>"
    return f"{outline}><title>{escape(shape.tip)}</title></path>"


def _outline(box: Box) -> str:
    x, y, width, height = map(_number, (box.x, box.y, box.width, box.height))
    return f"M{x} {y}h{width}v{height}h-{width}z"


def _text(label: Label) -> str:
    words = f'x="{_number(label.x)}" y="{_number(label.y)}"'
    words += f' font-size="{_number(label.size)}" fill="{label.colour}"'
    if label.anchor != "start":
        words += f' text-anchor="{label.anchor}"'
    if label.bold:
        words += ' font-weight="bold"'
    return f"<text {words}>{escape(label.text)}</text>"
