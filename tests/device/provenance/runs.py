"""Runs of random engines whose placed steps and streams tests look at."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import attrs
import numpy as np

from patton.commands import CommandStream, Phase
from patton.config import CommitWay
from patton.device.provenance import Identify, StreamValidator
from patton.errors import ValidationError
from patton.generate import generate_step
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import PlacedStep, Step, StepPlan
from tests.core.driver import RandomEngine
from tests.core.strategies import random_layout
from tests.served import ServedEngine

# Called with every placed step and with who its tokens are.
Watch = Callable[[PlacedStep, Identify], None]

WAYS: tuple[CommitWay, ...] = ("host", "read-back", "global-buffer")


@attrs.define(eq=False)
class PlacingRuntime(Runtime):
    """A runtime that takes placements down at once, before commits are published."""

    def apply_step(self, step: Step) -> StepPlan:
        plan = super().apply_step(step)
        plan.place()
        return plan


@attrs.define
class WatchedEngine(ServedEngine):
    """The served engine whose steps are shown instead of executed."""

    watch: Watch | None = None

    def _execute(self, placed: PlacedStep) -> None:
        assert self.watch is not None
        self.watch(placed, lambda tokens: self._token_data(placed, tokens))


def layout_of(seed: int) -> Layout:
    """Any small layout, any way to commit, masks or none, 1 to 8 registers."""
    way = WAYS[seed % 3]
    return random_layout(
        np.random.default_rng(seed),
        commit_way=way,
        copy_column="free" if way == "global-buffer" else "same",
        write_masks=seed % 4 > 0,
        result_registers=1 + seed % 8,
    )


def options_of(seed: int) -> dict[str, Any]:
    """Ways to run a runtime."""
    choice = ("spread", "packed")[seed % 2]
    return {"choice": choice, "commit_zone": seed % 7 > 0, "adoption": seed % 5 > 0}


def driven(seed: int, steps: int) -> Iterator[PlacedStep]:
    """Steps of the driver's engine on a random layout."""
    runtime = PlacingRuntime.of(layout_of(seed), **options_of(seed))
    engine = RandomEngine(runtime, np.random.default_rng(seed))
    for _ in range(steps):
        plan = engine.step()
        if plan is not None:
            yield plan.place()


def serve(
    layout: Layout,
    seed: int,
    steps: int,
    watch: Watch,
    **options: Any,
) -> WatchedEngine:
    """Steps of the served engine."""
    rng = np.random.default_rng(seed)
    runtime = Runtime.of(layout, **options)
    engine = WatchedEngine(runtime, [], rng, watch=watch)
    for _ in range(steps):
        engine.step()
    return engine


@attrs.frozen
class Moment:
    """A stream about to be executed, and the validator that has seen all before it."""

    validator: StreamValidator
    placed: PlacedStep
    stream: CommandStream


def moments(seed: int, steps: int) -> list[Moment]:
    """Every stream of a run that goes right."""
    layout, found = layout_of(seed), list[Moment]()
    validator = StreamValidator.of(layout)

    def watch(placed: PlacedStep, identify: Identify) -> None:
        for stream in generate_step(placed).present():
            found.append(Moment(fork(validator), placed, stream))
            validator.check(placed, stream, identify)

    serve(layout, seed, steps, watch, **options_of(seed))
    return found


def fork(validator: StreamValidator) -> StreamValidator:
    """A validator in the same state, which goes on without changing the first."""
    other = copy.copy(validator)
    other.memory = copy.deepcopy(validator.memory)
    other.ledger = copy.deepcopy(validator.ledger)
    other.contents = attrs.evolve(
        validator.contents,
        key=validator.contents.key.copy(),
        value=validator.contents.value.copy(),
    )
    if validator._step is not None:
        step = copy.copy(validator._step)
        step.identify = None  # an engine knows its tokens of the moment only
        step.writes = attrs.evolve(step.writes, contents=other.contents)
        step.reads = attrs.evolve(step.reads, contents=other.contents)
        other._step = step
    return other


@cache
def moments_of(phase: Phase) -> list[Moment]:
    """Streams of one kind, the latest first."""
    found = [m for seed in (1, 2, 3) for m in moments(seed, 8)]
    return [m for m in reversed(found) if m.stream.phase == phase]


def faults_of(
    validator: StreamValidator, placed: PlacedStep, streams: list[CommandStream]
) -> dict[str, ValidationError]:
    """The error that the streams raise, if any, by its fault."""
    try:
        for stream in streams:
            validator.check(placed, stream)
    except ValidationError as error:
        return {error.fault: error}
    return {}
