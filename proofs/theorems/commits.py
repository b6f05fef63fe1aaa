"""A commit is always possible and needs no memory.

Clauses LIFE-COMMIT and LIFE-PUBLISH, for any number of requests, blocks and slots. In
the reading phase of any step a block that is due can be copied. Once the step is over
it can be published: what the copy needs, its O1V, it has had all the time. From the one
to the other nothing is allocated, no place changes hands, and one slot becomes free.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from proofs.logic import Formulas
from proofs.machines import about_machine, any_state, suppose
from proofs.numbers import Term, Truth, Work
from proofs.theorem import Claim, Swap, Without
from spec.enabled import possible
from spec.machine import after, move_of
from spec.state import PLANNING, READING, SIGNATURE, State, due

# What is allocated: none of it may change.
MEMORY = ("bound", "pair", "place", "used", "occupied", "block_at", "owns")


def given(space: Work, lg: Formulas) -> tuple[Work, Formulas, State, Term]:
    """Any state in which a step reads, and a block that is due."""
    s = any_state(space, lg)
    (b,) = lg.arguments("b")
    suppose(space, "the step reads", lg.eq(s.phase(), READING))
    suppose(space, "the block is due", due(lg, s, b))
    return space, lg, s, b


def claim(space: Work, lg: Formulas, s: State, b: Term) -> Iterator[Claim]:
    """Copied, the step over, and published: all possible, and all in place."""
    copied = after(s, move_of(lg, s, "copy", b))
    over = attrs.evolve(copied, phase=copied.phase.set((), PLANNING))
    end = after(over, move_of(lg, over, "publish", b))
    claims = {
        "it can be copied": possible(lg, s, "copy", b),
        "it can be copied again": possible(lg, copied, "copy", b),
        "it can then be published": possible(lg, over, "publish", b),
        "its O1V is in its pair": s.occupied(s.pair(b), s.place(b)),
        "its O1V is its own": lg.eq(s.block_at(s.pair(b), s.place(b)), b),
        "its O1V is then visible": lg.and_(end.in_o1v(b), lg.not_(end.in_slot(b))),
        "its slot is then free": lg.not_(end.slot_used(s.slot(b))),
        "no slot is taken": end.slot_used.all(s.slot_used),
    }
    for name in MEMORY:
        claims[f"nothing changes in: {name}"] = _unchanged(lg, s, end, name)
    for says, holds in claims.items():
        yield Claim(says, Truth(space, holds))


def _unchanged(lg: Formulas, s: State, t: State, name: str) -> Term:
    old, new = getattr(s, name), getattr(t, name)
    sorts = SIGNATURE[name].partition(">")[0]
    return lg.forall(sorts, lambda *key: lg.eq(old(*key), new(*key)))


THEOREMS = (
    about_machine(
        "a_commit_needs_no_memory",
        "LIFE-COMMIT",
        "every state",
        given,
        claim,
        planted=(
            Without("the block is due"),
            Without("INV-GRANULE, 1"),
            Swap(
                "spec.machine.publish", "s.slot_used.remove(s.slot(b))", "s.slot_used"
            ),
            Swap("spec.machine.copy", "s.copied.add(b)", "s.copied"),
        ),
    ),
)
