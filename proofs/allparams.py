"""Proofs for all parameters at once: digits of mixed-radix numbers.

With every parameter unknown, the address functions are full of products, quotients and
remainders of unknowns. Here they are functions that the solver knows nothing about
(see `proofs.lemmas`), and each operator that the shipped code uses cites the lemmas
that speak about its operands: a sum that has a product in it may be a number with one
more digit, and a quotient undoes such a sum. The lemmas guard themselves with premises
of their own, so that it is sound to cite any of them at any terms; what is chosen here
decides only what can be proved, never what is true.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import mod, mul, truediv
from typing import Any, NamedTuple

import z3

from proofs import lemmas
from proofs.lemmas import DIV, MOD, MUL, Lemma
from proofs.numbers import Named, Number, Term, Truth, Work

# The operators on solver terms: `truediv` is what z3 calls its integer quotient.
_MEANINGS = {"MUL": mul, "DIV": truediv, "MOD": mod}


_Cited = tuple[object, ...]  # a lemma's name and the solver's numbers of its terms


class Addend(NamedTuple):
    """A summand; if it is a product, also the factors."""

    term: Term
    factors: tuple[Digits, Digits] | None = None


class Digits(Number):
    """A number that remembers the sum or difference it is, and what it is below."""

    __slots__ = ("_found_below", "addends", "difference")
    work: AllParameters

    def __init__(
        self,
        work: AllParameters,
        addends: Iterable[Addend],
        found_below: Iterable[Digits] = (),
    ) -> None:
        self.addends = tuple(addends)
        self.difference: tuple[Digits, Digits] | None = None
        self._found_below = tuple(found_below)
        term = self.addends[0].term
        for addend in self.addends[1:]:
            term = term + addend.term
        super().__init__(work, term)

    @property
    def bounds(self) -> list[Digits]:
        """Numbers that are likely greater; they only choose which lemmas are cited."""
        ahead = [*self._found_below, *self.work.above(self)]
        found: dict[int, Digits] = {}
        while ahead:
            bound = ahead.pop(0)
            if bound.term.get_id() not in found:
                found[bound.term.get_id()] = bound
                ahead += self.work.above(bound)
        return list(found.values())

    @property
    def factors(self) -> tuple[Digits, Digits] | None:
        """The two factors of a number that is nothing but a product."""
        return self.addends[0].factors if len(self.addends) == 1 else None


class AllParameters(Work):
    """Numbers of which nothing is known but premises and lemmas."""

    def __init__(self) -> None:
        super().__init__()
        self._facts: dict[_Cited, Named] = {}
        self.instances: dict[_Cited, Named] = {}  # of lemmas; works may share them
        self._above: dict[int, list[Digits]] = {}
        self._searched: set[int] = set()  # terms in which numerals were looked for

    @property
    def facts(self) -> list[Named]:
        """The instances of lemmas that were cited."""
        return list(self._facts.values())

    def share(self, other: Work) -> None:
        """Take instances of lemmas from another work, and leave new ones there."""
        assert isinstance(other, AllParameters)
        self.instances = other.instances

    def cite(self, lemma: Lemma, **terms: Term) -> None:
        """Let the solver know a lemma at the given terms."""
        key = (lemma.name, *(term.get_id() for term in terms.values()))
        if key in self._facts:
            return
        if key not in self.instances:
            # An instance keeps its terms alive, so that their numbers stay theirs.
            self.instances[key] = Named(lemma.name, lemma.instance(**terms))
        self._facts[key] = self.instances[key]
        if any(z3.is_int_value(terms[name]) for name in lemma.operands):
            self._tell_numerals(self._facts[key].term)

    def assume(self, name: str, condition: Any) -> None:
        """Add a premise; if it puts numbers in order, remember what is above what."""
        super().assume(name, condition)
        if isinstance(condition, Truth) and condition.order is not None:
            left, right = map(self._digits, condition.order)
            self._above.setdefault(left.term.get_id(), []).append(right)

    def _tell_numerals(self, term: Term) -> None:
        """Say what operators mean where an operand is a numeral; solvers know that."""
        if term.get_id() in self._searched:
            return
        self._searched.add(term.get_id())
        children = term.children()
        for child in children:
            self._tell_numerals(child)
        meaning = _MEANINGS.get(term.decl().name())
        if meaning is None:
            return
        a, b = children
        if z3.is_int_value(b) or (meaning is mul and z3.is_int_value(a)):
            fact = term == meaning(a, b)
            self._facts[fact.get_id(),] = Named("numeral", fact)

    def remind(self, lemma: Lemma, **numbers: Any) -> None:
        """Cite a lemma at numbers, where no operator of the code does."""
        self.cite(lemma, **{name: self.lift(n).term for name, n in numbers.items()})

    def above(self, number: Digits) -> list[Digits]:
        """What premises say the number is not above."""
        return self._above.get(number.term.get_id(), [])

    def variable(self, name: str) -> Digits:
        """An unknown."""
        return Digits(self, [Addend(z3.Int(name))])

    def constant(self, value: int) -> Digits:
        """The number that is always `value`."""
        return Digits(self, [Addend(z3.IntVal(value))])

    def add(self, left: Number, right: Number) -> Number:
        """The sum, which may be a leading part with one more digit."""
        addends = [
            addend
            for addend in (*self._digits(left).addends, *self._digits(right).addends)
            if not _is_zero(addend.term)
        ]
        plain = Digits(self, addends or [Addend(z3.IntVal(0))])
        bounds: list[Digits] = []
        for i, (_, factors) in enumerate(plain.addends):
            rest = plain.addends[:i] + plain.addends[i + 1 :]
            if factors is not None and rest:
                bounds += self._combine(*factors, Digits(self, rest))
        return Digits(self, plain.addends, bounds)

    def subtract(self, left: Number, right: Number) -> Number:
        """The difference, of which only the solver knows the structure."""
        if _is_zero(right.term):
            return left
        a, b = self._digits(left), self._digits(right)
        number = Digits(self, [Addend(a.term - b.term)], a.bounds)
        number.difference = a, b
        return number

    def multiply(self, left: Number, right: Number) -> Number:
        """The product, which may be a number with a last digit of zero."""
        a, b = self._digits(left), self._digits(right)
        if _is_zero(a.term) or _is_zero(b.term):
            return self.constant(0)
        for x, y in ((a, b), (b, a)):
            self.cite(lemmas.NOT_SMALLER, a=x.term, b=y.term)
        self.cite(lemmas.NOT_NEGATIVE, a=a.term, b=b.term)
        self._distribute(a, b)
        bounds = self._combine(a, b, self.constant(0))
        return Digits(self, self._product(a, b).addends, bounds)

    def divide(self, left: Number, right: Number) -> tuple[Number, Number]:
        """Quotient and remainder; a product as divisor also digit by digit."""
        super().divide(left, right)
        if _is_zero(left.term):
            return self.constant(0), self.constant(0)
        return self._split(self._digits(left), self._digits(right))

    def _split(self, x: Digits, m: Digits) -> tuple[Digits, Digits]:
        for lemma in (lemmas.SPLIT, lemmas.QUOTIENT, lemmas.SMALL):
            self.cite(lemma, x=x.term, m=m.term)
        bounds = list(_cofactors(x.bounds, m))
        for bound in bounds:
            self.cite(lemmas.DIGIT, x=x.term, m=m.term, A=bound.term)
        if m.factors is not None:
            for p, q in (m.factors, m.factors[::-1]):
                self.cite(lemmas.NESTED, x=x.term, m=p.term, n=q.term)
                self._split(self._split(x, p)[0], q)
        return (
            Digits(self, [Addend(DIV(x.term, m.term))], bounds),
            Digits(self, [Addend(MOD(x.term, m.term))], [m]),
        )

    def _combine(self, a: Digits, b: Digits, rest: Digits) -> list[Digits]:
        """Cite what `a b + rest` is if rest is a digit below either factor."""
        bounds = []
        for high, low in ((a, b), (b, a)):
            operands = {"a": high.term, "b": rest.term, "m": low.term}
            self.cite(lemmas.COMBINE, **operands)
            for bound in high.bounds:
                self.cite(lemmas.BOUND, A=bound.term, **operands)
                bounds.append(self._product(bound, low))
        return bounds

    def _product(self, a: Digits, b: Digits) -> Digits:
        """A product and what is known of any."""
        self.cite(lemmas.COMMUTE, a=a.term, b=b.term)
        if a.factors is not None:
            p, q = a.factors
            self.cite(lemmas.ASSOCIATE, a=p.term, b=q.term, m=b.term)
        return Digits(self, [Addend(MUL(a.term, b.term), (a, b))])

    def _distribute(self, a: Digits, m: Digits) -> None:
        """Cite that a factor meets every summand of the other one."""
        if a.difference is not None:
            whole, part = a.difference
            self.cite(lemmas.DISTRIBUTE, a=a.term, b=part.term, m=m.term)
            for number in (whole, part):
                self._product(number, m)
        while len(a.addends) > 1:
            head, last = Digits(self, a.addends[:-1]), Digits(self, a.addends[-1:])
            self.cite(lemmas.DISTRIBUTE, a=head.term, b=last.term, m=m.term)
            for part in (head, last):
                self._product(part, m)
            a = head

    def _digits(self, number: Number) -> Digits:
        assert isinstance(number, Digits)
        return number


def _cofactors(bounds: Iterable[Digits], divisor: Digits) -> Iterable[Digits]:
    """What a quotient is below if the dividend is below a multiple of the divisor."""
    for bound in bounds:
        if bound.factors is not None:
            a, b = bound.factors
            if b.term.eq(divisor.term):
                yield a
            elif a.term.eq(divisor.term):
                yield b


def _is_zero(term: Term) -> bool:
    return bool(z3.is_int_value(term) and term.as_long() == 0)
