"""Counterexamples in small layouts, run on plain integers and told in words.

When the proof for all geometries fails, its solver knows too little arithmetic for its
answer to mean much. In a single small layout all divisors are numbers and a solver
finds a counterexample if there is one. Before it is reported the shipped functions run
on it, so that what is printed does happen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from random import Random
from typing import Any

import attrs

from patton.layout import Layout
from proofs.layouts import small_layouts
from proofs.solver import ask
from proofs.spaces import DrawnCase, OneCase, OneLayout
from proofs.theorem import Bug, Case, Claim, Theorem, readings


@attrs.frozen
class Counterexample:
    """A case that keeps the premises and breaks claims."""

    case: Case
    broken: tuple[Claim, ...]

    def lines(self) -> Iterator[str]:
        """The counterexample in the project's words."""
        for claim in self.broken:
            yield f"not true: {claim.says}"
        if self.case.layout is not None:
            yield f"  on {layout_in_words(self.case.layout())}"
        yield "  at " + ", ".join(_counted(self.case.values.items()))
        for claim in self.broken:
            for name, value in claim.shown.items():
                yield f"  {name}: {_in_words(value)}"


def search(theorem: Theorem, bug: Bug | None = None) -> Counterexample | None:
    """The first counterexample among small cases; smallest layouts first."""
    for case in _candidates(theorem, bug):
        found = replay(theorem, case, bug)
        if found is not None:
            return found
    return None


def replay(
    theorem: Theorem, case: Case, bug: Bug | None = None
) -> Counterexample | None:
    """Run one case on plain integers; what it breaks, if it keeps the premises."""
    space = OneCase(case.layout() if case.layout else None, case.values)
    space.dropped = bug.dropped if bug else frozenset()
    case_given = theorem.given(space)
    try:
        broken = tuple(c for c in theorem.claim(*case_given) if not c.holds)
    except ArithmeticError as error:
        broken = (Claim("the code runs", False, {"error": repr(error)}),)
    found = Counterexample(attrs.evolve(case, values=space.asked), broken)
    return found if broken and not space.broken else None


def keeps_premises(theorem: Theorem, case: Case) -> bool:
    """Whether the case is one that the theorem speaks about."""
    space = OneCase(case.layout() if case.layout else None, case.values)
    theorem.given(space)
    return not space.broken


def claims_about(theorem: Theorem, case: Case) -> int:
    """How much the theorem claims of a case; nothing if its code goes another way."""
    space = OneCase(case.layout() if case.layout else None, case.values)
    return sum(1 for _ in theorem.claim(*theorem.given(space)))


def _candidates(theorem: Theorem, bug: Bug | None) -> Iterable[Case]:
    if theorem.examples is not None:
        return theorem.examples()
    if theorem.witness is None:
        return ()
    if theorem.branches:
        return _drawn(theorem, draws=400)
    return chain(_drawn(theorem, draws=20), _solved(theorem, bug))


def _drawn(theorem: Theorem, draws: int) -> Iterator[Case]:
    """Cases at random: cheap, and most faults are not rare."""
    random = Random(5)
    for layout in small_layouts():
        for _ in range(draws):
            space = DrawnCase(layout, random)
            theorem.given(space)
            yield Case(partial(_same, layout), space.values)


def _solved(theorem: Theorem, bug: Bug | None) -> Iterator[Case]:
    for layout in small_layouts():
        for reading in readings(theorem, partial(OneLayout, layout), bug):
            for goal in reading.goals():
                answer = ask(goal.question)
                if answer.status == "refuted":
                    yield Case(partial(_same, layout), answer.values)


def _same(layout: Layout) -> Layout:
    return layout


def layout_in_words(layout: Layout) -> str:
    """A layout by its sizes."""
    device, model = layout.device, layout.model
    parts = (
        f"{device.channels} channels of {device.banks} banks",
        f"{device.rows} rows of {device.bursts_per_row} bursts of {device.lanes} lanes",
        f"{model.layers} layers of {model.kv_heads} heads of {model.head_dim} elements",
        f"blocks of {layout.block_tokens} tokens, {layout.pair_blocks} to a pair",
    )
    return ", ".join(parts)


def _in_words(value: Any) -> str:
    fields = getattr(value, "_asdict", None)
    return ", ".join(_counted(fields().items())) if fields else str(value)


def _counted(items: Iterable[tuple[str, Any]]) -> Iterator[str]:
    return (f"{name.replace('_', ' ')} {value}" for name, value in items)
