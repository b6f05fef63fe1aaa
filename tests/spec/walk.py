"""Random walks of the abstract machine in small universes, with every claim checked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import attrs

from spec.claims import Claims, conserved, frame, only, steady
from spec.effects import effects
from spec.enabled import enabled
from spec.invariants import invariants
from spec.logic import Edited, Finite, Table
from spec.machine import PHASES, SORTS_OF, Move, after, move_of
from spec.state import SIGNATURE, State, empty

# What comes about easily is drawn less often.
WEIGHT = dict.fromkeys(("drop", "end", "evict", "retract", "read"), 2)
WEIGHT |= {"begin_writes": 12, "begin_reads": 6, "end_step": 20, "write_on": 30}
WEIGHT |= dict.fromkeys(("share", "copy", "publish", "bind_adopting", "leave"), 40)


# Ways into the situations that chance alone seldom reaches.
STEP: list[tuple[Any, ...]] = [("begin_reads",), ("end_step",)]
BEGUN: list[tuple[Any, ...]] = [
    *(("start", 0), ("bind_fresh", 0, 0, 0, 0), ("begin_writes",))
]


def hit(_: int) -> list[tuple[Any, ...]]:
    """A block that a request left behind is the prefix of another one."""
    cached = [("write_whole", 0, 0), *STEP, ("cache", 0, 0), ("end", 0)]
    return [*BEGUN, *cached, ("start", 1), ("share", 1, 0)]


def copied(tokens: int) -> list[tuple[Any, ...]]:
    """A full block in a slot has been copied and not been published."""
    rest = [("begin_writes",), ("write_on", 0, 0, 1, tokens, tokens)]
    end = [("begin_reads",), ("copy", 0), ("end_step",)]
    return [*BEGUN, ("write_staged", 0, 0, 1, 1, 0), *STEP, *rest, *end]


def small_logic(random: Random) -> Finite:
    """Two or three of everything; one or two stripes; blocks of two or three tokens."""
    stripes, places, slots = random.choice([1, 2]), random.choice([1, 2, 3]), 2

    def aligned(slot: int, pair: int | None, place: int | None) -> bool:
        if pair is None or place is None:  # of a block that was never bound
            return False
        return slot % stripes == (pair * places + place) % stripes

    tokens = random.choice([2, 3])
    counts = {"r": 3, "b": 5, "p": random.choice([2, 3]), "i": places, "z": slots}
    universe = {sort: range(count) for sort, count in counts.items()}
    universe["n"] = range(tokens + 1)
    return Finite(
        tokens=tokens,
        aligned=aligned,
        universe={**universe},
        adoption=random.random() < 0.8,
        staging=random.random() < 0.8,
    )


@attrs.define
class Walk:
    """One machine, where it stands and which transitions it took."""

    lg: Finite
    random: Random
    s: State = attrs.field(factory=empty)
    taken: Counter[str] = attrs.field(factory=Counter)

    def warm_up(self, number: int) -> None:
        """Begin in one of a few situations."""
        ways: list[Any] = [lambda _: [], hit, copied if self.lg.staging else hit]
        for name, *arguments in ways[number % 3](self.lg.tokens):
            self.s = flat(after(self.s, move_of(self.lg, self.s, name, *arguments)))
            self.taken[name] += 1

    def draw(self) -> tuple[str, tuple[int, ...], Move] | None:
        """A transition that is allowed, with arguments; None if none was met."""
        names = [move.__name__ for move in PHASES[self.s.phase()]]
        weights = [WEIGHT.get(name, 12) for name in names]
        for _ in range(200):
            (name,) = self.random.choices(names, weights)
            arguments = self.arguments(name)
            move = move_of(self.lg, self.s, name, *arguments)
            if all(move.guard.values()):
                return name, arguments, move
        return None

    def arguments(self, name: str) -> tuple[int, ...]:
        """Values of the right sorts, rather some that belong together."""
        among = self.lg.universe
        values = {sort: self.random.choice(those) for sort, those in among.items()}
        likely = [*self.cells("binder"), *self.cells("sharer")]
        if name == "share":
            active, bound = self.cells("active"), self.cells("bound")
            likely = [(r, b) for (r,) in active for (b,) in bound]
        if "b" in SORTS_OF[name] and likely and self.random.random() < 0.7:
            values["r"], values["b"] = self.random.choice(likely)
        low, middle, high = sorted(self.random.choices(among["n"], k=3))
        numbers = iter([low, high, middle][3 - SORTS_OF[name].count("n") :])
        return tuple(
            next(numbers) if sort == "n" else values[sort] for sort in SORTS_OF[name]
        )

    def cells(self, field: str) -> list[tuple[int, ...]]:
        """The tuples of a relation."""
        table: Table = getattr(self.s, field)
        return [*table.cells]

    def step(self) -> Iterator[str]:
        """Take one transition; the clauses with claims that turn out false."""
        drawn = self.draw()
        if drawn is None:
            return
        name, arguments, move = drawn
        s, t = self.s, after(self.s, move)
        lg = self.lg
        yield from false(invariants(lg, t))
        yield from false(only(lg, s, t, name))
        yield from false(frame(lg, s, t, name, *arguments))
        yield from false(conserved(lg, s, t))
        yield from false(steady(lg, s, t))
        yield from false(effects(lg, s, t, name, *arguments))
        self.s = flat(t)
        self.taken[name] += 1

    def refused(self) -> Iterator[str]:
        """The clauses of what must be possible in this state and is not."""
        yield from false(enabled(self.lg, self.s))


def false(claims: Claims) -> Iterator[str]:
    """The clauses that have a false claim."""
    yield from (clause for clause, those in claims.items() if not all(those))


def flat(s: State) -> State:
    """The same state in tables of its own."""
    maps: dict[str, Table] = {}
    for name in SIGNATURE:
        map_ = getattr(s, name)
        maps[name] = map_.flat() if isinstance(map_, Edited) else map_
    return State(**maps)
