"""Token by token Value writes of many requests, timed with and without a Commit Zone.

Requests write in step, so that the slots of a Commit Zone row belong to as many as it
has: the case in which the Commit Zone saves most (Paper 4.4).
"""

from __future__ import annotations

from typing import NamedTuple

from patton.commands import Phase
from patton.config import device_preset, model_preset
from patton.device.aim.costs import Target, run_stream
from patton.generate import generate_step
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step

BANKS = 16


class Written(NamedTuple):
    """Of one layer: cycles, and activations per channel in all-bank equivalents."""

    cycles: int
    activations: float


def written(
    model: str, requests: int, variant: str, *, commit_zone: bool, blocks: int = 1
) -> Written:
    """What the writes and commits of so many whole blocks a request take."""
    layout = Layout.of(device_preset("aim-gddr6"), model_preset(model))
    runtime = Runtime.of(layout, commit_zone=commit_zone)
    size = layout.block_tokens
    cycles = acts = 0
    for position in range(blocks * size):
        grants: list[tuple[str, list[int], list[int]]] = []
        if position % size == 0:
            first = position // size * requests
            grants = [(str(r), [], [first + r]) for r in range(requests)]
        writes = [(str(r), position, 1) for r in range(requests)]
        plan = runtime.apply_step(Step(grants=grants, writes=writes))
        for stream in generate_step(plan.place()).present():
            if stream.phase in {Phase.VALUE_WRITE, Phase.COMMIT}:
                result = run_stream(stream, Target(variant))
                cycles += result.cycles
                acts += result.commands[0].get("ACT", 0)
        runtime.publish(plan)
    return Written(cycles, acts / BANKS)
