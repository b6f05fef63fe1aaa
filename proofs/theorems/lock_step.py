"""Keys and Values run out of memory together, because a block has one granule index.

Clause MAP-INDEX, for any number of requests, blocks and pairs. Take the machine twice,
once for the cache of Keys and once for that of Values, and let both see the same
events. As long as a block has the same index in both, a place is free for its Key
exactly if it is free for its Value, so that neither cache can evict by itself. The
paper's equal sizes do not give that: let Values choose an index of their own, by the
same rules, and after one event the caches differ; let them differ, and a new block
finds a place in one of them and none in the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs

from proofs.logic import Formulas
from proofs.machines import about_machine, any_state, suppose
from proofs.numbers import Term, Truth, Work
from proofs.theorem import Claim, Without
from spec.enabled import possible
from spec.machine import SORTS_OF, TRANSITIONS, after, move_of
from spec.state import SIGNATURE, State

# What the two caches may choose each for itself, if nothing rules it out.
PLACES = {"pair", "place", "used", "occupied", "block_at", "owns"}

_BINDINGS = ("bind_own", "bind_fresh", "bind_adopting")


@attrs.frozen(eq=False)
class Caches:
    """The machine for Keys and for Values, and indices that are chosen for a block."""

    lg: Formulas
    keys: State
    values: State
    key_index: list[Term]
    value_index: list[Term]


def given(space: Work, lg: Formulas) -> tuple[Work, Caches]:
    """Two caches of the same blocks, alike so far."""
    keys, values = any_state(space, lg), any_state(space, lg, " of Values")
    caches = Caches(
        lg, keys, values, lg.arguments("pi", " of Key"), lg.arguments("pi", " of Value")
    )
    for name in SIGNATURE:
        premise = "places are alike so far" if name in PLACES else "both hold the same"
        suppose(space, premise, _alike(lg, keys, values, name))
    pairs = zip(caches.key_index, caches.value_index, strict=True)
    suppose(space, "one granule index", lg.and_(*(lg.eq(a, b) for a, b in pairs)))
    return space, caches


def claim(space: Work, c: Caches) -> Iterator[Claim]:
    """Alike after any event, and room for a block in both or in neither."""
    lg = c.lg
    for name in TRANSITIONS:
        given_to_keys, given_to_values = _arguments(c, name)
        key_move = move_of(lg, c.keys, name, *given_to_keys)
        value_move = move_of(lg, c.values, name, *given_to_values)
        happens = lg.and_(*key_move.guard.values(), *value_move.guard.values())
        keys, values = after(c.keys, key_move), after(c.values, value_move)
        alike = lg.and_(*(_alike(lg, keys, values, field) for field in SIGNATURE))
        says = f"places are alike after: {name}"
        yield Claim(says, Truth(space, lg.implies(happens, alike)))
        allowed = (lg.and_(*move.guard.values()) for move in (key_move, value_move))
        says = f"allowed in both or in neither: {name}"
        yield Claim(says, Truth(space, lg.eq(*allowed)))
    r, b = lg.arguments("rb", " to be placed")
    room = (_has_room(lg, s, r, b) for s in (c.keys, c.values))
    yield Claim("both or neither have room for a block", Truth(space, lg.eq(*room)))


def _arguments(c: Caches, name: str) -> tuple[list[Term], list[Term]]:
    """The event's arguments in either cache, which differ in a new block's index."""
    sorts = SORTS_OF[name]
    arguments = c.lg.arguments(sorts, " of " + name)
    if name not in _BINDINGS:
        return arguments, arguments
    r, b = arguments[:2]
    return [r, b, *c.key_index], [r, b, *c.value_index]


def _alike(lg: Formulas, s: State, t: State, name: str) -> Term:
    one, other = getattr(s, name), getattr(t, name)
    same: Callable[..., Any] = lambda *key: lg.eq(one(*key), other(*key))  # noqa: E731
    return lg.forall(SIGNATURE[name].partition(">")[0], same)


def _has_room(lg: Formulas, s: State, r: Term, b: Term) -> Term:
    def takes(p: Term, i: Term) -> Term:
        return lg.or_(*(possible(lg, s, way, r, b, p, i) for way in _BINDINGS))

    return lg.exists("pi", takes)


THEOREMS = (
    about_machine(
        "keys_and_values_run_out_together",
        "MAP-INDEX",
        "two caches, every event",
        given,
        claim,
        planted=(Without("one granule index"), Without("places are alike so far")),
        apart=True,
    ),
)
