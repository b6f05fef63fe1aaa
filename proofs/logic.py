"""The specification read by a solver, with any number of requests, blocks and pairs.

`spec` states machine, invariants and effects once, as formulas over maps. Python runs
that text with dicts (`spec.logic`); here the same functions make a solver's terms. A
map is a function of keys: unknown at first, and after an event a case distinction on
top of the one before. Nothing of the specification is written again for the proofs.

`Unbounded` has a sort without any size for each kind of thing. A solver that is asked
about those finds proofs, but seldom counterexamples; those come from a few things of
each kind (`proofs.finite_scope`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import attrs
import z3

from proofs.numbers import Term, conjunction
from spec.logic import ANY, SORTS, Key, Map
from spec.state import SIGNATURE, State


@attrs.frozen(eq=False)
class TermMap:
    """A map whose values are terms. sorts: of its keys."""

    lg: Formulas
    sorts: str
    value: Callable[..., Term]

    def __call__(self, *key: Term) -> Term:
        """The value at a key."""
        return self.value(*key)

    def set(self, key: Key, value: Term) -> TermMap:
        """The same but for one key."""

        def edited(*at: Term) -> Term:
            return z3.If(_same(at, key), value, self.value(*at))

        return self._with(edited)

    def add(self, *key: Term) -> TermMap:
        """A relation with one tuple more."""
        return self.set(key, z3.BoolVal(True))

    def remove(self, *key: Term) -> TermMap:
        """A relation with one tuple less."""
        return self.set(key, z3.BoolVal(False))

    def where(self, keep: Callable[..., Term]) -> TermMap:
        """Of a relation, the tuples that a predicate keeps."""
        return self._with(lambda *at: z3.And(self.value(*at), keep(*at)))

    def union(self, other: Map) -> TermMap:
        """Of two relations, the tuples that either holds."""
        return self._with(lambda *at: z3.Or(self.value(*at), other(*at)))

    def all(self, claim: Callable[..., Term]) -> Term:
        """Every tuple of a relation satisfies the claim."""
        return self.lg.forall(
            self.sorts, lambda *at: z3.Implies(self.value(*at), claim(*at))
        )

    def any(self, *pattern: Term) -> Term:
        """A relation holds a tuple like the pattern, of which one part is not ANY."""
        parts = list(zip(self.sorts, pattern, strict=True))
        unknown = "".join(sort for sort, part in parts if part is ANY)

        def like(*found: Term) -> Term:
            rest = iter(found)
            return self.value(*(next(rest) if p is ANY else p for _, p in parts))

        return self.lg.exists(unknown, like)

    def _with(self, value: Callable[..., Term]) -> TermMap:
        return attrs.evolve(self, value=value)


class Formulas:
    """The words of `spec.logic.Logic` as terms. What a quantifier is, subclasses say.

    sorts: of the solver, by letter. Constants of one machine are unknowns too.
    """

    tokens: Term
    aligned: Callable[[Term, Term, Term], Term]
    adoption: Term
    staging: Term

    def __init__(self, sorts: Mapping[str, Term]) -> None:
        self.sorts = sorts
        self.adoption, self.staging = z3.Bools("adoption staging")

    def state(self, suffix: str = "") -> State:
        """A state of which nothing is known."""
        return State(
            **{
                name: TermMap(self, kind.partition(">")[0], self.unknown(name + suffix))
                for name, kind in SIGNATURE.items()
            }
        )

    def unknown(self, name: str) -> Callable[..., Term]:
        """A function of which nothing is known; its sorts are of the map so named."""
        raise NotImplementedError

    def arguments(self, sorts: str, suffix: str = "") -> list[Term]:
        """Unknown things, one per letter."""
        return [
            z3.Const(f"{SORTS[sort]}{suffix or ''} ({number})", self.sorts[sort])
            for number, sort in enumerate(sorts, 1)
        ]

    def and_(self, *claims: Term) -> Term:
        """All of the claims."""
        return conjunction(claims)

    def or_(self, *claims: Term) -> Term:
        """At least one of the claims."""
        return z3.Or(*claims) if claims else z3.BoolVal(False)

    def not_(self, claim: Term) -> Term:
        """The opposite."""
        return z3.Not(claim)

    def implies(self, premise: Term, claim: Term) -> Term:
        """The claim wherever the premise holds."""
        return z3.Implies(premise, claim)

    def if_(self, condition: Term, then: Term, otherwise: Term) -> Term:
        """One of two values."""
        return z3.If(condition, then, otherwise)

    def eq(self, left: Term, right: Term) -> Term:
        """The same value."""
        return left == right

    def forall(self, sorts: str, claim: Callable[..., Term]) -> Term:
        """The claim for all values of some sorts."""
        raise NotImplementedError

    def exists(self, sorts: str, claim: Callable[..., Term]) -> Term:
        """The claim for some values."""
        raise NotImplementedError

    def distinct(self, relation: Any, key: Callable[..., Key]) -> Term:
        """No two tuples of the relation have the same key."""
        size = len(relation.sorts)

        def same_only_once(*both: Term) -> Term:
            x, y = both[:size], both[size:]
            meet = z3.And(relation(*x), relation(*y), _same(key(*x), key(*y)))
            return z3.Implies(meet, _same(x, y))

        return self.forall(relation.sorts * 2, same_only_once)

    def at_most_one(self, sorts: str, claim: Callable[..., Term]) -> Term:
        """The claim holds of no two different keys."""

        def once(*both: Term) -> Term:
            x, y = both[: len(sorts)], both[len(sorts) :]
            return z3.Implies(z3.And(claim(*x), claim(*y)), _same(x, y))

        return self.forall(sorts * 2, once)


class Unbounded(Formulas):
    """Any number of things of each kind, and blocks of any number of tokens."""

    def __init__(self) -> None:
        super().__init__(_endless())
        self.tokens = z3.Int("tokens")
        self.aligned = self._function("aligned", "zpi", "")
        self._bound = 0

    def unknown(self, name: str) -> Callable[..., Term]:
        """A function that a solver knows nothing about."""
        domain, _, value = SIGNATURE[name.partition(" ")[0]].partition(">")
        return self._function(name, domain, value)

    def forall(self, sorts: str, claim: Callable[..., Term]) -> Term:
        """The claim for all values of some sorts."""
        variables = self._variables(sorts)
        inside = boolean(claim(*variables))
        return z3.ForAll(variables, inside) if variables else inside

    def exists(self, sorts: str, claim: Callable[..., Term]) -> Term:
        """The claim for some values."""
        variables = self._variables(sorts)
        return z3.Exists(variables, boolean(claim(*variables)))

    def _variables(self, sorts: str) -> list[Term]:
        """Fresh ones, so that a formula within another one captures none of its own."""
        found = []
        for sort in sorts:
            self._bound += 1
            found.append(z3.Const(f"{sort}{self._bound}", self.sorts[sort]))
        return found

    def _function(self, name: str, domain: str, value: str) -> Callable[..., Term]:
        to = self.sorts[value] if value else z3.BoolSort()
        function: Callable[..., Term] = z3.Function(
            name, *(self.sorts[sort] for sort in domain), to
        )
        return function


@cache
def _endless() -> Mapping[str, Term]:
    things = {
        letter: z3.DeclareSort(name.replace(" ", "_"))
        for letter, name in SORTS.items()
        if letter != "n"
    }
    return things | {"n": z3.IntSort()}


def boolean(claim: Any) -> Term:
    """A claim as a term, also if it is a truth value."""
    return z3.BoolVal(claim) if isinstance(claim, bool) else claim


def numbered(claims: Mapping[str, Iterable[Any]]) -> Iterator[tuple[str, Term]]:
    """All claims, each by its clause and its number there."""
    for clause, found in claims.items():
        for number, claim in enumerate(found, 1):
            yield f"{clause}, {number}", boolean(claim)


def _same(left: Iterable[Term], right: Iterable[Term]) -> Term:
    return conjunction(a == b for a, b in zip(left, right, strict=True))
