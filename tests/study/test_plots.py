"""Pictures: one document each, the same every time, with labels and no outside."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("matplotlib", reason="the extra `study` is not installed")

from patton.study.plots import (
    COLOURS,
    HATCHES,
    MARKERS,
    Axes,
    Plot,
    bars,
    lines,
    points,
)

AXES = Axes("model", "latency (µs)")


def some_bars() -> Plot:
    values = {"a": {"x": 1.0, "y": 2.0}, "b": {"y": 3.0}}
    return bars("Bars", "Caption.", values, AXES, paper={"y": 2.5})


def some_stacks() -> Plot:
    return bars("Stack", "Caption.", {"a": {"x": 1}, "b": {"x": 2}}, AXES, stacked=True)


def some_lines() -> Plot:
    values = {"a": {1024.0: 5.0, 4096.0: 9.0}, "b": {1024.0: 4.0}}
    return lines("Lines", "Caption.", values, Axes("tokens", "cycles", log="xy"))


def some_points() -> Plot:
    return points("Points", "Caption.", {"a": {"16": (12.0, 98.5)}}, AXES)


@pytest.mark.parametrize("plot", [some_bars, some_stacks, some_lines, some_points])
def test_a_picture_is_whole_and_the_same_every_time(plot: Callable[[], Plot]) -> None:
    """Well-formed, nothing from elsewhere, no date, equal bytes."""
    svg = plot().svg
    ET.fromstring(svg)  # noqa: S314  (our own)
    links = re.findall(r'(?:href|src)="([^"]*)"', svg)

    assert links
    assert all(link.startswith("#") for link in links)
    assert "<dc:date>" not in svg
    assert svg == plot().svg


def test_labels_stand_at_the_axes() -> None:
    """Text becomes outlines, each in a group with the text as a comment."""
    svg = some_bars().svg
    for text in ("Bars", "model", "latency (µs)", "x", "y", "a", "b", "the paper"):
        assert f"<!-- {text} -->" in svg


def test_stacked_bars_stand_on_each_other() -> None:
    """1 and 2 make a column that reaches to 3: its axis has a tick at 3.0."""
    assert "<!-- 3.0 -->" in some_stacks().svg


def test_there_is_a_colour_and_a_pattern_for_every_series() -> None:
    """No two series look alike, in colour or in grey."""
    assert len(COLOURS) == len(set(COLOURS)) == len(HATCHES) == len(MARKERS)
    assert len(set(HATCHES)) == len(HATCHES)
    assert len(set(MARKERS)) == len(MARKERS)


def test_a_logarithmic_axis_has_numbers_within_a_decade_too() -> None:
    """2,000 to 5,000 cycles: no power of ten lies between."""
    values = {"a": {1.0: 5000.0, 2.0: 2000.0}}
    svg = lines("Lines", "Caption.", values, Axes("modules", "cycles", log="xy")).svg
    ticks = svg[svg.index('id="matplotlib.axis_2"') :]

    assert re.search(r"<!-- \$\\mathdefault\{[2-5]\\times10\^\{3\}\}\$ -->", ticks)
