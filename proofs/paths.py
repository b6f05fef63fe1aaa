"""Shipped code that branches, followed along every path that is possible.

A branch on a symbolic condition asks the solver which ways are open. If both are, the
code is run again from the start for the other one. Every path has the conditions that
led there among its premises, and its own obligations; that the ways not gone are closed
is one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import z3

from proofs.numbers import Named, Term, Truth, Work, conjunction, negation

W = TypeVar("W", bound=Work)

# That a way is closed a solver finds in few steps, if at all; that it is open can take
# very many. A way that only seems to be open costs another path, and no more.
_FEW_STEPS = 500_000

THIS_WAY = "this way"  # the name of premises that a path adds

_Turn = tuple[bool, bool]  # the way, and whether the other one was open too


def all_paths(
    make_work: Callable[[], W], run: Callable[[W], None]
) -> Iterator[tuple[W, list[Named]]]:
    """Run with fresh works until all ways have been gone, one work a path.

    With each work comes what has to follow from the premises without those of the path:
    that where code could branch and did not, there was no other way.
    """
    ahead: list[list[_Turn]] = [[]]
    first: W | None = None
    while ahead:
        work = make_work()
        first = first or work
        work.share(first)
        turns = _Turns(work, ahead.pop())
        work.turn = turns.take
        run(work)
        ahead += turns.others
        yield work, turns.closed


class _Turns:
    """The turns of one run: the first ones given, then whatever is possible."""

    def __init__(self, work: Work, given: list[_Turn]) -> None:
        self.others: list[list[_Turn]] = []  # beginnings of runs still to be made
        self.closed: list[Named] = []
        self._work = work
        self._given = given
        self._taken: list[_Turn] = []
        self._chosen: list[Term] = []
        self._told: set[int] = set()
        self._solver = z3.Solver()
        self._solver.set("rlimit", _FEW_STEPS)

    def take(self, condition: Truth) -> bool:
        """Which way to go; it becomes a premise."""
        other = negation(condition)
        step = len(self._taken)
        if step < len(self._given):
            turn, is_choice = self._given[step]
        elif self._is_closed(other):
            turn, is_choice = True, False
        else:
            is_choice = turn = not self._is_closed(condition)
            if is_choice:
                self.others.append([*self._taken, (False, True)])
        self._taken.append((turn, is_choice))
        way = condition if turn else other
        if is_choice:
            self._chosen.append(way.term)
        elif step >= len(self._given):  # else the run before has said so
            only = z3.Implies(conjunction(self._chosen), way.term)
            self.closed.append(Named("no other way", only))
        self._work.assume(THIS_WAY, way)
        return turn

    def _is_closed(self, way: Truth) -> bool:
        known = [*self._work.premises, *self._work.facts]
        for item in known:
            key = item.term.get_id()
            if key not in self._told:
                self._told.add(key)
                self._solver.add(item.term)
        return bool(self._solver.check(way.term) == z3.unsat)
