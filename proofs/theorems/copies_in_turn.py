"""Copies made one after the other do what copies made all at once would do.

Clause MAP-COMMIT, for all contents, any number of copies and any order. If targets
differ from one another and from all sources (`commit_copies`), then at the end every
target holds what its source held at the beginning, and every other burst what it held
itself. Sources keep their content at every moment, so that a commit which was
interrupted can be begun again.

By induction on the copies made: the three clauses of `so_far` hold before the first,
and if they hold after some, they hold after one more. A solver that is asked about any
number of copies finds proofs but no counterexamples; those come from two copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial

import attrs
import z3

from proofs.numbers import Term, Truth, Work
from proofs.theorem import Claim, Theorem, Without


@attrs.frozen(eq=False)
class Scope:
    """Which copies and bursts there are, and how to say something of all of them."""

    burst: Term  # the sort
    copies: Term  # how many
    all_bursts: Callable[[str, Callable[[Term], Term]], Term]
    all_numbers: Callable[[str, Callable[[Term], Term]], Term]


@cache
def any_number() -> Scope:
    """Any number of copies among any number of bursts."""
    sort = z3.DeclareSort("Burst")

    def forall(variable: Term, says: Callable[[Term], Term]) -> Term:
        return z3.ForAll(variable, says(variable))

    return Scope(
        burst=sort,
        copies=z3.Int("copies"),
        all_bursts=lambda name, says: forall(z3.Const(name, sort), says),
        all_numbers=lambda name, says: forall(z3.Int(name), says),
    )


@cache
def two_of_three() -> Scope:
    """Two copies among three bursts."""
    sort, bursts = z3.EnumSort("FewBursts", ("first", "second", "third"))
    numbers = [z3.IntVal(number) for number in range(2)]
    return Scope(
        burst=sort,
        copies=z3.IntVal(2),
        all_bursts=lambda _, says: z3.And(*map(says, bursts)),
        all_numbers=lambda _, says: z3.And(*map(says, numbers)),
    )


class Copies:
    """Copies of which `done` are made; what a burst holds after so many."""

    def __init__(self, scope: Scope) -> None:
        bits = z3.DeclareSort("Bits")
        self.scope = scope
        self.source = z3.Function("source", z3.IntSort(), scope.burst)
        self.target = z3.Function("target", z3.IntSort(), scope.burst)
        self.held = z3.Function("held", z3.IntSort(), scope.burst, bits)
        self.done = z3.Int("done")

    def each(self, name: str, says: Callable[[Term], Term]) -> Term:
        """That something holds of every copy."""

        def of_one(i: Term) -> Term:
            return z3.Implies(z3.And(0 <= i, i < self.scope.copies), says(i))

        return self.scope.all_numbers(name, of_one)

    def each_two(self, says: Callable[[Term, Term], Term]) -> Term:
        """That something holds of any two copies."""
        return self.each("i", lambda i: self.each("j", lambda j: says(i, j)))

    def so_far(self, done: Term) -> Iterator[tuple[str, Term]]:
        """What holds when so many copies are made."""
        source, target, held = self.source, self.target, self.held

        def moved(j: Term) -> Term:
            return z3.Implies(j < done, held(done, target(j)) == held(0, source(j)))

        def kept(j: Term) -> Term:
            return held(done, source(j)) == held(0, source(j))

        def aside(b: Term) -> Term:
            is_no_target = self.each("j", lambda j: b != target(j))
            return z3.Implies(is_no_target, held(done, b) == held(0, b))

        yield "targets hold what sources held", self.each("j", moved)
        yield "sources are as they were", self.each("j", kept)
        yield "all else is as it was", self.scope.all_bursts("b", aside)


def given(space: Work, scope: Scope) -> tuple[Work, Copies]:
    """Some copies, of which some are done and did what was to be done."""
    c = Copies(scope)

    def after_next(b: Term) -> Term:
        copied = c.held(c.done, c.source(c.done))
        written = z3.If(b == c.target(c.done), copied, c.held(c.done, b))
        return c.held(c.done + 1, b) == written

    def distinct(i: Term, j: Term) -> Term:
        return z3.Implies(c.target(i) == c.target(j), i == j)

    def apart(i: Term, j: Term) -> Term:
        return c.source(i) != c.target(j)

    premises = {
        "targets differ": c.each_two(distinct),
        "no target is a source": c.each_two(apart),
        "the next one is made": scope.all_bursts("b", after_next),
        "some are done": z3.And(0 <= c.done, c.done < scope.copies),
    }
    premises |= {f"after some, {name}": term for name, term in c.so_far(c.done)}
    for name, term in premises.items():
        space.assume(name, Truth(space, term))
    return space, c


def claim(space: Work, c: Copies) -> Iterator[Claim]:
    """Before the first, and after one more."""
    for name, term in c.so_far(z3.IntVal(0)):
        yield Claim(f"before the first, {name}", Truth(space, term))
    for name, term in c.so_far(c.done + 1):
        yield Claim(f"after one more, {name}", Truth(space, term))


THEOREMS = (
    Theorem(
        name="copies_in_turn_are_copies_at_once",
        clause="MAP-COMMIT",
        kind="induction",
        given=partial(given, scope=any_number()),
        claim=claim,
        witness=None,
        few=partial(given, scope=two_of_three()),
        planted=(
            Without("targets differ"),
            Without("no target is a source"),
            Without("the next one is made"),
        ),
    ),
)
