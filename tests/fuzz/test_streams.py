"""Runs of SV are counted (CMD-RUNS), and what others left is all one (DEV-ALONE)."""

from __future__ import annotations

import pytest

from fuzz.runs import accumulators, runs_due
from fuzz.serving import serve_after_others
from patton.commands import Op
from patton.generate import generate_step
from patton.runtime import Runtime
from patton.steps import PlacedStep, Step
from tests.core.llama import llama


def read_of(runtime: Runtime, tokens: int) -> PlacedStep:
    """A request with so many tokens, all of which one query sees."""
    blocks = [*range(-(-tokens // runtime.layout.block_tokens))]
    step = Step(grants=[(1, [], blocks)], writes=[(1, 0, tokens)])
    runtime.publish(runtime.apply_step(step))
    return runtime.apply_step(Step(reads=[(1, 0, tokens)])).place()


def test_a_row_set_is_one_run() -> None:
    """Llama3-8B: 64 blocks lie in one Value Row Set of two rows, 65 in two."""
    for blocks, sets in ((1, 1), (64, 1), (65, 2)):
        placed = read_of(llama(), blocks * 16)
        stream = generate_step(placed).sv
        due = sets * 2 * 4 * 4  # rows, channels, query heads

        assert runs_due(placed) == due
        assert accumulators(stream, Op.WRBIAS) == due
        assert accumulators(stream, Op.RDMAC) == due


def test_a_block_in_a_slot_is_no_run() -> None:
    placed = read_of(llama(), 5)

    assert runs_due(placed) == 0
    assert generate_step(placed).sv is None


def test_a_window_has_only_the_sets_that_it_sees() -> None:
    """A read from the second row set on opens one set, whatever lies before."""
    runtime = llama()
    read_of(runtime, 65 * 16)
    placed = runtime.apply_step(Step(reads=[(1, 64 * 16, 65 * 16)])).place()

    assert runs_due(placed) == accumulators(generate_step(placed).sv, Op.RDMAC) > 0


@pytest.mark.parametrize("seed", range(3))
def test_what_others_left_has_no_say(seed: int) -> None:
    assert serve_after_others(seed, 12)[1] is None
