from __future__ import annotations

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import pytest
import z3

from proofs.allparams import AllParameters
from proofs.lemmas import COMBINE, VARIABLES
from proofs.numbers import Named, Term
from proofs.solver import Goal, ask
from proofs.spaces import AllGeometries
from proofs.theorem import Theorem, readings
from proofs.theorems import comes_back, onto, shift

SOME = (comes_back.THEOREMS[1], onto.THEOREMS[2], shift.THEOREMS[0])


def truth(term: Term, values: dict[str, int]) -> int | bool:
    """A fact on plain integers, with the operators that the lemmas forgot."""

    @cache
    def value(index: int) -> int | bool:
        node = by_id[index]
        parts = [value(child.get_id()) for child in node.children()]
        name = node.decl().name()
        operations: dict[str, Callable[..., int | bool]] = {
            "MUL": lambda a, b: a * b,
            "DIV": lambda a, b: a // b if b else 0,
            "MOD": lambda a, b: a % b if b else a,
            "*": lambda a, b: a * b,
            "div": lambda a, b: a // b,
            "mod": lambda a, b: a % b,
            "+": lambda *of: sum(of),
            "-": lambda a, b: a - b,
            "<": lambda a, b: a < b,
            "<=": lambda a, b: a <= b,
            ">": lambda a, b: a > b,
            ">=": lambda a, b: a >= b,
            "=": lambda a, b: a == b,
            "=>": lambda a, b: not a or b,
            "and": lambda *of: all(of),
        }
        if z3.is_int_value(node):
            return int(node.as_long())
        if z3.is_true(node):
            return True
        return operations[name](*parts) if parts else values[name]

    by_id: dict[int, Term] = {}
    ahead = [term]
    while ahead:
        node = ahead.pop()
        if node.get_id() not in by_id:
            by_id[node.get_id()] = node
            ahead += node.children()
    return value(term.get_id())


def names_in(facts: list[Named]) -> set[str]:
    found: set[str] = set()
    ahead = [fact.term for fact in facts]
    seen: set[int] = set()
    while ahead:
        node = ahead.pop()
        if node.get_id() not in seen:
            seen.add(node.get_id())
            ahead += node.children()
            if z3.is_const(node) and not z3.is_int_value(node):
                found.add(node.decl().name())
    return found


@pytest.mark.parametrize("theorem", SOME, ids=lambda theorem: theorem.name)
def test_facts_are_true(theorem: Theorem) -> None:
    """Every fact that a proof uses beside its premises holds on any integers."""
    spaces: list[AllGeometries] = []

    def make() -> AllGeometries:
        spaces.append(AllGeometries())
        return spaces[-1]

    list(readings(theorem, make))
    facts, random = spaces[0].facts, Random(3)
    names = sorted(names_in(facts))
    for _ in range(2):
        values = {name: random.randint(1, 6) for name in names}
        assert [] == [fact for fact in facts if not truth(fact.term, values)]


def test_false_facts_would_be_found() -> None:
    """The test above can fail."""
    x, y = z3.Ints("x y")
    lemma = COMBINE.instance(a=x, b=y, m=y)
    guard = COMBINE.abstracted.arg(0).arg(1)  # that the digit is below its base
    guard = z3.substitute(guard, (VARIABLES["b"], y), (VARIABLES["m"], y))
    broken = z3.substitute(lemma, (guard, z3.BoolVal(val=True)))

    assert truth(lemma, {"x": 2, "y": 3})
    assert not truth(broken, {"x": 2, "y": 3})


def proved(work: AllParameters, claim: Any) -> bool:
    terms = [item.term for item in (*work.premises, *work.facts)]
    return ask(Goal("", terms, claim.term).question).status == "proved"


def test_digits_come_back_from_a_number_of_three() -> None:
    """Horner's form and its inverse, with all digits and both bases unknown."""
    work = AllParameters()
    a, b, c, m, n = (work.variable(name) for name in "abcmn")
    for digit, base in ((b, m), (c, n)):
        work.assume("a digit", digit < base)
        work.assume("not negative", digit >= 0)
    number = (a * m + b) * n + c

    assert proved(work, number % n == c)
    assert proved(work, number // n % m == b)
    assert proved(work, number // n // m == a)
    assert not proved(work, number // m == a)


def test_without_a_premise_nothing_is_proved() -> None:
    """A digit that may be as large as its base is not found again."""
    work = AllParameters()
    a, b, m = (work.variable(name) for name in "abm")
    work.assume("a digit", b <= m)
    work.assume("not negative", b >= 0)

    assert not proved(work, (a * m + b) % m == b)


def test_numerals_mean_what_they_say() -> None:
    """Operators with a numeral are those that solvers know."""
    work = AllParameters()
    x = work.variable("x")
    work.assume("positive", x >= 1)

    assert proved(work, x * 16 // 16 == x)
    assert proved(work, (x * 4 + 3) % 4 == 3)
    assert proved(work, x * 1 == x)
    assert proved(work, x * 0 + 0 // x == 0)
