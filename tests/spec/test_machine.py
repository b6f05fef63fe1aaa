from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest

from spec import invariants, machine, state
from spec.claims import CHANGED_BY
from spec.effects import EFFECTS
from spec.invariants import initial
from spec.machine import TRANSITIONS, Move
from spec.state import SIGNATURE, State, empty
from tests.spec.walk import Walk, small_logic


def a_walk(seed: int) -> Walk:
    """A walk at its beginning."""
    random = Random(seed)
    walk = Walk(small_logic(random), random)
    walk.warm_up(seed)
    return walk


def walks(count: int, steps: int) -> tuple[Counter[str], Counter[str]]:
    """Transitions taken, and clauses found broken, on walks of some length."""
    taken: Counter[str] = Counter()
    broken: Counter[str] = Counter()
    for seed in range(count):
        walk = a_walk(seed)
        for number in range(steps):
            broken.update(walk.step())
            if number % 16 == 0:
                broken.update(walk.refused())
        taken += walk.taken
    return taken, broken


def test_every_transition_occurs_and_no_claim_is_ever_false() -> None:
    """Walks in small universes keep all claims, and reach all of the machine."""
    taken, broken = walks(24, 70)

    assert Counter() == broken
    assert {*TRANSITIONS} == {*taken}


def test_the_first_state_is_the_initial_one() -> None:
    lg = small_logic(Random(0))

    assert initial(lg, empty())
    assert not initial(lg, attrs.evolve(empty(), bound=empty().bound.add(1)))


def test_the_tables_of_the_machine_are_complete() -> None:
    """Every field has sorts and a clause, every transition an effect and a phase."""
    fields = {field.name for field in attrs.fields(State)}

    assert fields == {*SIGNATURE} == {*CHANGED_BY}
    assert {*TRANSITIONS} == {*EFFECTS} == {*machine.PHASE_OF}
    for _, sets, clears in CHANGED_BY.values():
        assert {*TRANSITIONS} >= sets | clears


def test_machine_and_invariants_can_be_read_in_one_sitting() -> None:
    files = [Path(str(it.__file__)) for it in (state, machine, invariants)]

    assert 600 > sum(len(path.read_text().splitlines()) for path in files)


# --- planted bugs: a claim that never fails says nothing ------------------------------

Change = Callable[[Any, State, Move, tuple[Any, ...]], Move]


def without(*fields: str) -> Change:
    """The transition forgets to change some maps."""

    def change(_lg: Any, _s: State, move: Move, _a: tuple[Any, ...]) -> Move:
        kept = {name: map_ for name, map_ in move.changes.items() if name not in fields}
        return Move(move.guard, kept)

    return change


def unguarded(*clauses: str) -> Change:
    """The transition does not ask for some clauses."""

    def change(_lg: Any, _s: State, move: Move, _a: tuple[Any, ...]) -> Move:
        kept = {name: it for name, it in move.guard.items() if name not in clauses}
        return Move(kept, move.changes)

    return change


def refusing(_lg: Any, _s: State, move: Move, _a: tuple[Any, ...]) -> Move:
    """The transition is never possible."""
    return Move({**move.guard, "LIFE-OPEN": False}, move.changes)


def seizing(lg: Any, s: State, move: Move, a: tuple[Any, ...]) -> Move:
    """Binding takes over the pair of another running request."""
    r, _, p, i = a
    free = lg.and_(s.active(r), lg.not_(s.occupied(p, i)), lg.not_(s.bound(a[1])))
    owns = s.owns.where(lambda _, x: not lg.eq(x, p)).add(r, p)
    guard = {"STEP-ORDER": True, "LIFE-BIND": free}
    return Move(guard, {**move.changes, "owns": owns})


def spilling(_lg: Any, s: State, move: Move, a: tuple[Any, ...]) -> Move:
    """A write changes the level of another block too."""
    other = (a[1] + 1) % 5
    written = s.written.set((a[1],), move.changes["written"](a[1])).set((other,), 1)
    return Move(move.guard, {**move.changes, "written": written})


def forgetful(_lg: Any, s: State, move: Move, _a: tuple[Any, ...]) -> Move:
    """The end of a step forgets what was sealed before."""
    sealed = move.changes["sealed"].where(lambda b: not s.sealed(b))
    return Move(move.guard, {**move.changes, "sealed": sealed})


