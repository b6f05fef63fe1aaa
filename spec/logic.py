"""The language of the specification, and its reading in plain Python.

Machine and invariants are formulas over maps. They never look at a value: no `if`, no
`bool()`, no counting, only the words of a `Logic` and of a `Map`. So one text has
several readings: here truth values are bool, maps are dicts, and the machine runs; a
solver reads the same functions with terms of its own, over sorts without any bound.

A sort is a letter, the same that names a variable of it; several are one string. So
`forall("rb", claim)` asks a claim of every request and block.

A relation holds few tuples among all that are possible. Quantifiers over a relation
(`Map.all`, `Map.any`) therefore cost what it holds; only `forall` and `exists` walk
whole sorts, which the Python reading needs to know (`Finite.universe`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Protocol

import attrs

SORTS = {
    "r": "request",
    "b": "block",
    "p": "pair",
    "i": "place of a pair",
    "z": "Commit Zone slot",
    "n": "number of tokens",
}

# What a formula is made of depends on who reads it: bool and int, or a solver's terms.
Term = Any
Bool = Any
Key = tuple[Term, ...]

ANY = object()  # in a pattern: whatever stands there


class Map(Protocol):
    """A total function from keys to values; a relation is one to truth values."""

    def __call__(self, *key: Term) -> Term:
        """The value at a key."""

    def set(self, key: Key, value: Term) -> Map:
        """The same but for one key."""

    def add(self, *key: Term) -> Map:
        """A relation with one tuple more."""

    def remove(self, *key: Term) -> Map:
        """A relation with one tuple less."""

    def where(self, keep: Callable[..., Bool]) -> Map:
        """Of a relation, the tuples that a predicate keeps."""

    def union(self, other: Map) -> Map:
        """Of two relations, the tuples that either holds."""

    def all(self, claim: Callable[..., Bool]) -> Bool:
        """Every tuple of a relation satisfies the claim."""

    def any(self, *pattern: Term) -> Bool:
        """A relation holds a tuple like the pattern, of which one part is not ANY."""


class Logic(Protocol):
    """Connectives, quantifiers, and the constants of one machine.

    tokens: of a block. aligned: whether a slot lies in the stripe of a granule index
    (slot, pair, place). adoption, staging: the runtime's two options.
    """

    tokens: Term
    aligned: Callable[[Term, Term, Term], Bool]
    adoption: Bool
    staging: Bool

    def and_(self, *claims: Bool) -> Bool:
        """All of the claims."""

    def or_(self, *claims: Bool) -> Bool:
        """At least one of the claims."""

    def not_(self, claim: Bool) -> Bool:
        """The opposite."""

    def implies(self, premise: Bool, claim: Bool) -> Bool:
        """The claim wherever the premise holds."""

    def if_(self, condition: Bool, then: Term, otherwise: Term) -> Term:
        """One of two values."""

    def eq(self, left: Term, right: Term) -> Bool:
        """The same value; `==` would be Python's own comparison."""

    def forall(self, sorts: str, claim: Callable[..., Bool]) -> Bool:
        """The claim for all values of some sorts."""

    def exists(self, sorts: str, claim: Callable[..., Bool]) -> Bool:
        """The claim for some values."""

    def distinct(self, relation: Map, key: Callable[..., Key]) -> Bool:
        """No two tuples of the relation have the same key."""

    def at_most_one(self, sorts: str, claim: Callable[..., Bool]) -> Bool:
        """The claim holds of no two different keys."""


# --- the Python reading -------------------------------------------------------------


class Cells:
    """What the two kinds of Python map have in common."""

    __slots__ = ()

    def __call__(self, *key: Term) -> Term:
        """The value at a key."""
        raise NotImplementedError

    def support(self) -> Iterable[Key]:
        """The keys whose value differs from the default."""
        raise NotImplementedError

    def edited(self, changes: dict[Key, Term]) -> Edited:
        """The same map but for some cells."""
        raise NotImplementedError

    def set(self, key: Key, value: Term) -> Edited:
        """The same but for one key."""
        return self.edited({key: value})

    def add(self, *key: Term) -> Edited:
        """A relation with one tuple more."""
        return self.edited({key: True})

    def remove(self, *key: Term) -> Edited:
        """A relation with one tuple less."""
        return self.edited({key: False})

    def where(self, keep: Callable[..., bool]) -> Edited:
        """Of a relation, the tuples that a predicate keeps."""
        return self.edited({k: False for k in self.support() if not keep(*k)})

    def union(self, other: Any) -> Edited:
        """Of two relations, the tuples that either holds."""
        return self.edited(dict.fromkeys(other.support(), True))

    def all(self, claim: Callable[..., bool]) -> bool:
        """Every tuple of a relation satisfies the claim."""
        return all(claim(*key) for key in self.support())

    def any(self, *pattern: Term) -> bool:
        """A relation holds a tuple like the pattern, of which one part is not ANY."""
        raise NotImplementedError


