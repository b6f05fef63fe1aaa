"""The specification read by a solver, with a few things of each kind.

What holds of any number of things holds of these. Here a solver decides every question,
and a counterexample is a state that can be read: each cell of a map is an unknown of
its own, named as in "binder(request 0, block 1)".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from typing import Any

import z3

from proofs.logic import Formulas, boolean
from proofs.numbers import Term, conjunction
from proofs.solver import RLIMIT, Goal
from spec.logic import SORTS
from spec.state import SIGNATURE

# Enough for two requests to share a block and for one of them to hold two more.
SIZES = {"r": 2, "b": 3, "p": 2, "i": 2, "z": 2}
TOKENS = 2


class Few(Formulas):
    """As many things of each kind as SIZES says, and blocks of TOKENS tokens."""

    def __init__(self) -> None:
        super().__init__({sort: things[0].sort() for sort, things in _things().items()})
        self.tokens = z3.IntVal(TOKENS)
        self.aligned = _cells("aligned", "zpi", "")

    def unknown(self, name: str) -> Callable[..., Term]:
        """A table with an unknown in each cell."""
        domain, _, value = SIGNATURE[name.partition(" ")[0]].partition(">")
        return _cells(name, domain, value)

    def forall(self, sorts: str, claim: Callable[..., Term]) -> Term:
        """The claim for all values of some sorts."""
        return conjunction(boolean(claim(*key)) for key in keys(sorts))

    def exists(self, sorts: str, claim: Callable[..., Term]) -> Term:
        """The claim for some values."""
        return z3.Or(*(boolean(claim(*key)) for key in keys(sorts)))


@cache
def _things() -> Mapping[str, Sequence[Term]]:
    things: dict[str, Sequence[Term]] = {"n": list(map(z3.IntVal, range(TOKENS + 1)))}
    for letter, size in SIZES.items():
        name = SORTS[letter]
        values = [f"{name} {number}" for number in range(size)]
        things[letter] = z3.EnumSort(f"few {name}s", values)[1]
    return things


def keys(sorts: str) -> Iterator[tuple[Term, ...]]:
    """All combinations of things of some sorts."""
    return product(*(_things()[sort] for sort in sorts))


def cell(name: str, key: Sequence[Term], value: str) -> Term:
    """The unknown in one cell of a table."""
    sort = _things()[value][0].sort() if value else z3.BoolSort()
    inside = ", ".join(part.decl().name() for part in key)
    return z3.Const(f"{name}({inside})", sort)


def _cells(name: str, domain: str, value: str) -> Callable[..., Term]:
    table = {_ids(key): cell(name, key, value) for key in keys(domain)}
    rows = list(zip(keys(domain), table.values(), strict=True))
    # By the solver's numbers of terms; the terms are kept, so that theirs stay theirs.
    found: dict[tuple[int, ...], tuple[Term, tuple[Term, ...]]] = {}

    def look_up(*at: Term) -> Term:
        ids = _ids(at)
        if ids in table:
            return table[ids]
        if ids not in found:
            found[ids] = _choice(rows, at), at
        return found[ids][0]

    return look_up


def _choice(rows: Sequence[tuple[tuple[Term, ...], Term]], at: Sequence[Term]) -> Term:
    """The one of the cells that has the key."""
    chosen = rows[-1][1]
    for key, here in rows[:-1]:
        is_there = conjunction(a == k for a, k in zip(at, key, strict=True))
        chosen = z3.If(is_there, here, chosen)
    return chosen


def _ids(key: Sequence[Term]) -> tuple[int, ...]:
    return tuple(part.get_id() for part in key)


def counterexample(goals: Sequence[Goal]) -> Iterator[str]:
    """For the first claim that is false of a few things: the state, in words."""
    for goal in goals:
        solver = z3.Solver()
        solver.set("rlimit", RLIMIT)
        solver.add(*goal.premises, z3.Not(goal.claim))
        if solver.check() == z3.sat:
            yield f"not true: {goal.name}"
            yield from (f"  {line}" for line in _in_words(solver.model()))
            return


def _in_words(model: Any) -> Iterator[str]:
    """What is true in a model; all else is not, or does not matter."""
    found = [
        (entry.name(), model[entry]) for entry in model.decls() if not entry.arity()
    ]
    for name, value in sorted(found, key=lambda item: item[0]):
        if z3.is_true(value):
            yield name
        elif not z3.is_false(value):
            yield f"{name} = {str(value).strip('|')}"
