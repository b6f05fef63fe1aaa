"""A served workload from end to end: engine, runtime, streams, device, checks.

One step goes one way: the engine schedules (and tells the runtime as it goes), the
runtime places, the generators make the streams, the device executes them and every
output is compared; then commits are published and the engine completes the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Literal, get_args

import attrs

from patton.arguments import expect, expect_fields, is_one_of
from patton.device import ReferenceDevice
from patton.device.aim.costs import Target
from patton.engine.accounting import ValueRuns, ValueWriteActivations
from patton.engine.checking import DataCheck
from patton.engine.costs import RunCosts
from patton.engine.requests import Request, StepRecord
from patton.engine.serving import LoopSettings, ServingLoop, reference_hit_rate
from patton.engine.validation import StreamCheck
from patton.engine.workloads import Workload
from patton.errors import ConfigError, RequestTooLargeError
from patton.generate import PAPER, Schedule, generate_step
from patton.layout import Layout
from patton.pairs import Choice
from patton.runtime import Runtime
from patton.steps import PlacedStep, Step

Check = Literal["data", "placement", "lifecycle"]
CHECKS: tuple[Check, ...] = get_args(Check)

Progress = Callable[[int], None]


@attrs.frozen
class RunSettings:
    """What to serve, where, and how closely to look.

    check: "data" executes every stream on the device and compares every output;
    "placement" only generates the streams, "lifecycle" not even those. layers: how many
    are executed (the layout always has all). choice, adoption, commit_zone: of the
    runtime. validate: also prove every stream term by term. costs: on what to count
    cycles and energy, None for not at all; timeline_steps: how many of the last steps
    to keep for a picture of that. schedule: the order of the streams' commands.
    """

    workload: Workload
    layout: Layout
    loop: LoopSettings
    steps: int
    check: Check = "data"
    layers: int | None = None
    choice: Choice = "spread"
    adoption: bool = True
    commit_zone: bool = True
    validate: bool = False
    costs: Target | None = None
    timeline_steps: int = 0
    schedule: Schedule = PAPER

    @property
    def executed_layers(self) -> int:
        """Layers that a data check executes."""
        return self.layout.model.layers if self.layers is None else self.layers


@attrs.define(eq=False)
class Session:
    """A run in progress: `step` until `is_done`, then `report`."""

    settings: RunSettings
    runtime: Runtime
    loop: ServingLoop
    data: DataCheck | None
    proof: StreamCheck | None
    costs: RunCosts | None
    activations: ValueWriteActivations = attrs.field(factory=ValueWriteActivations)
    value_runs: ValueRuns = attrs.field(factory=ValueRuns)
    committed: int = 0
    seconds: float = 0.0
    _running: dict[int, Request] = attrs.field(factory=dict)

    @classmethod
    def of(cls, settings: RunSettings) -> Session:
        """A fresh run. Raises ConfigError, WorkloadError, RequestTooLargeError."""
        _validate(settings)
        layout = settings.layout
        runtime = Runtime.of(
            layout,
            choice=settings.choice,
            adoption=settings.adoption,
            commit_zone=settings.commit_zone,
        )
        loop = ServingLoop.of(
            settings.workload,
            settings.loop,
            layout.granules,
            placement=runtime,
            pair_blocks=layout.pair_blocks,
        )
        data = None
        if settings.check == "data":
            device = ReferenceDevice(layout.device)
            data = DataCheck(layout, device, settings.executed_layers)
        proof = StreamCheck.of(layout) if settings.validate else None
        costs = None
        if settings.costs is not None:
            costs = RunCosts.of(layout, settings.costs, settings.timeline_steps)
        return cls(settings, runtime, loop, data, proof, costs)

    @property
    def is_done(self) -> bool:
        """All steps were served, or the workload has ended."""
        served = self.loop.statistics.steps
        return served >= self.settings.steps or self.loop.is_exhausted

    def run(self, progress: Progress | None = None) -> None:
        """Serve all steps; `progress` is told the number served after each."""
        while not self.is_done:
            self.step()
            if progress is not None:
                progress(self.loop.statistics.steps)

    def step(self) -> None:
        """Serve one step.

        Raises MismatchError if an output is wrong, ValidationError if a stream is.
        """
        began = time.perf_counter()
        record = self.loop.step()
        plan = self.runtime.apply_step(step_of(record))
        placed = plan.place()
        single = [row[0].id for row in record.scheduled if row[2] == 1]
        self.activations.add(self.settings.layout, plan, single)
        self.value_runs.add(placed)
        self.committed += len(plan.commits)
        if self.settings.check != "lifecycle":
            self._execute(record, placed)
        self.runtime.publish(plan)
        self.loop.completed(record)
        for request in record.finished:
            self._running.pop(request.id, None)
            if self.data is not None:
                self.data.forget(request.id)
        self.seconds += time.perf_counter() - began

    def _execute(self, record: StepRecord, placed: PlacedStep) -> None:
        streams = generate_step(placed, schedule=self.settings.schedule)
        self._running |= {row[0].id: row[0] for row in record.scheduled}
        if self.proof is not None:
            self.proof.run(placed, streams, self._running)
        if self.data is not None:
            self.data.run(placed, streams, self._running)
        if self.costs is not None:
            self.costs.add(streams)

    # --- results ------------------------------------------------------------------

    def reference_hit_rate(self, blocks: int | None = None) -> float:
        """Hit rate of a plain block-granular cache on the steps served so far.

        blocks: of that cache; default: as many as the device has.
        """
        settings = self.settings
        count = settings.layout.granules if blocks is None else blocks
        steps = self.loop.statistics.steps
        return reference_hit_rate(settings.workload, settings.loop, count, steps)

    def effective_capacity(self, progress: Callable[[], None] | None = None) -> float:
        """Largest share of the blocks with which the reference hits no more often.

        By bisection to a thousandth: the plain cache of that share is worth as much as
        this run's placement of the whole device (the measure of Paper 5.4).
        """
        whole = self.settings.layout.granules
        hit_rate = self.loop.statistics.prefix_hit_rate
        if self.reference_hit_rate() <= hit_rate:
            return 1.0
        low, high = 0, 1000
        while high - low > 1:
            middle = (low + high) // 2
            blocks = max(1, whole * middle // 1000)
            if self._hits_no_more(blocks, hit_rate):
                low = middle
            else:
                high = middle
            if progress is not None:
                progress()
        return low / 1000

    def _hits_no_more(self, blocks: int, hit_rate: float) -> bool:
        try:
            return self.reference_hit_rate(blocks) <= hit_rate
        except RequestTooLargeError:
            return True  # too small a cache to serve at all hits nothing

    def report(self) -> dict[str, Any]:
        """Everything measured, under the names of the command line's JSON."""
        statistics, activations = self.loop.statistics, self.activations
        return {
            "steps": statistics.steps,
            "requests": statistics.requests,
            "turns": statistics.turns,
            "prefill_tokens": statistics.prefill_tokens,
            "decode_tokens": statistics.decode_tokens,
            "prefix_hit_rate": statistics.prefix_hit_rate,
            "blocks_bound": statistics.blocks_bound,
            "blocks_committed": self.committed,
            "pairs_adopted": self.runtime.adopted_pairs,
            "preemptions": statistics.preemptions,
            "evictions": statistics.evictions,
            "chunked_prefills": statistics.chunked_prefills,
            "same_step_shares": statistics.same_step_shares,
            "outputs_checked": self.data.outputs if self.data else 0,
            "tokens_read_back": self.data.read_back if self.data else 0,
            "bit_exact": True if self.data else None,
            "streams_validated": self.proof.validator.streams if self.proof else None,
            "commands_validated": self.proof.validator.commands if self.proof else None,
            "max_rel_error": self.data.max_rel_error if self.data else None,
            "value_write_activations": {
                "direct": activations.direct,
                "commit_zone": activations.commit_zone,
                "ratio": activations.ratio,
            },
            "sv_runs": self.value_runs.runs,
            "blocks_per_sv_run": self.value_runs.blocks_per_run,
            **(self.costs.report() if self.costs else dict.fromkeys(RunCosts.KEYS)),
            "seconds": self.seconds,
        }


