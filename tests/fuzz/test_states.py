"""Invariants of the runtime's own states: they hold, and each of them can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from fuzz.driver import Case
from fuzz.machine_run import logic_of
from fuzz.refinement import state_seen
from fuzz.states import StateWatch
from patton.runtime import Runtime
from patton.steps import Step
from spec.invariants import invariants
from spec.state import State
from tests.core.llama import llama

T = 16  # tokens of a block of `llama`


@pytest.mark.parametrize("seed", range(6))
def test_states_of_runs_have_every_invariant(seed: int) -> None:
    case = Case.of(f"test {seed}", "touched")
    StateWatch.attach(case.world.runtime)
    case.run(150)


def served() -> Runtime:
    """Request 1 holds block 0, which 2 shares, and 1, partial in a slot; 2 cached."""
    runtime = llama()
    runtime.apply_step(Step(grants=[(3, [], [2])], writes=[(3, 0, T)]))
    runtime.finish(3)
    runtime.apply_step(Step(grants=[(1, [], [0, 1])], writes=[(1, 0, T + 3)]))
    runtime.apply_step(Step(grants=[(2, [0], [])]))
    return runtime


Edit = Callable[[State], dict[str, Any]]

BROKEN: dict[str, Edit] = {
    "INV-GRANULE": lambda s: {"block_at": s.block_at.set((s.pair(1), s.place(1)), 0)},
    "INV-PLACE": lambda s: {"occupied": s.occupied.add(9, 3)},
    "INV-DISTINCT": lambda s: {"place": s.place.set((1,), s.place(0))},
    "INV-PAIR": lambda s: {"used": s.used.add(9)},
    "INV-OWNER": lambda s: {"owns": s.owns.add(2, s.pair(0))},
    "INV-VISIBLE": lambda s: {"in_o1v": s.in_o1v.add(1)},
    "INV-SLOT": lambda s: {"slot_used": s.slot_used.add(7)},
    "INV-RESERVED": lambda s: {"begun": s.begun.remove(1)},
    "INV-LEVELS": lambda s: {"confirmed": s.confirmed.set((1,), T)},
    "INV-HELD": lambda s: {"sharer": s.sharer.add(2, 5)},
    "INV-BINDER": lambda s: {"sharer": s.sharer.add(1, 0)},
    "INV-CACHED": lambda s: {"sealed": s.sealed.remove(2)},
    "INV-SEALED": lambda s: {"sealed": s.sealed.add(1)},
    "INV-SHARED": lambda s: {"sealed": s.sealed.remove(0)},
}


@pytest.mark.parametrize("clause", BROKEN)
def test_an_invariant_can_fail(clause: str) -> None:
    runtime = served()
    lg, s = logic_of(runtime), state_seen(runtime)
    right, wrong = s, attrs.evolve(s, **BROKEN[clause](s))

    assert all(all(claims) for claims in invariants(lg, right).values())
    assert not all(invariants(lg, wrong)[clause])
