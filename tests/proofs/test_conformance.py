"""The specification that is proved and the one that runs are one and the same text.

Python runs it with dicts, a solver reads it as terms. Both take the same random steps
here, with the same requests, blocks and pairs, and must agree about each clause of the
guard and about each cell of the next state; also for steps that are refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Any

import attrs
import pytest
import z3

from proofs.finite_scope import SIZES, TOKENS, Few, cell, keys
from spec.logic import Finite, Table
from spec.machine import PHASES, SORTS_OF, TRANSITIONS, after, move_of
from spec.state import SIGNATURE, State
from tests.spec.walk import Walk, flat

STEPS = 10_000


def test_both_readings_take_the_same_steps() -> None:
    terms, random = Terms(), Random(1)
    seen: Counter[str] = Counter()
    steps = 0
    while steps < STEPS:
        walk = Walk(small(random), random, first_state())
        terms.begin(walk)
        for _ in range(100):
            steps += 1
            name, arguments = draw(walk, random)
            allowed, changed = terms.compare(walk, name, arguments)
            if allowed:
                terms.enter(walk, changed)
                seen[name] += 1

    assert set(TRANSITIONS) == set(seen)
    assert STEPS // 2 < seen.total() < STEPS


def test_a_step_that_one_reading_takes_otherwise_is_noticed() -> None:
    terms, random = Terms(), Random(0)
    walk = Walk(small(random), random, first_state())
    terms.begin(walk)
    terms.put("active", (0,), True)  # the solver's state alone

    with pytest.raises(pytest.fail.Exception, match="LIFE-FINISH"):
        terms.compare(walk, "start", (0,))


def small(random: Random) -> Finite:
    """The scope of `Few` in Python."""
    universe: dict[str, Any] = {sort: range(size) for sort, size in SIZES.items()}
    universe["n"] = range(TOKENS + 1)
    stripes = random.choice([1, 2])

    def aligned(slot: int, pair: int, place: int) -> bool:
        return slot % stripes == (pair + place) % stripes

    options = random.choice([(True, True)] * 3 + [(True, False), (False, True)])
    adoption, staging = options
    return Finite(TOKENS, aligned, universe, adoption=adoption, staging=staging)


def first_state() -> State:
    """Nothing happened; functions that mean nothing yet give the first thing."""
    values = {name: kind.partition(">") for name, kind in SIGNATURE.items()}
    return State(
        **{n: Table(0 if is_f else False) for n, (_, is_f, _) in values.items()}
    )


def draw(walk: Walk, random: Random) -> tuple[str, tuple[int, ...]]:
    """An allowed step, mostly; else whatever comes to mind."""
    drawn = walk.draw() if random.random() < 0.8 else None
    if drawn is not None:
        return drawn[:2]
    name = random.choice([move.__name__ for move in PHASES[walk.s.phase()]])
    return name, walk.arguments(name)


@attrs.define
class Terms:
    """The specification as terms, with a model that has the state of a walk.

    steps: by name the guard's clauses and the next state's cells, each equal to an
    unknown that is given what Python found.
    """

    lg: Few = attrs.field(factory=Few)
    model: Any = attrs.field(factory=z3.Model)
    steps: dict[str, dict[str, Any]] = attrs.field(factory=dict)
    whole: dict[str, Any] = attrs.field(factory=dict)
    things: dict[str, list[Any]] = attrs.field(init=False)
    known: dict[tuple[str, tuple[int, ...]], Any] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.things = {sort: [key[0] for key in keys(sort)] for sort in SIZES}
        for name in TRANSITIONS:
            self.steps[name] = dict(self.agreements(name))
            self.whole[name] = z3.And(*self.steps[name].values())

    def agreements(self, name: str) -> Iterator[tuple[str, Any]]:
        s = self.lg.state()
        move = move_of(self.lg, s, name, *self.lg.arguments(SORTS_OF[name]))
        t = after(s, move)
        for clause, allowed in move.guard.items():
            yield clause, allowed == z3.Bool(f"allowed by {clause}")
        for field in move.changes:
            domain, _, value = SIGNATURE[field].partition(">")
            cells = [
                getattr(t, field)(*key) == cell(f"next {field}", key, value)
                for key in keys(domain)
            ]
            yield field, z3.And(*cells)

    def begin(self, walk: Walk) -> None:
        """Take a walk's first state and its constants."""
        lg = walk.lg
        for name, value in {"adoption": lg.adoption, "staging": lg.staging}.items():
            self.model.update_value(z3.Bool(name), z3.BoolVal(value))
        for numbers in lg.keys("zpi"):
            self.put("aligned", numbers, lg.aligned(*numbers))
        for field, numbers in all_cells():
            self.put(field, numbers, getattr(walk.s, field)(*numbers))

    def compare(
        self, walk: Walk, name: str, arguments: tuple[int, ...]
    ) -> tuple[bool, State]:
        """Take a step both ways. Returns whether it is allowed, and the next state."""
        move = move_of(walk.lg, walk.s, name, *arguments)
        t = flat(after(walk.s, move))
        sorts = SORTS_OF[name]
        for unknown, sort, value in zip(
            self.lg.arguments(sorts), sorts, arguments, strict=True
        ):
            self.model.update_value(unknown, self.term(sort, value))
        for clause, allowed in move.guard.items():
            unknown = z3.Bool(f"allowed by {clause}")
            self.model.update_value(unknown, z3.BoolVal(allowed))
        for field, numbers in all_cells():
            if field in move.changes:
                self.put(f"next {field}", numbers, getattr(t, field)(*numbers))
        steps = self.steps[name]
        assert {*move.guard, *move.changes} == steps.keys()
        if not self.is_true(self.whole[name]):
            differ = [
                part for part, agrees in steps.items() if not self.is_true(agrees)
            ]
            pytest.fail(f"{name}{arguments}: {differ}")
        return all(move.guard.values()), t

    def is_true(self, claim: Any) -> bool:
        return bool(z3.is_true(self.model.eval(claim, model_completion=True)))

    def enter(self, walk: Walk, t: State) -> None:
        """The next state is the present one."""
        for field, numbers in all_cells():
            value = getattr(t, field)(*numbers)
            if value != getattr(walk.s, field)(*numbers):
                self.put(field, numbers, value)
        walk.s = t

    def put(self, name: str, numbers: tuple[int, ...], value: Any) -> None:
        """Give a cell its value, if it has another one."""
        if self.known.get((name, numbers)) == value:
            return
        self.known[name, numbers] = value
        kind = SIGNATURE.get(name.removeprefix("next "), "zpi")
        domain, _, to = kind.partition(">")
        key = [self.things[s][n] for s, n in zip(domain, numbers, strict=True)]
        self.model.update_value(cell(name, key, to), self.term(to, value))

    def term(self, sort: str, value: Any) -> Any:
        if sort == "n":
            return z3.IntVal(value)
        return self.things[sort][value] if sort else z3.BoolVal(value)


@cache
def all_cells() -> list[tuple[str, tuple[int, ...]]]:
    lg = Finite(TOKENS, lambda *_: True, {s: range(n) for s, n in SIZES.items()})
    return [
        (field, numbers)
        for field, kind in SIGNATURE.items()
        for numbers in lg.keys(kind.partition(">")[0])
    ]
