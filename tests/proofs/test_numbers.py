from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest
import z3

from proofs.numbers import (
    Number,
    SymbolicUseError,
    Work,
    either,
    every,
    implies,
    negation,
    same,
)


def unknown(name: str = "x", work: Work | None = None) -> Number:
    return Number(work or Work(), z3.Int(name))


REFUSED: dict[str, Callable[[Any], object]] = {
    "if": lambda x: 1 if x else 0,
    "if on a comparison": lambda x: 1 if x == 3 else 0,
    "chained comparison": lambda x: 0 <= x < 3,
    "and": lambda x: x > 0 and x < 3,
    "not": lambda x: not x > 0,
    "in": lambda x: x in (1, 2),
    "max": lambda x: max(x, 3),
    "min": lambda x: min(x, 3),
    "sorted": lambda x: sorted([x, 1]),
    "hash": hash,
    "a key of a dict": lambda x: {x: 1},
    "a key of a set of conditions": lambda x: {x == 1},
    "int": int,
    "float": float,
    "index": lambda x: [1, 2][x],
    "range": range,
    "true division": lambda x: x / 2,
    "divmod": lambda x: divmod(x, 2),
    "shift": lambda x: x >> 1,
    "mask": lambda x: x & 7,
    "power": lambda x: x**2,
    "a bool": lambda x: x + True,
    "a float": lambda x: x + 1.0,
    "a bool as divisor": lambda x: x // True,
    "an array": lambda x: x + np.arange(2),
    "an array on the left": lambda x: np.arange(2) + x,
    "a number of NumPy": lambda x: x + np.int64(1),
    "a number of another proof": lambda x: x + unknown("y"),
}


@pytest.mark.parametrize("use", REFUSED)
def test_what_a_solver_cannot_follow_is_refused(use: str) -> None:
    """No use of a symbolic number goes on with a wrong answer."""
    with pytest.raises(TypeError):
        REFUSED[use](unknown())


def test_refusals_say_that_code_branched() -> None:
    """The message says that code branched."""
    with pytest.raises(SymbolicUseError, match="a branch on"):
        bool(unknown() == 3)


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "negative": lambda a, b: -a + b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators_are_those_of_integers(name: str) -> None:
    """On numbers, a number and an integer, and the other way round."""
    operation, random = OPERATIONS[name], Random(1)
    for _ in range(60):
        a, b = random.randint(-20, 20), random.randint(1, 9)
        work = Work()
        x, y = unknown("x", work), unknown("y", work)
        expected = operation(a, b)

        for found in (operation(x, y), operation(x, b), operation(a, y)):
            values = ((x.term, z3.IntVal(a)), (y.term, z3.IntVal(b)))
            value = z3.simplify(z3.substitute(found.term, *values))
            assert str(expected) == str(value)


def test_division_owes_a_positive_divisor_and_no_negative_dividend() -> None:
    """Each obligation is collected once."""
    work = Work()
    x, y = unknown("x", work), unknown("y", work)
    for _ in range(2):
        x // y + x % y

    owed = {(item.name, str(item.term)) for item in work.obligations}
    expected = {
        ("divisor is positive", "y > 0"),
        ("dividend is not negative", "x >= 0"),
    }
    assert expected == owed
    assert 2 == len(work.obligations)


def test_connectives_of_bools_are_bools() -> None:
    """Statements are also read on plain integers."""
    assert every([True, True]) is True
    assert every([]) is True
    assert either([False, True]) is True
    assert either([]) is False
    assert negation(condition=False) is True
    assert implies(premise=True, conclusion=False) is False
    assert same((1, 2), (1, 2)) is True


def test_connectives_of_conditions_are_conditions() -> None:
    """With one condition among them the solver decides."""
    x = unknown()
    valid = [
        implies(every([x > 1, True]), x > 0),
        either([x > 0, negation(x > 0)]),
        implies(same((x, 1), (2, 1)), x == 2),
    ]

    for condition in valid:
        solver = z3.Solver()
        solver.add(z3.Not(condition.term))
        assert z3.unsat == solver.check()


def test_conditions_of_two_proofs_do_not_mix() -> None:
    """Premises of one proof say nothing in another."""
    with pytest.raises(ValueError, match="too many values"):
        every([unknown() > 0, unknown("y") > 0])
