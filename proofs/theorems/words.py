"""The words of the specification mean what they say.

Machine and claims share a few words (`spec.state`): full, due, held and so on. A word
that meant something else would change both sides alike and be noticed by neither. Here
they are spelled out once more.
"""

from __future__ import annotations

from collections.abc import Iterator

from proofs.logic import Formulas
from proofs.machines import about_machine, any_state
from proofs.numbers import Term, Truth, Work
from proofs.theorem import Claim, Swap
from spec import state
from spec.state import State


def given(space: Work, lg: Formulas) -> tuple[Work, Formulas, State]:
    """Any state with all invariants."""
    return space, lg, any_state(space, lg)


def claim(space: Work, lg: Formulas, s: State) -> Iterator[Claim]:
    """Each word, said in other words."""
    r, b, p = lg.arguments("rbp")
    tokens = lg.tokens

    def has(q: Term) -> Term:
        return lg.or_(s.binder(q, b), s.sharer(q, b))

    def is_free(i: Term) -> Term:
        return lg.not_(s.occupied(p, i))

    def is_taken(x: Term, i: Term) -> Term:
        return lg.implies(s.owns(r, x), s.occupied(x, i))

    last = s.tail(r)
    adopted = lg.and_(
        *(lg.adoption, s.sharer(r, last), lg.eq(s.pair(last), p)),
        lg.forall("r", lambda q: lg.not_(s.owns(q, p))),
        lg.exists("i", is_free),
    )
    complete = lg.and_(s.in_slot(b), lg.eq(s.confirmed(b), tokens))
    meanings = {
        "full": (state.full(lg, s, b), lg.eq(s.written(b), tokens)),
        "due": (state.due(lg, s, b), complete),
        "holds": (state.holds(lg, s, r, b), has(r)),
        "held": (state.held(lg, s, b), lg.exists("r", has)),
        "room": (state.room(lg, s, p), lg.exists("i", is_free)),
        "packed": (state.packed(lg, s, r), lg.forall("pi", is_taken)),
        "adoptable": (state.adoptable(lg, s, r, p), adopted),
    }
    for word, (said, meant) in meanings.items():
        yield Claim(word, Truth(space, lg.eq(said, meant)))


THEOREMS = (
    about_machine(
        "words_mean_what_they_say",
        "INV-SEALED",
        "every state",
        given,
        claim,
        planted=(
            Swap("spec.state.full", "lg.eq(s.written(b), lg.tokens)", "True"),
            Swap("spec.state.due", "lg.eq(s.confirmed(b), lg.tokens)", "False"),
            Swap("spec.state.room", "lg.not_(s.occupied(p, i))", "s.occupied(p, i)"),
        ),
    ),
)
