"""What no clause forbids is possible.

Clause LIFE-OPEN. In every state with all invariants, for any number of requests and
blocks: a new block finds a place unless no pair has one for it, any bound block can be
shared, any held block given up, a first write is never refused for want of a slot, a
block that is due is copied, and the step goes on. Without this, a machine that refuses
everything would do nothing wrong.
"""

from __future__ import annotations

from collections.abc import Iterator

from proofs.logic import Formulas
from proofs.machines import about_machine, any_state, claimed
from proofs.numbers import Work
from proofs.theorem import Claim, Swap, Without
from spec.enabled import enabled
from spec.state import State


def given(space: Work, lg: Formulas) -> tuple[Work, Formulas, State]:
    """Any state with all invariants."""
    return space, lg, any_state(space, lg)


def claim(space: Work, lg: Formulas, s: State) -> Iterator[Claim]:
    """What the specification says must be possible in it."""
    yield from claimed(space, "is possible", enabled(lg, s))


THEOREMS = (
    about_machine(
        "what_no_clause_forbids_is_possible",
        "LIFE-OPEN",
        "every state",
        given,
        claim,
        planted=(
            Swap("spec.machine.share", "lg.not_(s.grown(r))", "lg.not_(s.active(r))"),
            Swap("spec.machine.end", "s.active(r)", "s.grown(r)"),
            Swap(
                "spec.machine.write_direct", "s.slot_used(z)", "s.slot_used(s.slot(b))"
            ),
            Swap("spec.machine._bound", "lg.not_(s.bound(b))", "s.bound(b)"),
            Without("INV-LEVELS, 2"),
        ),
    ),
)
