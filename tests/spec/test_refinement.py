from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuzz.abstraction import FACTS, abstraction
from fuzz.refinement import Refinement, RefinementError, check_step
from fuzz.rehearsal import check_refusal
from patton.config import aim_gddr6, model_preset
from patton.errors import PattonError
from patton.layout import Layout
from patton.placements import Placements
from patton.runtime import Runtime
from patton.steps import Step, StepPlan
from spec.claims import CHANGED_BY
from tests.core.driver import RandomEngine
from tests.core.strategies import random_layout


def random_engine(seed: int) -> RandomEngine:
    """An engine on a random layout with all kinds of options."""
    rng = np.random.default_rng(seed)
    options: dict[str, Any] = {
        "choice": ("spread", "packed")[seed % 2],
        "adoption": seed % 3 > 0,
        "commit_zone": seed % 4 > 0,
    }
    return RandomEngine(Runtime.of(random_layout(rng), **options), rng)


def small() -> Runtime:
    """A runtime on a small part of the paper's device."""
    return Runtime.of(Layout.of(aim_gddr6().scaled(1), model_preset("llama3-8b")))


def start(runtime: Runtime, request: int, blocks: list[int], tokens: int) -> StepPlan:
    """Bind and write the first tokens of a request."""
    step = Step(grants=[(request, [], blocks)], writes=[(request, 0, tokens)])
    return runtime.apply_step(step)


@pytest.mark.parametrize("seed", range(24))
def test_every_step_of_random_runs_is_allowed(seed: int) -> None:
    """Guards and next states, what an event touched after each, all after each step."""
    engine = random_engine(seed)
    refinement = Refinement.attach(engine.runtime)
    for _ in range(60):
        engine.step()
        refinement.check()

    assert engine.accepted > 20


