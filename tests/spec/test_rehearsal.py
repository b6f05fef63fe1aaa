from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuzz.refinement import Refinement, RefinementError
from fuzz.rehearsal import check_refusal, reason
from patton.errors import PattonError
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.strategies import random_layout
from tests.spec.mischief import Mischief
from tests.spec.test_refinement import small, start

Situation = Callable[[Runtime], tuple[str, tuple[Any, ...]]]


def clause_for(situation: Situation) -> str | None:
    """The clause that forbids the event which a situation ends with, if one does."""
    runtime = small()
    refinement = Refinement.attach(runtime)
    event, arguments = situation(runtime)
    found = reason(refinement, event, arguments)
    return None if found is None else found.clause


# --- situations that a specification must get right, whatever the runtime does --------


def shared_and_released_again(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 4)
    runtime.share(2, 0)
    runtime.release(2, 0)
    return "step", (Step(writes=[(1, 4, 1)]),)


def shared_partial_and_given_up_a_step_ago(
    runtime: Runtime,
) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 4)
    runtime.share(2, 0)
    runtime.finish(2)
    runtime.apply_step(Step(writes=[(1, 4, 1)]))
    return "step", (Step(writes=[(1, 5, 1)]),)


def shared_block_filled_by_drafts(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    step = Step(grants=[(1, [], [0])], writes=[(1, 0, 10)], drafts={1: 2})
    runtime.apply_step(step)
    grants, writes = [(2, [0], [1])], [(1, 10, 6), (2, 16, 1)]
    return "step", (Step(grants=grants, writes=writes, reads=[(2, 0, 17)]),)


def shared_block_shortened_in_its_step(
    runtime: Runtime,
) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 16)
    return "step", (Step(grants=[(2, [0], [1])], writes=[(1, 10, 2), (2, 16, 1)]),)


def shared_block_beyond_a_rewrite(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0, 1], 32)
    runtime.apply_step(Step(grants=[(2, [1], [3])], writes=[(2, 16, 1)]))
    return "step", (Step(writes=[(1, 5, 2)]),)


def published_before_any_copy(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    step = Step(grants=[(1, [], [0])], writes=[(1, 0, 16)], drafts={1: 1})
    runtime.apply_step(step)
    runtime.confirm(1, 16)
    return "commit", (0,)


def published_after_a_rewrite_of_the_copy(
    runtime: Runtime,
) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 15)
    runtime.write(1, 15, 1)
    runtime.apply_step(Step(writes=[(1, 15, 1)], drafts={1: 1}))
    runtime.confirm(1, 16)
    return "commit", (0,)


def published_in_time(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 15)
    runtime.write(1, 15, 1)
    return "commit", (0,)


def shared_block_left_partial(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 4)
    return "step", (Step(grants=[(2, [0], [1])], writes=[(1, 4, 3), (2, 16, 1)]),)


def read_past_what_is_written(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 4)
    return "step", (Step(writes=[(1, 4, 1)], reads=[(1, 0, 6)]),)


def read_of_a_block_given_up(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0, 1], 20)
    runtime.release(1, 0)
    return "step", (Step(reads=[(1, 15, 20)]),)


def two_ranges_of_one_request(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0, 1], 16)
    return "step", (Step(writes=[(1, 16, 1), (1, 17, 1)]),)


def shared_after_own_blocks(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 16)
    start(runtime, 2, [1], 1)
    return "share", (2, 0)


def evicted_while_held(runtime: Runtime) -> tuple[str, tuple[Any, ...]]:
    start(runtime, 1, [0], 16)
    return "evict", (0,)


@pytest.mark.parametrize(
    ("situation", "clause"),
    [
        (shared_and_released_again, None),
        (shared_partial_and_given_up_a_step_ago, None),
        (shared_block_filled_by_drafts, None),
        (published_in_time, None),
        (shared_block_shortened_in_its_step, "STEP-SHARED"),
        (shared_block_beyond_a_rewrite, "LIFE-SEALED"),
        (published_before_any_copy, "LIFE-PUBLISH"),
        (published_after_a_rewrite_of_the_copy, "LIFE-PUBLISH"),
        (shared_block_left_partial, "STEP-SHARED"),
        (read_past_what_is_written, "LIFE-READ"),
        (read_of_a_block_given_up, "LIFE-READ"),
        (two_ranges_of_one_request, "LIFE-GAPLESS"),
        (shared_after_own_blocks, "LIFE-PREFIX"),
        (evicted_while_held, "LIFE-EVICT"),
    ],
)
def test_the_specification_decides(situation: Situation, clause: str | None) -> None:
    """What is allowed and what is not, with the clause that forbids it."""
    assert clause == clause_for(situation)


# --- what the runtime refuses ---------------------------------------------------------


def test_memory_that_runs_out_is_a_reason() -> None:
    runtime = small()
    refinement = Refinement.attach(runtime)
    size = runtime.layout.pair_blocks
    blocks = [*range(runtime.layout.pairs * size)]
    for pair in range(runtime.layout.pairs - 1):
        runtime.bind(pair, blocks[pair])
    runtime.bind("last", blocks[-1])
    with pytest.raises(PattonError):
        runtime.bind("one more", blocks[-2])

    refused = check_refusal(refinement, "bind", ("one more", blocks[-2]))
    assert "LIFE-BIND" == refused.clause
    assert reason(refinement, "bind", ("last", blocks[-2])) is None


def test_a_refusal_without_a_reason_is_reported() -> None:
    runtime = small()
    start(runtime, 1, [0], 4)
    with pytest.raises(RefinementError) as error:
        check_refusal(Refinement.of(runtime), "bind", (1, 1))

    assert "LIFE-OPEN" == error.value.clause


def test_a_refusal_that_left_a_trace_is_reported() -> None:
    runtime = small()
    start(runtime, 1, [0], 4)
    refinement = Refinement.of(runtime)
    runtime.bind(1, 1)
    with pytest.raises(RefinementError):
        check_refusal(refinement, "bind", (1, 0))


def test_runtime_and_machine_agree_on_events_that_make_little_sense() -> None:
    """What one carries out the other allows; what one refuses the other refuses."""
    outcomes: Counter[str] = Counter()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        runtime = Runtime.of(random_layout(rng), adoption=seed % 3 > 0)
        mischief = Mischief(runtime, rng)
        for _ in range(120):
            mischief.event()
        mischief.refinement.check()
        outcomes += mischief.outcomes

    assert {"step", "finish", "share", "release", "evict", "confirm"} <= {*outcomes}
    assert {"refused: STEP-SHARED", "refused: LIFE-SEALED"} <= {*outcomes}