def step_of(record: StepRecord) -> Step:
    """What is left to tell the runtime once the engine has scheduled a step.

    Tables, references and evictions were told as they happened. Decodes attend on the
    device; a prefill attends on the host, which reads the cached part back for it.
    """
    return Step(
        writes=[(row.id, start, count) for row, start, count, _ in record.scheduled],
        reads=[
            (row.id, 0, start + 1)
            for row, start, _, decode in record.scheduled
            if decode
        ],
        readbacks=[
            (row.id, 0, start)
            for row, start, _, decode in record.scheduled
            if start and not decode
        ],
    )


def _validate(settings: RunSettings) -> None:
    expect("Session.of", "settings", settings, RunSettings)
    expect_fields(
        "run",
        settings,
        workload=Workload,
        layout=Layout,
        loop=LoopSettings,
        steps=int,
        layers=(int, type(None)),
        validate=bool,
        costs=(Target, type(None)),
        timeline_steps=int,
        schedule=Schedule,
    )
    if not is_one_of(settings.check, CHECKS):
        raise ConfigError("run", "check", settings.check, " or ".join(CHECKS))
    if settings.costs is not None and settings.check == "lifecycle":
        accepted = "data or placement, where there are streams to time"
        raise ConfigError("run", "check", settings.check, accepted)
    if settings.validate and settings.check == "lifecycle":
        accepted = "data or placement, where there are streams to validate"
        raise ConfigError("run", "check", settings.check, accepted)
    if not settings.loop.caching:
        accepted = "True, since PATTON keeps full blocks until they are evicted"
        raise ConfigError("run", "caching", False, accepted)
    if settings.steps < 1:
        raise ConfigError("run", "steps", settings.steps, "at least 1")
    most = settings.layout.model.layers
    if not 1 <= settings.executed_layers <= most:
        raise ConfigError("run", "layers", settings.layers, f"1 to {most}")
