"""Copies made one after the other do what copies made all at once would do.

Clause MAP-COMMIT, for all contents, any number of copies and any order. If targets
differ from one another and from all sources (`commit_copies`), then at the end every
target holds what its source held at the beginning, and every other burst what it held
itself. Sources keep their content at every moment, so that a commit which was
interrupted can be begun again.

By induction on the copies made: the three clauses of `so_far` hold before the first,
and if they hold after some, they hold after one more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import z3

from proofs.numbers import Term, Work
from proofs.theorem import Claim, Without
from proofs.turns import Turns, by_induction, claimed_all, suppose_all


@attrs.frozen(eq=False)
class Copies:
    """Copies of which `done` are made; what a burst holds after so many."""

    turns: Turns
    done: Term
    source: Callable[..., Term]
    target: Callable[..., Term]
    held: Callable[..., Term]

    def each_two(self, says: Callable[[Term, Term], Term]) -> Term:
        """That something holds of any two copies."""
        each = self.turns.each_command
        return each(lambda i: each(lambda j: says(i, j)), "i")

    def so_far(self, done: Term) -> dict[str, Term]:
        """What holds when so many copies are made."""
        source, target, held = self.source, self.target, self.held
        each = self.turns.each_command

        def moved(j: Term) -> Term:
            return z3.Implies(j < done, held(done, target(j)) == held(0, source(j)))

        def kept(j: Term) -> Term:
            return held(done, source(j)) == held(0, source(j))

        def aside(b: Term) -> Term:
            is_no_target = each(lambda j: b != target(j))
            return z3.Implies(is_no_target, held(done, b) == held(0, b))

        return {
            "targets hold what sources held": each(moved),
            "sources are as they were": each(kept),
            "all else is as it was": self.turns.each("thing", aside, "b"),
        }


def given(space: Work, turns: Turns) -> tuple[Work, Copies]:
    """Some copies, of which some are done and did what was to be done."""
    c = Copies(
        turns,
        z3.Int("copies done"),
        turns.function("source", "command", "thing"),
        turns.function("target", "command", "thing"),
        turns.function("held", "command", "thing", "value"),
    )

    def after_next(b: Term) -> Term:
        copied = c.held(c.done, c.source(c.done))
        written = z3.If(b == c.target(c.done), copied, c.held(c.done, b))
        return c.held(c.done + 1, b) == written

    def distinct(i: Term, j: Term) -> Term:
        return z3.Implies(c.target(i) == c.target(j), i == j)

    premises = {
        "targets differ": c.each_two(distinct),
        "no target is a source": c.each_two(lambda i, j: c.source(i) != c.target(j)),
        "the next one is made": turns.each("thing", after_next, "b"),
        "some are done": z3.And(0 <= c.done, c.done < turns.commands),
    }
    premises |= {f"after some, {says}": t for says, t in c.so_far(c.done).items()}
    suppose_all(space, premises)
    return space, c


def claim(space: Work, c: Copies) -> Iterator[Claim]:
    """Before the first, and after one more."""
    for when, done in {
        "before the first": z3.IntVal(0),
        "after one more": c.done + 1,
    }.items():
        claims = {f"{when}, {says}": term for says, term in c.so_far(done).items()}
        yield from claimed_all(space, claims)


THEOREMS = (
    by_induction(
        "copies_in_turn_are_copies_at_once",
        "MAP-COMMIT",
        given,
        claim,
        Without("targets differ"),
        Without("no target is a source"),
        Without("the next one is made"),
    ),
)