def test_plans_and_refusals_are_those_of_the_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plans write and commit where the machine says; refusals have a reason."""
    shipped = Runtime.apply_step
    refinements: list[Refinement] = []
    refused: set[str] = set()

    def watched(runtime: Runtime, step: Step) -> StepPlan:
        try:
            plan = shipped(runtime, step)
        except PattonError:
            refused.add(check_refusal(refinements[-1], "step", (step,)).clause)
            raise
        refinements[-1].check_plan(step, plan)
        refinements[-1].check_placed(plan)
        return plan

    monkeypatch.setattr(Runtime, "apply_step", watched)
    for seed in range(8):
        engine = random_engine(seed)
        refinements.append(Refinement.attach(engine.runtime))
        for _ in range(60):
            engine.step()
        engine.try_refusals()

    assert {"LIFE-BIND", "LIFE-WRITER", "LIFE-LEVELS", "LIFE-SHARE"} <= refused


def test_a_step_is_checked_from_any_state_seen_before() -> None:
    engine = random_engine(1)
    while len(engine.chats) < 3:
        engine.step()
    before = Refinement.of(engine.runtime)
    cells = {name: dict(map_.cells) for name, map_ in before.maps.items()}
    step = Step(finishes=[next(iter(engine.chats))])
    engine.runtime.apply_step(step)
    after = check_step(before, "step", (step,), engine.runtime)

    assert cells == {name: map_.cells for name, map_ in before.maps.items()}
    assert (
        abstraction(engine.runtime.placements)["active"] == after.maps["active"].cells
    )
    with pytest.raises(RefinementError):
        check_step(before, "step", (Step(),), engine.runtime)


def test_every_field_that_can_be_seen_has_a_fact_and_a_place() -> None:
    seen = {*abstraction(small().placements)}

    assert seen == {*FACTS}
    assert {"copied", "phase", "block_in"} == {*CHANGED_BY} - seen


# --- a runtime that goes wrong is found out, by the clause ----------------------------


def leak_slot(state: Placements) -> None:
    state.zone.free[0] &= ~8


def free_slot(state: Placements) -> None:
    state.zone.give_back(state.slot[1])


def move_block(state: Placements) -> None:
    state.granule[0] += 4


def two_in_one_place(state: Placements) -> None:
    state.granule[0] = state.granule[1]


def lose_place(state: Placements) -> None:
    state.pool.free_places[0] &= ~(1 << 9)


def lose_pair(state: Placements) -> None:
    state.pool.take(5)


def seize_pair(state: Placements) -> None:
    state.pool.owner[0] = 2


def count_twice(state: Placements) -> None:
    state.references[0] += 1


def write_more(state: Placements) -> None:
    state.written[1] += 1


def confirm_less(state: Placements) -> None:
    state.confirmed[0] -= 1


def publish_early(state: Placements) -> None:
    state.slot[1] = -1


def unseal(state: Placements) -> None:
    state.sealed[2] = 1 << 62


def forget_binder(state: Placements) -> None:
    state.binder[0] = None


def forget_inverse(state: Placements) -> None:
    state.block_at[state.granule[0]] = 1


Damage = Callable[[Placements], None]

DAMAGES: list[tuple[Damage, str]] = [
    (leak_slot, "LIFE-STAGE"),
    (free_slot, "LIFE-STAGE"),
    (move_block, "LIFE-FIXED"),
    (two_in_one_place, "LIFE-FIXED"),
    (lose_place, "INV-PLACE"),
    (lose_pair, "INV-PAIR"),
    (seize_pair, "LIFE-OWNER"),
    (count_twice, "INV-HELD"),
    (write_more, "LIFE-WRITER"),
    (confirm_less, "LIFE-CONFIRM"),
    (publish_early, "LIFE-PUBLISH"),
    (unseal, "LIFE-SEALED"),
    (forget_binder, "LIFE-WRITER"),
    (forget_inverse, "INV-PLACE"),
]


def damaged_runtime() -> tuple[Runtime, Refinement]:
    """Request 1 with a full and a partial block, request 2 with a hit and a block."""
    runtime = small()
    refinement = Refinement.attach(runtime)
    start(runtime, 3, [2], 16)
    start(runtime, 1, [0, 1], 20)
    runtime.apply_step(Step(grants=[(2, [2], [3])], writes=[(2, 16, 1)]))
    refinement.check()
    return runtime, refinement


@pytest.mark.parametrize(("damage", "clause"), DAMAGES)
def test_damage_is_found_by_its_clause(damage: Damage, clause: str) -> None:
    runtime, refinement = damaged_runtime()
    damage(runtime.placements)
    with pytest.raises(RefinementError) as error:
        refinement.check()

    assert clause == error.value.clause
    assert clause in str(error.value)


def test_an_event_that_does_nothing_is_found_at_once() -> None:
    runtime, refinement = damaged_runtime()
    for event, arguments in [("evict", (2,)), ("finish", (7,)), ("bind", (1, 0))]:
        with pytest.raises(RefinementError):
            refinement.copy(runtime).note(event, arguments)
    with pytest.raises(RefinementError) as error:
        refinement.copy(runtime).note("finish", (2,))

    assert "finish(2,)" in str(error.value)


def test_a_write_to_a_sealed_block_is_no_step() -> None:
    runtime, refinement = damaged_runtime()
    with pytest.raises(RefinementError) as error:
        refinement.note("step", (Step(writes=[(2, 15, 1)]),))

    assert "LIFE-WRITER" == error.value.clause
    with pytest.raises(PattonError):
        runtime.write(2, 15, 1)


def test_a_plan_that_reads_elsewhere_than_it_writes_is_found() -> None:
    """A slot is written, and the O1V would be read: the step's token is not there."""
    runtime = small()
    refinement = Refinement.attach(runtime)
    start(runtime, 1, [0], 14)
    plan = runtime.apply_step(Step(writes=[(1, 14, 1)], reads=[(1, 0, 15)]))
    refinement.check_placed(plan)
    plan = runtime.apply_step(Step(writes=[(1, 15, 1)], reads=[(1, 0, 16)]))
    runtime.placements.slot[0] = -1
    with pytest.raises(RefinementError) as error:
        refinement.check_placed(plan)

    assert "STEP-PLACED" == error.value.clause
