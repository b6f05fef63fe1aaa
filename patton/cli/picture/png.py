"""A picture as PNG, painted rectangle by rectangle."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageColor, ImageDraw, ImageFont

from patton.cli.picture.shapes import Box, Hatch, Label, Picture, Shape, hatches
from patton.cli.picture.svg import PERIOD

SCALE = 2  # pixels of the file per pixel of the picture, for sharp text
ANCHORS = {"start": "ls", "middle": "ms", "end": "rs"}


def to_png(picture: Picture) -> bytes:
    """The bytes of a PNG file; equal pictures give equal bytes.

    Texts are set in the typeface that Pillow brings, so that they look the same
    wherever the file is made.
    """
    size = round(picture.width * SCALE), round(picture.height * SCALE)
    image = Image.new("RGB", size, "#fff")
    canvas = ImageDraw.Draw(image)
    grounds = {hatch: _hatched(hatch, size) for hatch in hatches(picture)}
    for item in picture.items:
        if isinstance(item, Label):
            _write(canvas, item)
        else:
            _paint(image, canvas, item, grounds)
    out = io.BytesIO()
    image.save(out, "PNG", optimize=True)
    return out.getvalue()


def _hatched(hatch: Hatch, size: tuple[int, int]) -> Image.Image:
    """A sheet of the hatch, of which shapes cut out their part."""
    colours = np.array(
        [ImageColor.getrgb(hatch.ground), ImageColor.getrgb(hatch.line)], np.uint8
    )
    x, y = np.arange(size[0]), np.arange(size[1])[:, None]
    on_line = (x + y) % (PERIOD * SCALE) < 1.5 * SCALE
    return Image.fromarray(colours[on_line.astype(np.intp)])


def _paint(
    image: Image.Image,
    canvas: ImageDraw.ImageDraw,
    shape: Shape,
    grounds: dict[Hatch, Image.Image],
) -> None:
    width = max(1, round(shape.stroke_width * SCALE))
    for box in shape.boxes:
        corners = _corners(box)
        if isinstance(shape.fill, Hatch):
            image.paste(grounds[shape.fill].crop(corners), corners)
        elif shape.fill is not None:
            canvas.rectangle(_inside(corners), fill=shape.fill)
        if shape.stroke is not None:
            half = shape.stroke_width / 2
            around = _inside(_corners(box.inset(-half)))
            canvas.rectangle(around, outline=shape.stroke, width=width)


def _corners(box: Box) -> tuple[int, int, int, int]:
    """Left, top, right and bottom; a box has at least one pixel."""
    left, top = round(box.x * SCALE), round(box.y * SCALE)
    right = round((box.x + box.width) * SCALE)
    bottom = round((box.y + box.height) * SCALE)
    return left, top, max(right, left + 1), max(bottom, top + 1)


def _inside(corners: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """The same as the first and last pixel, as the canvas wants them."""
    left, top, right, bottom = corners
    return left, top, right - 1, bottom - 1


def _write(canvas: ImageDraw.ImageDraw, label: Label) -> None:
    canvas.text(
        (label.x * SCALE, label.y * SCALE),
        label.text,
        fill=label.colour,
        font=ImageFont.load_default(label.size * SCALE),
        anchor=ANCHORS[label.anchor],
        stroke_width=0.5 if label.bold else 0,
    )
