"""What theorems about the specification's machine are given, and how they claim.

A theorem of this kind is about states and events, not about addresses. Its premises
hold of any number of requests, blocks, pairs and slots; its witness and the
counterexamples of its planted bugs are found among a few of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from proofs.finite_scope import Few
from proofs.logic import Formulas, Unbounded, boolean, numbered
from proofs.numbers import Term, Truth, Work
from proofs.theorem import Bug, Claim, Theorem
from spec.invariants import invariants
from spec.machine import SORTS_OF, after, move_of
from spec.state import State

Claims = Mapping[str, Sequence[Any]]


@attrs.frozen(eq=False)
class Event:
    """A state `s` with all invariants, and the next, `t`, after an allowed event."""

    lg: Formulas
    s: State
    t: State
    name: str
    arguments: Sequence[Term]


def suppose(space: Work, name: str, condition: Any) -> None:
    """Assume a formula of the specification."""
    space.assume(name, Truth(space, boolean(condition)))


def any_state(space: Work, lg: Formulas, suffix: str = "") -> State:
    """A state that has all invariants."""
    s = lg.state(suffix)
    suppose(space, "a block has a token", lg.tokens >= 1)
    for name, holds in numbered(invariants(lg, s)):
        suppose(space, name + suffix, holds)
    return s


def any_event(space: Work, lg: Formulas, name: str) -> Event:
    """Any event of one kind that the machine allows in a state with all invariants."""
    s = any_state(space, lg)
    arguments = lg.arguments(SORTS_OF[name])
    move = move_of(lg, s, name, *arguments)
    for clause, allowed in move.guard.items():
        suppose(space, f"allowed by {clause}", allowed)
    return Event(lg, s, after(s, move), name, arguments)


def claimed(space: Work, what: str, claims: Claims) -> Iterator[Claim]:
    """Claims of the specification as those of a theorem. what: kind, in words."""
    for name, holds in numbered(claims):
        yield Claim(f"{name}: {what}", Truth(space, holds))


def about_machine(
    name: str,
    clause: str,
    kind: str,
    given: Callable[..., tuple[Any, ...]],
    claim: Callable[..., Iterator[Claim]],
    planted: tuple[Bug, ...],
    *,
    apart: bool = False,
) -> Theorem:
    """A theorem whose section "given" takes a space and a reading of the language."""
    return Theorem(
        name=name,
        clause=clause,
        kind=kind,
        given=lambda space: given(space, Unbounded()),
        claim=claim,
        witness=None,
        few=lambda space: given(space, Few()),
        planted=planted,
        apart=apart,
    )
