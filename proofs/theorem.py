"""What a theorem is, and how its statement is read in a space.

The files of `proofs/theorems` have four sections each. Given: for which numbers, under
which premises. Claim: what the shipped functions do with them. Witness: a case that
keeps the premises, so that the theorem is not empty. Planted bugs: changes with which
the same proof must fail, so that it is not deaf.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar

import attrs
import z3

from patton.layout import Layout
from proofs.numbers import Named, Term, Truth, Work, conjunction, every
from proofs.paths import THIS_WAY, all_paths
from proofs.solver import Goal
from proofs.swaps import swapped

S = TypeVar("S", bound=Work)


class Claim(NamedTuple):
    """One thing that a theorem claims. shown: what to print if it fails."""

    says: str
    holds: Any
    shown: Mapping[str, Any] = {}


@attrs.frozen
class Case:
    """A layout, by name of a function of `proofs.layouts`, and a value per number."""

    layout: Callable[[], Layout] | None
    values: Mapping[str, int]


@attrs.frozen
class Swap:
    """A bug: in the shipped `function`, `new` stands where `old` stood."""

    function: str
    old: str
    new: str

    @property
    def says(self) -> str:
        """The bug in words."""
        return f"{self.function}: {self.old} -> {self.new}"

    dropped: frozenset[str] = frozenset()

    def planted(self) -> AbstractContextManager[None]:
        """The time in which the bug is there."""
        return swapped(self.function, self.old, self.new)


@attrs.frozen
class Without:
    """A bug of the theorem itself: it forgets a premise."""

    premise: str

    @property
    def says(self) -> str:
        """The bug in words."""
        return f"without the premise: {self.premise}"

    @property
    def dropped(self) -> frozenset[str]:
        """Premises that are not assumed."""
        return frozenset({self.premise})

    def planted(self) -> AbstractContextManager[None]:
        """Nothing of the shipped code changes."""
        return nullcontext()


Bug = Swap | Without


@attrs.frozen(kw_only=True)
class Theorem:
    """A statement about shipped functions, with what shows that it says something.

    given: makes the arguments of `claim` in a space. witness: None if the statement is
    pure logic; then `few` is its "given" in a scope so small that a solver finds out
    whether premises can be kept and claims broken. kind: of statement. branches:
    whether the shipped code may branch. apart: whether claims are proved one by one
    rather than together. examples: cases in which to look for a
    counterexample; by default a solver looks through all cases of small layouts.
    """

    name: str
    clause: str
    given: Callable[..., tuple[Any, ...]]
    claim: Callable[..., Iterable[Claim]]
    witness: Case | None
    planted: tuple[Bug, ...]
    kind: str = "all geometries"
    few: Callable[..., tuple[Any, ...]] | None = None
    branches: bool = False
    apart: bool = False
    examples: Callable[[], Iterable[Case]] | None = None

    @property
    def is_about_layouts(self) -> bool:
        """Whether it can be read in a single layout."""
        return self.witness is not None and self.witness.layout is not None


class Reading(NamedTuple):
    """A theorem's statement along one path: what is known, and what is to be shown."""

    known: list[Named]
    claims: list[Claim]
    owed: list[Named]
    closed: list[Named]  # ways that the code did not go
    apart: bool = False

    @property
    def premise_terms(self) -> list[Term]:
        """All that is known, as terms."""
        return [item.term for item in self.known]

    def goals(self) -> Iterator[Goal]:
        """All claims together, and all that the operators and the branches owe."""
        if self.apart:
            yield from self.single_goals()
            return
        claim = every(claim.holds for claim in self.claims)
        if claim is not True:
            yield Goal("claims", self.premise_terms, _term(claim))
        yield from self._owed_goals()

    def single_goals(self) -> Iterator[Goal]:
        """The same with the claims one by one."""
        for claim in self.claims:
            if claim.holds is not True:
                yield Goal(claim.says, self.premise_terms, _term(claim.holds))
        yield from self._owed_goals()

    def _owed_goals(self) -> Iterator[Goal]:
        if self.owed:
            owed = conjunction(item.term for item in self.owed)
            yield Goal("operators", self.premise_terms, owed)
        if self.closed:
            before = [item.term for item in self.known if item.name != THIS_WAY]
            closed = conjunction(item.term for item in self.closed)
            yield Goal("paths", before, closed)

    @property
    def contradiction(self) -> Goal:
        """What is refuted if the premises can be kept."""
        return Goal("premises", self.premise_terms, z3.BoolVal(False))


def _term(condition: Any) -> Term:
    return condition.term if isinstance(condition, Truth) else z3.BoolVal(condition)


def readings(
    theorem: Theorem, make_space: Callable[[], S], bug: Bug | None = None
) -> Iterator[Reading]:
    """The theorem's statement in a symbolic space, path by path."""
    claims: list[Claim] = []

    def run(space: S) -> None:
        space.dropped = bug.dropped if bug else frozenset()
        if not theorem.branches:
            space.turn = None
        claims[:] = theorem.claim(*theorem.given(space))

    for path, closed in all_paths(make_space, run):
        known = [*path.premises, *path.facts]
        yield Reading(known, [*claims], path.obligations, closed, theorem.apart)