PLANTED: list[tuple[str, Change, str]] = [
    ("publish", without("slot_used"), "INV-SLOT"),
    ("publish", without("in_slot"), "INV-VISIBLE"),
    ("publish", unguarded("LIFE-PUBLISH"), "LIFE-PUBLISH"),
    ("publish", refusing, "LIFE-PUBLISH"),
    ("copy", unguarded("LIFE-COMMIT"), "LIFE-COMMIT"),
    ("copy", without("copied"), "LIFE-COMMIT"),
    ("write_staged", unguarded("INV-SLOT"), "INV-SLOT"),
    ("write_staged", unguarded("INV-RESERVED"), "INV-RESERVED"),
    ("write_staged", unguarded("LIFE-STAY"), "LIFE-STAY"),
    ("write_staged", without("in_o1v"), "INV-VISIBLE"),
    ("write_staged", without("block_in"), "INV-SLOT"),
    ("write_direct", unguarded("LIFE-DIRECT"), "LIFE-DIRECT"),
    ("write_direct", refusing, "LIFE-DIRECT"),
    ("write_whole", without("begun"), "LIFE-LEVELS"),
    ("write_on", unguarded("LIFE-WRITER"), "LIFE-WRITER"),
    ("write_on", unguarded("LIFE-SEALED"), "LIFE-SEALED"),
    ("write_on", unguarded("LIFE-GAPLESS"), "LIFE-GAPLESS"),
    ("write_on", unguarded("LIFE-LEVELS"), "LIFE-LEVELS"),
    ("write_on", without("copied"), "LIFE-COMMIT"),
    ("write_on", refusing, "LIFE-STAY"),
    ("write_on", spilling, "LIFE-FRAME"),
    ("retract", without("confirmed"), "INV-LEVELS"),
    ("retract", unguarded("LIFE-SEALED"), "LIFE-SEALED"),
    ("retract", without("written", "confirmed"), "LIFE-REWRITE"),
    ("confirm", unguarded("LIFE-CONFIRM"), "INV-LEVELS"),
    ("confirm", without("confirmed"), "LIFE-CONFIRM"),
    ("bind_own", unguarded("INV-DISTINCT"), "INV-DISTINCT"),
    ("bind_own", without("occupied"), "INV-GRANULE"),
    ("bind_own", unguarded("LIFE-BIND"), "LIFE-FIXED"),
    ("bind_own", refusing, "LIFE-BIND"),
    ("bind_fresh", without("grown"), "LIFE-PREFIX"),
    ("bind_fresh", unguarded("LIFE-FILL"), "LIFE-FILL"),
    ("bind_fresh", unguarded("LIFE-ADOPT"), "LIFE-ADOPT"),
    ("bind_fresh", without("used"), "INV-PAIR"),
    ("bind_fresh", refusing, "LIFE-BIND"),
    ("bind_adopting", seizing, "LIFE-OWNER"),
    ("bind_adopting", without("owns"), "INV-OWNER"),
    ("share", without("sharer"), "LIFE-SHARE"),
    ("share", without("sealing"), "INV-SHARED"),
    ("share", unguarded("LIFE-SHARE"), "INV-HELD"),
    ("share", unguarded("LIFE-PREFIX"), "LIFE-PREFIX"),
    ("share", refusing, "LIFE-SHARE"),
    ("leave", without("binder"), "LIFE-RELEASE"),
    ("cache", without("sealing"), "INV-CACHED"),
    ("cache", unguarded("LIFE-CACHE"), "INV-CACHED"),
    ("drop", without("occupied"), "INV-PLACE"),
    ("drop", without("slot_used"), "INV-SLOT"),
    ("drop", without("used"), "INV-PAIR"),
    ("drop", unguarded("LIFE-DROP"), "LIFE-DROP"),
    ("drop", refusing, "LIFE-RELEASE"),
    ("evict", unguarded("LIFE-EVICT"), "LIFE-EVICT"),
    ("evict", without("occupied", "used", "owns"), "INV-CONSERVE"),
    ("end", without("owns"), "INV-OWNER"),
    ("end", unguarded("INV-HELD"), "INV-HELD"),
    ("end", refusing, "LIFE-FINISH"),
    ("read", unguarded("LIFE-READ"), "LIFE-READ"),
    ("end_step", unguarded("STEP-SHARED"), "STEP-SHARED"),
    ("end_step", without("phase"), "STEP-ORDER"),
    ("end_step", without("sealed"), "STEP-SHARED"),
    ("end_step", forgetful, "LIFE-SEALED"),
]


@pytest.mark.parametrize(
    ("name", "change", "clause"), PLANTED, ids=lambda it: getattr(it, "__name__", it)
)
def test_a_planted_bug_breaks_the_named_clause(
    name: str, change: Change, clause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each clause of the machine has a bug that breaks it."""
    shipped = TRANSITIONS[name]

    @wraps(shipped)
    def planted(lg: Any, s: State, *arguments: Any) -> Move:
        return change(lg, s, shipped(lg, s, *arguments), arguments)

    monkeypatch.setitem(machine.TRANSITIONS, name, planted)
    found: set[str] = set()
    for seed in range(300):
        broken = clauses_broken(a_walk(seed), often=change is refusing)
        if clause in broken:
            return
        found |= broken
    pytest.fail(f"only {sorted(found)} is broken")


def clauses_broken(walk: Walk, *, often: bool) -> set[str]:
    """The clauses that the first bad state of a walk breaks."""
    for number in range(40):
        broken = {*walk.step()}
        if often and number % 4 == 0:
            broken |= {*walk.refused()}
        if broken:
            return broken
    return set()
