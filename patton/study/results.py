"""Figures: what a study found, one number each, beside the paper's where it has one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from math import exp, log
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import attrs

from patton.errors import WorkloadError

FILE: Final = "results.json"
ALL_MODELS: Final = "all models"
TOLERANCE: Final = 0.10  # deviations beyond it need an explanation


@attrs.frozen
class Figure:
    """One number. model, system: what it is about; paper: what the paper reports."""

    study: str
    model: str
    system: str
    quantity: str
    value: float
    unit: str
    paper: float | None = None

    def check(self) -> None:
        """Raise TypeError unless all fields are what they should be."""
        *names, value, unit, paper = attrs.astuple(self)
        numbers = [value] if paper is None else [value, paper]
        if not all(type(name) is str for name in (*names, unit)):
            raise TypeError(f"a name that is no text in {self}")
        if not all(type(number) in (int, float) for number in numbers):
            raise TypeError(f"a value that is no number in {self}")

    @property
    def ratio(self) -> float | None:
        """Ours by the paper's, None where the paper has no number (or zero)."""
        return self.value / self.paper if self.paper else None

    @property
    def deviates(self) -> bool:
        """Whether it is more than 10 % off the paper's."""
        ratio = self.ratio
        return ratio is not None and abs(ratio - 1) > TOLERANCE


@attrs.frozen
class Results:
    """Everything a study wrote. settings: how to repeat it, as JSON values."""

    settings: dict[str, Any]
    figures: tuple[Figure, ...]

    def of(self, study: str) -> list[Figure]:
        """Figures of one study, in their order."""
        return [figure for figure in self.figures if figure.study == study]

    def merged(self, settings: dict[str, Any], new: Iterable[Figure]) -> Results:
        """These results, with all figures of the studies in `new` replaced."""
        added = list(new)
        studies = {figure.study for figure in added}
        kept = [figure for figure in self.figures if figure.study not in studies]
        return Results(settings, (*kept, *added))

    def write(self, folder: Path) -> Path:
        """Write `results.json`, whole or not at all; the file's path."""
        path = folder / FILE
        content = {
            "settings": self.settings,
            "figures": [attrs.asdict(figure) for figure in self.figures],
        }
        write_whole(path, json.dumps(content, indent=1, allow_nan=False) + "\n")
        return path


def read_results(folder: Path) -> Results:
    """The results in a folder. Raises WorkloadError if there are none to read."""
    path = folder / FILE
    accepted = "results that `patton study --out` has written"
    try:
        content = json.loads(path.read_text("utf-8"))
        figures = tuple(Figure(**row) for row in content["figures"])
        for figure in figures:
            figure.check()
        return Results(dict(content["settings"]), figures)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WorkloadError(str(path), 0, str(error), accepted) from error


def write_whole(path: Path, text: str) -> None:
    """Replace a file in one move, so that an interruption leaves the old one.

    Others may write the same file at once: the last one to end wins.
    """
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        part.write_text(text, "utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive values (Paper 5.3)."""
    return exp(sum(log(value) for value in values) / len(values))


def shown(value: float | None) -> str:
    """A number with four significant digits, nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
