"""The only nonlinear facts that the proofs rely on, each proved once.

Products, quotients and remainders of two unknowns are beyond what solvers decide
reliably. So the proofs treat them as unknown functions MUL, DIV and MOD, and know of
them only what is said here, at the very terms that the shipped code computes. Each
lemma is one formula, proved for all integers with the true operators; an instance is
that formula with the operators forgotten (`abstract`) and terms substituted. Forgetting
only weakens: what holds for all functions holds for the true ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
import z3

from proofs.numbers import Term, conjunction
from proofs.solver import Goal

_BINARY = [z3.IntSort()] * 3
MUL = z3.Function("MUL", *_BINARY)
DIV = z3.Function("DIV", *_BINARY)
MOD = z3.Function("MOD", *_BINARY)
_FUNCTIONS = {z3.Z3_OP_MUL: MUL, z3.Z3_OP_IDIV: DIV, z3.Z3_OP_MOD: MOD}


def abstract(term: Term) -> Term:
    """The formula with `*`, `div` and `mod` replaced by MUL, DIV and MOD."""
    children = [abstract(child) for child in term.children()]
    if not children:
        return term
    function = _FUNCTIONS.get(term.decl().kind(), term.decl())
    return function(*children)


_a, _b, _m, _n, _x, _A = z3.Ints("a b m n x A")
VARIABLES: Mapping[str, Term] = {
    "a": _a,
    "b": _b,
    "m": _m,
    "n": _n,
    "x": _x,
    "A": _A,
}


def _operands(term: Term) -> Iterator[str]:
    for child in term.children():
        if child.children():
            yield from _operands(child)
        elif term.decl().kind() in _FUNCTIONS:
            yield child.decl().name()


@attrs.frozen(eq=False)
class Lemma:
    """A formula that holds for all integers; names of variables as in VARIABLES."""

    name: str
    says: str
    formula: Term
    abstracted: Term
    operands: frozenset[str]  # the variables that stand right below an operator

    @property
    def goal(self) -> Goal:
        """What is to be shown, with the true operators."""
        return Goal(self.name, [], self.formula)

    def instance(self, **terms: Term) -> Term:
        """The formula, operators forgotten, at the given terms."""
        pairs = [(VARIABLES[name], term) for name, term in terms.items()]
        return z3.substitute(self.abstracted, *pairs)


def _lemma(name: str, says: str, premises: list[Term], claim: Term) -> Lemma:
    formula = z3.Implies(conjunction(premises), claim)
    return Lemma(name, says, formula, abstract(formula), frozenset(_operands(formula)))


COMMUTE = _lemma("commute", "a b = b a", [], _a * _b == _b * _a)
ASSOCIATE = _lemma("associate", "(a b) m = a (b m)", [], _a * _b * _m == _a * (_b * _m))
DISTRIBUTE = _lemma(
    "distribute", "(a + b) m = a m + b m", [], (_a + _b) * _m == _a * _m + _b * _m
)
NOT_NEGATIVE = _lemma(
    "not negative", "0 <= a, b => 0 <= a b", [_a >= 0, _b >= 0], _a * _b >= 0
)
NOT_SMALLER = _lemma(
    "not smaller", "1 <= a, b => a <= a b", [_a >= 1, _b >= 1], _a <= _a * _b
)
MONOTONE = _lemma(
    "monotone", "a <= b, 0 <= m => a m <= b m", [_a <= _b, _m >= 0], _a * _m <= _b * _m
)
COMBINE = _lemma(
    "combine",
    "0 <= b < m => (a m + b) div m = a, (a m + b) mod m = b",
    [_b >= 0, _b < _m],
    z3.And((_a * _m + _b) / _m == _a, (_a * _m + _b) % _m == _b),
)
BOUND = _lemma(
    "bound",
    "0 <= a < A, 0 <= b < m => 0 <= a m + b < A m",
    [_a >= 0, _a < _A, _b >= 0, _b < _m],
    z3.And(_a * _m + _b >= 0, _a * _m + _b < _A * _m),
)
SPLIT = _lemma(
    "split",
    "0 < m => x = (x div m) m + x mod m, 0 <= x mod m < m",
    [_m > 0],
    z3.And((_x / _m) * _m + _x % _m == _x, _x % _m >= 0, _x % _m < _m),
)
QUOTIENT = _lemma(
    "quotient", "0 <= x, 0 < m => 0 <= x div m", [_x >= 0, _m > 0], _x / _m >= 0
)
DIGIT = _lemma(
    "digit",
    "0 <= x < A m => x div m < A",
    [_x >= 0, _m > 0, _x < _A * _m],
    _x / _m < _A,
)
SMALL = _lemma(
    "small",
    "0 <= x < m => x div m = 0, x mod m = x",
    [_x >= 0, _x < _m],
    z3.And(_x / _m == 0, _x % _m == _x),
)
FIT = _lemma(
    "fit", "0 < m, a m <= x => a <= x div m", [_m > 0, _a * _m <= _x], _a <= _x / _m
)
NESTED = _lemma(
    "nested",
    "0 < m, n => (x div m) div n = x div (m n)",
    [_m > 0, _n > 0, _x >= 0],
    (_x / _m) / _n == _x / (_m * _n),
)

LEMMAS = (
    COMMUTE,
    ASSOCIATE,
    DISTRIBUTE,
    NOT_NEGATIVE,
    NOT_SMALLER,
    MONOTONE,
    COMBINE,
    BOUND,
    SPLIT,
    QUOTIENT,
    DIGIT,
    SMALL,
    FIT,
    NESTED,
)

# Near misses that a prover must refute, or else it proves nothing.
FALSE_LEMMAS = (
    _lemma(
        "combine, b = m", "", [_b >= 0, _b <= _m, _m > 0], (_a * _m + _b) / _m == _a
    ),
    _lemma("bound, b = m", "", [_a >= 0, _a < _A, _b <= _m], _a * _m + _b < _A * _m),
    _lemma("digit, x = A m", "", [_x >= 0, _m > 0, _x <= _A * _m], _x / _m < _A),
    _lemma("split, m = 0", "", [_m >= 0], (_x / _m) * _m + _x % _m == _x),
    _lemma("not smaller, a = 0", "", [_b >= 0], _a <= _a * _b),
)
