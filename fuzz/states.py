"""The runtime's states by themselves: what holds in each, and from one to the next.

Refinement compares the runtime with the machine, whose invariants are proved; so it
names the transition that went wrong before it comes to any invariant. Here there is no
machine: the claims are asked of the runtime's own state, whatever has led to it.
"""

from __future__ import annotations

from typing import Any

import attrs

from fuzz.machine_run import RefinementError, logic_of
from fuzz.refinement import state_seen
from patton.runtime import Runtime
from spec.claims import Claims, conserved, steady
from spec.invariants import invariants
from spec.logic import Finite
from spec.state import State


@attrs.define(eq=False)
class StateWatch:
    """Looks at a runtime after every event, before anything else does."""

    runtime: Runtime
    lg: Finite
    seen: State

    @classmethod
    def attach(cls, runtime: Runtime) -> StateWatch:
        """Watch a runtime from now on."""
        watch = cls(runtime, logic_of(runtime), state_seen(runtime))
        inner = runtime.observer

        def observer(event: str, arguments: tuple[Any, ...]) -> None:
            watch.note(event)
            if inner is not None:
                inner(event, arguments)

        runtime.observer = observer
        return watch

    def note(self, event: str) -> None:
        """The runtime has carried out an event. Raises RefinementError."""
        before, self.seen = self.seen, state_seen(self.runtime)
        self._demand(event, invariants(self.lg, self.seen))
        if event != "step":  # which may bind anew what it has dropped
            self._demand(event, steady(self.lg, before, self.seen))
        if event not in {"step", "finish"}:  # which are many transitions
            self._demand(event, conserved(self.lg, before, self.seen))

    @staticmethod
    def _demand(event: str, claims: Claims) -> None:
        for clause, found in claims.items():
            if not all(found):
                right = [True] * len(found)
                raise RefinementError(clause, event, "every claim", found, right)
