"""The fast driver and the stateful machine: nothing found, enough met."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fuzz.driver import Case, cases, drive
from fuzz.machine import PlacementMachine
from fuzz.moments import KNOWN
from fuzz.situations import LEAST, STEPS, counting
from fuzz.targets import run_machine
from patton.errors import PattonError
from patton.generate import generate_step
from patton.runtime import Runtime
from patton.steps import StepPlan

SHARE = 20  # of the steps of a CI run, and of the times each situation must occur


@pytest.mark.parametrize("level", ["touched", "everything"])
def test_the_driver_finds_nothing(level: str) -> None:
    steps = 10_000 if level == "touched" else 2_000
    done = drive("test", steps, level)  # type: ignore[arg-type]

    assert done.failure is None
    assert done.steps >= steps
    assert done.refused > steps / 100


def test_the_driver_with_a_device_finds_nothing() -> None:
    done = drive("test", 500, "everything", device=True)

    assert done.failure is None


def test_one_seed_gives_one_run() -> None:
    """Events, states, everything that was drawn, every byte of streams (LIFE-SAME)."""
    runs = []
    for _ in range(2):
        case = next(cases("same", "touched"))
        case.run(300)
        placed = (plan.place() for plan in streams_of(case))
        texts = [s.to_text() for p in placed for s in generate_step(p).present()]
        runs.append((case.world.log, texts, case.world.runtime.snapshot()))

    assert runs[0] == runs[1]
    assert any(runs[0][1])


def streams_of(case: Case) -> Iterator[StepPlan]:
    """Plans of the steps of a case, done again on a fresh runtime."""
    runtime = case.world.runtime
    again = Runtime(runtime.layout, runtime.placements.emptied())
    for event, arguments in case.world.log:
        if event in {"restore", "interrupt", "publish", "place_late"}:
            continue
        try:
            plan = getattr(again, "apply_step" if event == "step" else event)(
                *arguments
            )
        except PattonError:
            continue
        if plan is not None:
            yield plan
            again.publish(plan)


def test_every_situation_occurs() -> None:
    """A part of the run of `python -m fuzz situations`, and of what it asks for."""
    watcher = counting()
    done = drive(1, STEPS // SHARE, watcher=watcher)

    assert done.failure is None
    assert len(KNOWN) >= 30
    rare = {n: k for n, k in watcher.counts.items() if k < LEAST // SHARE}
    assert {} == rare


def test_the_machine_finds_nothing_and_accepts_most() -> None:
    tried, done = PlacementMachine.tried.copy(), PlacementMachine.done.copy()

    assert run_machine(1, 25, 60).failure is None
    tried = PlacementMachine.tried - tried
    done = PlacementMachine.done - done
    assert done.total() > tried.total() / 2
    assert len(done) > 15
