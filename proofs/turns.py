"""Things done one after the other, any number of times, or just a few times.

Theorems about commands in turn are proved by induction on how many have been carried
out: something holds before the first, and if after some, then after one more. What a
command does to the device is stated there once more, in a formula; that the streams
which the generators make are made of such commands is validated stream by stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import attrs
import z3

from proofs.numbers import Term, Truth, Work, conjunction
from proofs.theorem import Bug, Claim, Theorem

FEW = 3  # of each thing, and of commands


@attrs.frozen(eq=False)
class Turns:
    """How many commands there are, and the sorts that they are about."""

    commands: Term
    sorts: Mapping[str, Term]
    things: Mapping[str, Sequence[Term]]  # all of a sort, if they are few

    def each(self, sort: str, says: Callable[[Term], Term], name: str = "") -> Term:
        """That something holds of everything of a sort."""
        if self.things:
            return conjunction(map(says, self.things[sort]))
        one = z3.Const(name or f"any {sort}", self.sorts[sort])
        return z3.ForAll(one, says(one))

    def each_command(self, says: Callable[[Term], Term], name: str = "j") -> Term:
        """That something holds of every command."""

        def of_one(i: Term) -> Term:
            return z3.Implies(z3.And(0 <= i, i < self.commands), says(i))

        return self.each("command", of_one, name)

    def function(self, name: str, *sorts: str) -> Callable[..., Term]:
        """A function of which nothing is known, from sorts to the last of them."""
        found: Callable[..., Term] = z3.Function(name, *map(self.sorts.get, sorts))
        return found


def any_number() -> Turns:
    """Any number of commands about any number of things."""
    sorts = {name: z3.DeclareSort(name.capitalize()) for name in ("thing", "value")}
    return Turns(z3.Int("commands"), _with_numbers(sorts), {})


@cache
def a_few() -> Turns:
    """Two commands about three things."""
    names = [f"thing {number}" for number in range(FEW)]
    sort, things = z3.EnumSort("few things", names)
    sorts = {"thing": sort, "value": z3.DeclareSort("Value")}
    numbers = [z3.IntVal(number) for number in range(2)]
    found = {"thing": things, "command": numbers}
    return Turns(z3.IntVal(2), _with_numbers(sorts), found)


def _with_numbers(sorts: dict[str, Term]) -> dict[str, Term]:
    numbers = dict.fromkeys(("command", "number"), z3.IntSort())
    return sorts | numbers | {"truth": z3.BoolSort(), "real": z3.RealSort()}


def suppose_all(space: Work, premises: Mapping[str, Term]) -> None:
    """Assume formulas."""
    for name, term in premises.items():
        space.assume(name, Truth(space, term))


def claimed_all(space: Work, claims: Mapping[str, Term]) -> Iterator[Claim]:
    """Formulas as claims of a theorem."""
    for says, term in claims.items():
        yield Claim(says, Truth(space, term))


def by_induction(
    name: str,
    clause: str,
    given: Callable[[Work, Turns], tuple[Work, Any]],
    claim: Callable[[Work, Any], Iterator[Claim]],
    *bugs: Bug,
) -> Theorem:
    """A theorem about any number of turns; its counterexamples are found in a few."""
    return Theorem(
        name=name,
        clause=clause,
        kind="induction",
        given=lambda space: given(space, any_number()),
        claim=claim,
        witness=None,
        few=lambda space: given(space, a_few()),
        planted=bugs,
    )
