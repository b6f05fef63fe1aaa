"""The specification beside every runtime that a test makes.

Engine and end-to-end tests are about something else; but each event of theirs, and each
step's plan, must be one that the specification allows. A machine costs some tenth of a
millisecond an event, so that a very long run is followed for its first events only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from fuzz.refinement import Refinement
from patton.runtime import Runtime
from patton.steps import Step, StepPlan

MOST_EVENTS = 10_000  # of one runtime


@attrs.define(eq=False)
class Specified:
    """Refinements of the runtimes that were made so far, by runtime."""

    refinements: dict[int, Refinement] = attrs.field(factory=dict)

    @property
    def events(self) -> int:
        """Events of all runtimes."""
        return sum(refinement.noted for refinement in self.refinements.values())

    def watch(self, runtime: Runtime) -> None:
        """Follow a fresh runtime."""
        refinement = self.refinements[id(runtime)] = Refinement.of(runtime)

        def observer(event: str, arguments: tuple[Any, ...]) -> None:
            if self.follows(runtime):
                refinement.note(event, arguments)
                if not self.follows(runtime):
                    refinement.check()

        runtime.observer = observer

    def follows(self, runtime: Runtime) -> bool:
        """Whether a runtime is still followed."""
        refinement = self.refinements.get(id(runtime))
        return refinement is not None and refinement.noted < MOST_EVENTS

    def check_plan(self, runtime: Runtime, step: Step, plan: StepPlan) -> None:
        """The plan of a step that was just noted. Raises RefinementError."""
        if self.follows(runtime):
            self.refinements[id(runtime)].check_plan(step, plan)

    def check(self) -> None:
        """Everything of every runtime that is followed. Raises RefinementError."""
        for refinement in self.refinements.values():
            if self.follows(refinement.runtime):
                refinement.check()


@contextmanager
def specified() -> Iterator[Specified]:
    """Within, every runtime that is made has a machine beside it; all ends well."""
    found = Specified()
    of, apply_step = vars(Runtime)["of"], Runtime.apply_step

    def made(cls: type[Runtime], *arguments: Any, **options: Any) -> Runtime:
        runtime: Runtime = of.__func__(cls, *arguments, **options)
        found.watch(runtime)
        return runtime

    def applied(self: Runtime, step: Step) -> StepPlan:
        plan = apply_step(self, step)
        found.check_plan(self, step, plan)
        return plan

    replaced = {"of": classmethod(made), "apply_step": applied}
    originals = {name: vars(Runtime)[name] for name in replaced}
    for name, function in replaced.items():
        setattr(Runtime, name, function)
    try:
        yield found
    finally:
        for name, function in originals.items():
            setattr(Runtime, name, function)
    found.check()
