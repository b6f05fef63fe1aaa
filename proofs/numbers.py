"""Numbers that a solver reasons about and that shipped code takes for integers.

A `Number` holds a solver's term. Its operators are those of Python's integers, and
whatever a solver cannot follow is refused instead of answered wrongly: a raw solver
term compares equal to nothing (`bool(i == j)` is False without a word), divides another
way than Python, and hides all that behind `if`. What makes the answer that of Python is
collected as obligations: divisors are positive and dividends are not negative.

A `Work` is one attempt at a proof: it makes numbers, and keeps premises and
obligations. What an operator does beyond building a term, each kind of work decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, NoReturn, TypeAlias

import z3

# z3 has no types of its own; this says that a formula or a term is meant.
Term: TypeAlias = Any


class SymbolicUseError(TypeError):
    """Code did with a symbolic number what only a concrete one allows."""


class Named(NamedTuple):
    """A formula and what it says, in words."""

    name: str
    term: Term


class Truth:
    """A condition on symbolic numbers. Whether it holds may not be asked.

    order: the sides, if the condition is that the left number is not above the right.
    """

    __slots__ = ("order", "term", "work")
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self, work: Work, term: Term, order: tuple[Number, Number] | None = None
    ) -> None:
        self.work = work
        self.term = term
        self.order = order

    def __bool__(self) -> bool:
        return self.work.decide(self)

    def __repr__(self) -> str:
        return f"Truth({self.term})"


class Number:
    """A symbolic integer with the operators `+ - * // %` and comparisons."""

    __slots__ = ("term", "work")
    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # an array on the left would make an array of terms

    def __init__(self, work: Work, term: Term) -> None:
        self.work = work
        self.term = term

    def __repr__(self) -> str:
        return f"Number({self.term})"

    def __bool__(self) -> bool:
        return bool(self != 0)

    def _refuse(self, *_: object) -> NoReturn:
        raise SymbolicUseError(f"{self.term} is not one integer")

    __int__ = __index__ = __float__ = __round__ = _refuse
    __divmod__ = __rdivmod__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __rpow__ = __lshift__ = __rshift__ = __and__ = __or__ = _refuse

    def __add__(self, other: object) -> Number:
        return self.work.add(self, self.work.lift(other))

    def __radd__(self, other: object) -> Number:
        return self.work.add(self.work.lift(other), self)

    def __sub__(self, other: object) -> Number:
        return self.work.subtract(self, self.work.lift(other))

    def __rsub__(self, other: object) -> Number:
        return self.work.subtract(self.work.lift(other), self)

    def __neg__(self) -> Number:
        return self.work.subtract(self.work.lift(0), self)

    def __mul__(self, other: object) -> Number:
        return self.work.multiply(self, self.work.lift(other))

    def __rmul__(self, other: object) -> Number:
        return self.work.multiply(self.work.lift(other), self)

    def __floordiv__(self, other: object) -> Number:
        return self.work.divide(self, self.work.lift(other))[0]

    def __rfloordiv__(self, other: object) -> Number:
        return self.work.divide(self.work.lift(other), self)[0]

    def __mod__(self, other: object) -> Number:
        return self.work.divide(self, self.work.lift(other))[1]

    def __rmod__(self, other: object) -> Number:
        return self.work.divide(self.work.lift(other), self)[1]

    def __eq__(self, other: object) -> Truth:  # type: ignore[override]
        right = self.work.lift(other)
        return Truth(self.work, self.term == right.term, (self, right))

    def __ne__(self, other: object) -> Truth:  # type: ignore[override]
        return Truth(self.work, self.term != self.work.lift(other).term)

    def __lt__(self, other: object) -> Truth:
        right = self.work.lift(other)
        return Truth(self.work, self.term < right.term, (self, right))

    def __le__(self, other: object) -> Truth:
        right = self.work.lift(other)
        return Truth(self.work, self.term <= right.term, (self, right))

    def __gt__(self, other: object) -> Truth:
        return self.work.lift(other) < self

    def __ge__(self, other: object) -> Truth:
        return self.work.lift(other) <= self


class Work:
    """Makes numbers and keeps what is assumed and what is owed.

    premises: assumed by the theorem, but for those named in `dropped`. obligations:
    owed by the operators that were used. turn: which way code goes that branches, if
    it may. rounds_down: whether code may rely on Python's way to divide negative
    numbers. Subclasses say what an operator makes.
    """

    def __init__(self) -> None:
        self.premises: list[Named] = []
        self.dropped: frozenset[str] = frozenset()
        self.turn: Callable[[Truth], bool] | None = None
        self.rounds_down = False
        self._owed: dict[str, Named] = {}

    @property
    def facts(self) -> list[Named]:
        """What else is known, whatever the theorem assumes."""
        return []

    def share(self, other: Work) -> None:
        """Make what is the same in another work of the theorem only once, if it can."""

    @property
    def obligations(self) -> list[Named]:
        """What the operators owe, each once."""
        return list(self._owed.values())

    def owe(self, name: str, term: Term) -> None:
        """Add an obligation; constant ones that hold are not worth a query."""
        if not z3.is_true(z3.simplify(term)):
            self._owed.setdefault(f"{name}: {term.sexpr()}", Named(name, term))

    def assume(self, name: str, condition: Any) -> None:
        """Add a premise."""
        term = condition.term if isinstance(condition, Truth) else condition
        assert term is True or z3.is_bool(term), f"premise {name} is {term}"
        if term is not True and name not in self.dropped:
            self.premises.append(Named(name, term))

    def decide(self, condition: Truth) -> bool:
        """Which way code goes that branches on the condition."""
        if self.turn is None:
            raise SymbolicUseError(f"a branch on {condition.term}")
        return self.turn(condition)

    def lift(self, value: object) -> Number:
        """The number for an operand: a number of this work or a plain integer."""
        if isinstance(value, Number) and value.work is self:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return self.constant(value)
        kind = type(value).__name__
        raise SymbolicUseError(f"{kind} {value!r} meets a symbolic number")

    def constant(self, value: int) -> Number:
        """The number that is always `value`."""
        return Number(self, z3.IntVal(value))

    def add(self, left: Number, right: Number) -> Number:
        """The sum."""
        return Number(self, left.term + right.term)

    def subtract(self, left: Number, right: Number) -> Number:
        """The difference."""
        return Number(self, left.term - right.term)

    def multiply(self, left: Number, right: Number) -> Number:
        """The product."""
        return Number(self, left.term * right.term)

    def divide(self, left: Number, right: Number) -> tuple[Number, Number]:
        """Quotient and remainder.

        The solver's quotient and remainder are Python's where the divisor is positive.
        That the dividend is not negative is owed too, so that languages which round
        towards zero agree with the shipped code.
        """
        self.owe("divisor is positive", right.term > 0)
        if not self.rounds_down:
            self.owe("dividend is not negative", left.term >= 0)
        quotient = Number(self, left.term / right.term)
        return quotient, Number(self, left.term % right.term)


def conjunction(terms: Iterable[Term]) -> Term:
    """That all terms hold; of no terms, too, which not every solver can read else."""
    found = list(terms)
    return z3.And(*found) if found else z3.BoolVal(True)


def every(conditions: Iterable[Any]) -> Any:
    """Whether all conditions hold; a bool if all are bools."""
    terms, work = _terms(conditions)
    return all(terms) if work is None else Truth(work, z3.And(*terms))


def either(conditions: Iterable[Any]) -> Any:
    """Whether any condition holds; a bool if all are bools."""
    terms, work = _terms(conditions)
    return any(terms) if work is None else Truth(work, z3.Or(*terms))


def negation(condition: Any) -> Any:
    """Whether the condition does not hold."""
    if isinstance(condition, Truth):
        return Truth(condition.work, z3.Not(condition.term))
    return not condition


def implies(premise: Any, conclusion: Any) -> Any:
    """Whether the conclusion holds if the premise does."""
    return either((negation(premise), conclusion))


def same(left: Iterable[Any], right: Iterable[Any]) -> Any:
    """Whether two elements, or two addresses, agree in every field."""
    return every(a == b for a, b in zip(left, right, strict=True))


def _terms(conditions: Iterable[Any]) -> tuple[list[Any], Work | None]:
    found = list(conditions)
    works = {id(item.work): item.work for item in found if isinstance(item, Truth)}
    if not works:
        return found, None
    (work,) = works.values()  # conditions of two proofs do not mix
    return [
        item.term if isinstance(item, Truth) else z3.BoolVal(item) for item in found
    ], work
