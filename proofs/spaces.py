"""Where the statement of a theorem is read: for all geometries, for one, for one case.

A theorem asks a space for a geometry and for numbers, and says what it assumes. Its
text does not know in which space it is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Protocol

import attrs
import z3

from patton.addresses import AddressMap
from patton.layout import Layout
from proofs.allparams import AllParameters
from proofs.geometry import Geometry, premises
from proofs.lemmas import Lemma
from proofs.numbers import Number, Term, Work

# The shipped address functions compute on arrays of this width.
_WORD = 2**63


class Space(Protocol):
    """What a theorem's section "given" is written with."""

    rounds_down: bool  # whether code may divide negative numbers, as Python does

    def geometry(self) -> Geometry:
        """A geometry that keeps the premises."""

    def number(self, name: str, below: Any) -> Any:
        """A number from 0 to below `below`."""

    def count(self, name: str) -> Any:
        """A number from 1."""

    def remind(self, lemma: Lemma, **numbers: Any) -> None:
        """Point to a lemma that a proof needs at these numbers."""

    def assume(self, name: str, condition: Any) -> None:
        """Restrict the cases to those in which the condition holds."""


class AllGeometries(AllParameters):
    """Every geometry that keeps the premises: one proof for all."""

    def geometry(self) -> Geometry:
        """Unknown counts, with all premises."""
        names = [field.name for field in attrs.fields(AddressMap)]
        digits: dict[str, Any] = {name: self.variable(name) for name in names}
        # Where one count is a product of two, it is given as that product: a solver
        # that does not know what products are finds no factors.
        digits["channels_per_head"] = digits["stripes"] * digits["value_channels"]
        row_sets = self.variable("row_sets")
        digits["value_rows"] = row_sets * digits["rows_per_value"]
        around = {
            field.name: self.variable(field.name)
            for field in attrs.fields(Geometry)
            if field.name not in ("map", "row_sets")
        }
        geometry = Geometry(map=AddressMap(**digits), row_sets=row_sets, **around)
        for name, condition in premises(geometry):
            self.assume(name, condition)
        return geometry

    def count(self, name: str) -> Any:
        """An unknown from 1."""
        number = self.variable(name)
        self.assume(f"{name} is positive", number >= 1)
        return number

    def number(self, name: str, below: Any) -> Any:
        """An unknown in its bounds."""
        number = self.variable(name)
        self.assume(f"{name} is not negative", number >= 0)
        self.assume(f"{name} is below its bound", number < below)
        return number


class OneLayout(Work):
    """One layout with all its elements; every divisor is a number.

    What an operator computes also has to fit the words of NumPy's arrays.
    """

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self._layout = layout

    def geometry(self) -> Geometry:
        """The layout's own numbers, which keep the premises."""
        geometry = Geometry.of(self._layout)
        for name, condition in premises(geometry):
            assert condition, f"{self._layout.map} breaks: {name}"
        return geometry

    def count(self, name: str) -> Any:
        """An unknown from 1."""
        number = Number(self, z3.Int(name))
        self.assume(f"{name} is positive", number >= 1)
        return number

    def number(self, name: str, below: Any) -> Any:
        """An unknown in its bounds."""
        number = Number(self, z3.Int(name))
        self.assume(f"{name} is not negative", number >= 0)
        self.assume(f"{name} is below its bound", number < below)
        return number

    def remind(self, lemma: Lemma, **numbers: Any) -> None:
        """With numbers as divisors the solver needs no lemmas."""

    def add(self, left: Number, right: Number) -> Number:
        """The sum, which has to fit."""
        return self._fitting(super().add(left, right))

    def subtract(self, left: Number, right: Number) -> Number:
        """The difference, which has to fit."""
        return self._fitting(super().subtract(left, right))

    def multiply(self, left: Number, right: Number) -> Number:
        """The product, which has to fit."""
        return self._fitting(super().multiply(left, right))

    def _fitting(self, number: Number) -> Number:
        term: Term = number.term
        self.owe("no wrap", z3.And(-_WORD <= term, term < _WORD))
        return number


class OneCase:
    """One layout and one value for each number: the statement on plain integers."""

    def __init__(self, layout: Layout | None, values: Mapping[str, int]) -> None:
        self._layout = layout
        self._values = values
        self.dropped: frozenset[str] = frozenset()
        self.rounds_down = False
        self.broken: list[str] = []  # premises that the case does not keep
        self.asked: dict[str, int] = {}  # its values, in the order of the theorem

    def geometry(self) -> Geometry:
        """The layout's own numbers."""
        assert self._layout is not None, "the theorem is about a layout"
        geometry = Geometry.of(self._layout)
        for name, condition in premises(geometry):
            self.assume(name, condition)
        return geometry

    def count(self, name: str) -> Any:
        """The value that the case has for it."""
        value = self.asked[name] = self._values[name]
        self.assume(f"{name} is positive", value >= 1)
        return value

    def remind(self, lemma: Lemma, **numbers: Any) -> None:
        """Integers need no lemmas."""

    def number(self, name: str, below: Any) -> Any:
        """The value that the case has for it."""
        value = self.asked[name] = self._values[name]
        self.assume(f"{name} is below its bound", 0 <= value < below)
        return value

    def assume(self, name: str, condition: Any) -> None:
        """Note a premise that the case breaks."""
        if not condition and name not in self.dropped:
            self.broken.append(name)


class DrawnCase(OneCase):
    """One layout, with a value for each number drawn at random."""

    def __init__(self, layout: Layout, random: Random) -> None:
        self.values: dict[str, int] = {}
        super().__init__(layout, self.values)
        self._random = random

    def count(self, name: str) -> Any:
        """A small value."""
        self.values[name] = self._random.randint(1, 12)
        return super().count(name)

    def number(self, name: str, below: Any) -> Any:
        """A value below the bound."""
        self.values[name] = self._random.randrange(below)
        return super().number(name, below)