class Table(Cells):
    """A map as a dict of the cells that differ from its default."""

    __slots__ = ("_counts", "cells", "default")

    def __init__(self, default: Term, cells: dict[Key, Term] | None = None) -> None:
        self.default = default
        self.cells: dict[Key, Term] = {} if cells is None else cells
        # position -> value -> tuples of the relation with that value there
        self._counts: dict[int, dict[Term, int]] = {}

    def __call__(self, *key: Term) -> Term:
        """The value at a key."""
        return self.cells.get(key, self.default)

    def support(self) -> Iterable[Key]:
        """The keys whose value differs from the default."""
        return self.cells

    def edited(self, changes: dict[Key, Term]) -> Edited:
        """The same map but for some cells."""
        return Edited(self, changes)

    def any(self, *pattern: Term) -> bool:
        """A relation holds a tuple like the pattern, of which one part is not ANY."""
        return self.count(fixed_part(pattern), pattern) > 0

    def count(self, position: int, pattern: Key) -> int:
        """Tuples that have the pattern's part at a position."""
        counts = self._counts.get(position)
        if counts is None:
            counts = self._counts[position] = {}
            for key in self.cells:
                counts[key[position]] = counts.get(key[position], 0) + 1
        return counts.get(pattern[position], 0)

    def take(self, changes: Mapping[Key, Term]) -> None:
        """Change cells in place."""
        cells, default = self.cells, self.default
        for key, value in changes.items():
            had, has = key in cells, value != default
            if has:
                cells[key] = value
            elif had:
                del cells[key]
            if had != has:
                for position, counts in self._counts.items():
                    part = key[position]
                    counts[part] = counts.get(part, 0) + has - had


class Edited(Cells):
    """A map that differs from a table in a few cells."""

    __slots__ = ("base", "changes")

    def __init__(self, base: Table, changes: dict[Key, Term]) -> None:
        self.base = base
        self.changes = changes

    def __call__(self, *key: Term) -> Term:
        """The value at a key."""
        if key in self.changes:
            return self.changes[key]
        return self.base(*key)

    def support(self) -> Iterator[Key]:
        """The keys whose value differs from the default."""
        changes, default = self.changes, self.base.default
        yield from (key for key in self.base.cells if key not in changes)
        yield from (key for key, value in changes.items() if value != default)

    def edited(self, changes: dict[Key, Term]) -> Edited:
        """The same map but for some more cells."""
        return Edited(self.base, self.changes | changes)

    def any(self, *pattern: Term) -> bool:
        """A relation holds a tuple like the pattern, of which one part is not ANY."""
        position = fixed_part(pattern)
        count = self.base.count(position, pattern)
        for key, value in self.changes.items():
            if key[position] == pattern[position]:
                count += value - self.base(*key)
        return count > 0

    def flat(self) -> Table:
        """A table of its own with the same cells."""
        return Table(self.base.default, {key: self(*key) for key in self.support()})


def fixed_part(pattern: Key) -> int:
    """The position of the one part that is not ANY."""
    for position, part in enumerate(pattern):
        if part is not ANY:
            return position
    raise ValueError(pattern)


@attrs.define(eq=False)
class Finite:
    """The Python reading: `universe` lists the values of each sort.

    Sorts that only relations are quantified over need no list.
    """

    tokens: int
    aligned: Callable[[Term, Term, Term], bool]
    universe: dict[str, Sequence[Term]] = attrs.field(factory=dict)
    adoption: bool = True
    staging: bool = True

    def and_(self, *claims: bool) -> bool:
        """All of the claims."""
        return all(claims)

    def or_(self, *claims: bool) -> bool:
        """At least one of the claims."""
        return any(claims)

    def not_(self, claim: bool) -> bool:
        """The opposite."""
        return not claim

    def implies(self, premise: bool, claim: bool) -> bool:
        """The claim wherever the premise holds."""
        return claim or not premise

    def if_(self, condition: bool, then: Term, otherwise: Term) -> Term:
        """One of two values."""
        return then if condition else otherwise

    def eq(self, left: Term, right: Term) -> bool:
        """The same value."""
        return bool(left == right)

    def forall(self, sorts: str, claim: Callable[..., bool]) -> bool:
        """The claim for all values of some sorts."""
        return all(claim(*key) for key in self.keys(sorts))

    def exists(self, sorts: str, claim: Callable[..., bool]) -> bool:
        """The claim for some values."""
        return any(claim(*key) for key in self.keys(sorts))

    def distinct(self, relation: Any, key: Callable[..., Key]) -> bool:
        """No two tuples of the relation have the same key."""
        keys = [key(*held) for held in relation.support()]
        return len(keys) == len(set(keys))

    def at_most_one(self, sorts: str, claim: Callable[..., bool]) -> bool:
        """The claim holds of no two different keys."""
        return sum(claim(*key) for key in self.keys(sorts)) <= 1

    def keys(self, sorts: str) -> Iterator[Key]:
        """All combinations of values of some sorts."""
        return product(*(self.universe[sort] for sort in sorts))
