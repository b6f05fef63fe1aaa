"""Pictures of figures: vector graphics to be embedded, the same bytes every time.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; series
differ in hatches or markers, too, for those who print in grey.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from patton.study.extras import library

COLOURS: Final = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#F0E442",
    "#999999",
    "#000000",
)
HATCHES: Final = ("", "///", "...", "\\\\\\", "xx", "--", "++", "oo", "**")
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X", "*", "h")
PAPER_MARK: Final = "the paper"

Values = Mapping[str, Mapping[str, float]]  # series -> group or x -> value


@attrs.frozen
class Plot:
    """One picture. svg: a whole document; caption: what to see, and how it was got."""

    title: str
    caption: str
    svg: str


@attrs.frozen
class Axes:
    """What stands at the axes. log: "", "x", "y" or "xy"; height in inches."""

    x: str
    y: str
    log: str = ""
    height: float = 3.4


def bars(
    title: str,
    caption: str,
    values: Values,
    axes: Axes,
    *,
    paper: Mapping[str, float] | None = None,
    stacked: bool = False,
) -> Plot:
    """A group of bars for every key of the inner mappings, a colour for every series.

    paper: group -> the paper's number, drawn across the group. stacked: series on top
    of one another. A series may lack groups.
    """
    groups = list(dict.fromkeys(group for row in values.values() for group in row))
    figure, area = _canvas(title, axes, len(groups))
    width = 0.8 if stacked else 0.8 / max(1, len(values))
    floor = [0.0] * len(groups)
    for index, (name, row) in enumerate(values.items()):
        heights = [row.get(group, 0.0) for group in groups]
        shift = 0.0 if stacked else (index - (len(values) - 1) / 2) * width
        area.bar(
            [place + shift for place in range(len(groups))],
            heights,
            width * 0.92,
            bottom=floor if stacked else None,
            label=name,
            color=COLOURS[index % len(COLOURS)],
            hatch=HATCHES[index % len(HATCHES)],
            edgecolor="white",
            linewidth=0.5,
        )
        if stacked:
            floor = [low + high for low, high in zip(floor, heights, strict=True)]
    if paper:
        _paper_marks(area, groups, paper)
    area.set_xticks(range(len(groups)), groups)
    if len(groups) > 6 or max(map(len, groups), default=0) > 14:
        area.tick_params(axis="x", labelrotation=30)
        for label in area.get_xticklabels():
            label.set_horizontalalignment("right")
    return _finished(figure, area, title, caption, legend=len(values) > 1 or paper)


def lines(
    title: str,
    caption: str,
    values: Mapping[str, Mapping[float, float]],
    axes: Axes,
    *,
    paper: Mapping[str, float] | None = None,
) -> Plot:
    """A line for every series over the numbers that its keys are.

    paper: label -> a number that the paper reports, drawn across.
    """
    figure, area = _canvas(title, axes, 6)
    for index, (name, row) in enumerate(values.items()):
        places = sorted(row)
        area.plot(
            places,
            [row[place] for place in places],
            label=name,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            linewidth=1.6,
            markersize=5,
        )
    for label, level in (paper or {}).items():
        area.axhline(level, color="black", linestyle="--", linewidth=1)
        area.annotate(label, (0.01, level), xycoords=("axes fraction", "data"),
                      fontsize=8, va="bottom")  # fmt: skip
    ticks = sorted({place for row in values.values() for place in row})
    if "x" in axes.log and len(ticks) <= 12:
        area.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        area.tick_params(axis="x", which="minor", bottom=False, labelbottom=False)
    return _finished(figure, area, title, caption, legend=len(values) > 1)


def points(
    title: str,
    caption: str,
    values: Mapping[str, Mapping[str, tuple[float, float]]],
    axes: Axes,
) -> Plot:
    """Labelled points (x, y), a colour and a marker for every series."""
    figure, area = _canvas(title, axes, 6)
    for index, (name, row) in enumerate(values.items()):
        area.scatter(
            [x for x, _ in row.values()],
            [y for _, y in row.values()],
            label=name,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            s=45,
        )
        for label, place in row.items():
            area.annotate(
                label, place, fontsize=8, xytext=(6, 3), textcoords="offset points"
            )
    area.margins(x=0.18, y=0.12)
    return _finished(figure, area, title, caption, legend=len(values) > 1)


def _canvas(title: str, axes: Axes, groups: int) -> tuple[Any, Any]:
    figure = library("matplotlib.figure", "plots", "study").Figure(
        figsize=(max(6.4, 1.2 + 0.85 * groups), axes.height)
    )
    area = figure.add_subplot()
    area.set_title(title, fontsize=11, loc="left")
    area.set_xlabel(axes.x)
    area.set_ylabel(axes.y)
    if "x" in axes.log:
        area.set_xscale("log", base=2)
    if "y" in axes.log:
        area.set_yscale("log")
    area.grid(axis="y", color="#dddddd", linewidth=0.6)
    area.set_axisbelow(True)
    for side in ("top", "right"):
        area.spines[side].set_visible(False)
    return figure, area


def _paper_marks(area: Any, groups: Sequence[str], paper: Mapping[str, float]) -> None:
    label: str | None = PAPER_MARK
    for place, group in enumerate(groups):
        if group in paper:
            area.hlines(
                paper[group], place - 0.45, place + 0.45, color="black", label=label,
                linestyle="--", linewidth=1.4,
            )  # fmt: skip
            label = None


def _finished(
    figure: Any, area: Any, title: str, caption: str, *, legend: object
) -> Plot:
    if legend:
        area.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8
        )
    out = io.StringIO()
    # Names of clip paths come from the salt, text becomes outlines: no fonts are asked
    # for, and two runs write the same.
    style = {"svg.hashsalt": title, "hatch.linewidth": 0.6}
    with library("matplotlib", "plots", "study").rc_context(style):
        figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None})
    return Plot(title, caption, out.getvalue())
