"""The worker's half: repeats what happened to the runtime, places, generates streams.

A step's placements follow from its events, so those are what the scheduler sends. The
streams of a step serve all its layers and are made once, when first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.device import ReferenceDevice
from patton.errors import EngineStateError, RequestError
from patton.executor import Executor
from patton.generate import StepStreams, generate_step
from patton.layout import Layout
from patton.requests import RELEASED
from patton.runtime import Runtime
from patton.steps import PlacedStep, Request, Step, StepPlan
from patton.vllm.lifecycle import Event
from patton.vllm.options import Options

Ints = NDArray[np.int64]


def attending(step: Step, window: int | None) -> Step:
    """The step with what its tokens attend to.

    A span of one token and its drafts attends on the device, token by token; a longer
    one on the host, which reads the cached part back for it. window: tokens that a
    query sees, itself included; None for all before it.
    """
    reads: list[tuple[Request, int, int]] = []
    readbacks: list[tuple[Request, int, int]] = []
    for request, first, count in step.writes:
        if count == 1 + step.drafts.get(request, 0):
            ends = range(first + 1, first + count + 1)
            reads += [(request, _seen_from(end, window), end) for end in ends]
        elif (start := _seen_from(first + 1, window)) < first:
            readbacks.append((request, start, first))
    return attrs.evolve(step, reads=reads, readbacks=readbacks)


def _seen_from(end: int, window: int | None) -> int:
    """The first position that a query at `end - 1` sees."""
    return 0 if window is None else max(0, end - window)


@attrs.frozen(eq=False, slots=False)
class WorkerStep:
    """One step as a worker executes it.

    tables: block ids of the requests of `placed`, in their order.
    """

    placed: PlacedStep
    tables: Sequence[Ints]

    @classmethod
    def of(cls, plan: StepPlan, runtime: Runtime) -> WorkerStep:
        """What to execute of a step that was just applied. Raises RequestError."""
        placed = plan.place()
        running, size = runtime.placements.requests, placed.layout.block_tokens
        tables = {
            name: list(running[name].blocks) if name in running else []
            for name in placed.requests
        }
        for commit in plan.commits:
            # A request may have ended with a block that its last drafts had filled.
            table, index = tables[commit.request], commit.position // size
            table += [RELEASED] * (index + 1 - len(table))
            if commit.request not in running:
                table[index] = commit.block
            elif table[index] != commit.block:
                value = f"block {commit.block}, of an earlier one of this name"
                accepted = "another name as long as a commit is due"
                raise RequestError("commit", commit.request, value, accepted)
        return cls(placed, [np.array(tables[n], np.int64) for n in placed.requests])

    @cached_property
    def commands(self) -> int:
        """Commands of all streams, for one layer."""
        return sum(
            int(stream.command_counts().sum()) for stream in self.streams.present()
        )

    @cached_property
    def streams(self) -> StepStreams:
        """The streams of every layer of the step."""
        return generate_step(self.placed)

    def slots(self, requests: Ints, positions: Ints) -> Ints:
        """Where vLLM's KV cache keeps tokens: block id * block tokens + offset.

        requests: indices into `placed.requests`; positions: as in the streams' tables.
        """
        size = self.placed.layout.block_tokens
        slots = np.empty(len(positions), np.int64)
        for request in np.unique(requests).tolist():
            chosen = requests == request
            index, offset = np.divmod(positions[chosen], size)
            slots[chosen] = self.tables[request][index] * size + offset
        return slots


@attrs.define(eq=False)
class Worker:
    """A runtime that follows the scheduler's, slots and all, and the device.

    window: tokens that a query sees, itself included; None for all before it.
    executor: what executes streams, None where they are only counted; current: the
    step under way. commands: generated so far, times the layers they were emitted for.
    """

    runtime: Runtime
    window: int | None
    executor: Executor | None
    current: WorkerStep | None = None
    commands: int = 0
    _plan: StepPlan | None = None

    @classmethod
    def of(
        cls, runtime: Runtime, options: Options, window: int | None = None
    ) -> Worker:
        """A worker whose runtime is fresh."""
        layout = runtime.layout
        executor = ReferenceDevice(layout.device) if options.check == "data" else None
        return cls(runtime, window, executor)

    @property
    def layout(self) -> Layout:
        """How the device is divided."""
        return self.runtime.layout

    def advance(self, number: int, events: Sequence[Event]) -> None:
        """Go on to step `number`. Raises EngineStateError if one was left out."""
        if number != self.runtime.step:
            problem = f"step {number} follows step {self.runtime.step - 1}"
            raise EngineStateError("metadata", problem)
        for event, arguments in events:
            if event == "step":
                self._apply(*arguments)
            else:
                getattr(self.runtime, event)(*arguments)

    def _apply(self, step: Step) -> None:
        """The copies of the step before are made: its commits are published first."""
        if self._plan is not None:
            self.runtime.publish(self._plan)
        self._plan = self.runtime.apply_step(attending(step, self.window))
        self.current = WorkerStep.of(self._plan, self.runtime)

    def emit(self) -> None:
        """Count the streams of one layer of the current step."""
        if self.current is not None:
            self.commands += self.current.commands
