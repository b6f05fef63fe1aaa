"""Serving a workload on one system, timing a sample of the steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import attrs

from patton.commands import Phase
from patton.config import aim_gddr6, model_preset
from patton.device.aim.costs import Target, stream_cost
from patton.engine.costs import phase_name
from patton.engine.placement_gate import Eviction
from patton.engine.requests import StepRecord
from patton.engine.serving import LoopSettings, ServingLoop
from patton.engine.session import step_of
from patton.errors import ConfigError
from patton.layout import Layout
from patton.study.estimates import Sample
from patton.study.prefill import A100_PCIE, A100_SLOW, LINEAR_LAYERS, PrefillModel
from patton.study.recomputation import CacheReference, PrefillMeter
from patton.study.tasks import Result, Source
from patton.systems import Counts, Memory, PlacedStep, Usage, system

Options = tuple[tuple[str, Any], ...]

# What a step's cost depends on, counted in every step.
DRIVERS: Final = (
    "decode tokens",
    "prefill tokens",
    "positions that decodes attend to",
    "blocks that decodes fill",
    "positions read back for prefill",
)


@attrs.frozen
class ServeTask:
    """One system serves one model's workload for so many engine steps.

    system, options: see `patton.systems.system`. every: one step of so many is timed
    exactly, on `variant` and `host` of the simulator. max_context: of the workload; a
    system may have a lower limit. registers: of each bank. eviction: of the engine,
    where a memory has pairs.
    """

    model: str
    system: str
    source: Source
    steps: int
    every: int
    concurrency: int
    pool: int
    max_context: int
    variant: str = "pin"
    host: str = "port-per-channel"
    registers: int = 1
    eviction: Eviction = "pairs"
    options: Options = ()

    def __attrs_post_init__(self) -> None:
        for name in ("steps", "every"):
            if getattr(self, name) < 1:
                raise ConfigError("study", name, getattr(self, name), "at least 1")

    def execute(self) -> Result:
        """Serve, and report counts, sampled costs and prefill."""
        run = _Run.of(self)
        run.serve()
        return run.report()


@attrs.define(eq=False)
class _Timed:
    """Costs of the timed steps, for all layers; a phase that a step lacks has none."""

    target: Target
    layers: int
    steps: list[int] = attrs.field(factory=list)
    cycles: list[dict[str, int]] = attrs.field(factory=list)
    energy: list[dict[str, float]] = attrs.field(factory=list)
    counts: dict[str, dict[str, float]] = attrs.field(factory=dict)
    usage: list[tuple[float, float]] = attrs.field(factory=list)

    def add(self, step: int, placed: PlacedStep, usage: Usage) -> None:
        """Time one step."""
        self._count(placed.counts())
        full = usage.tokens_held / max(1, usage.tokens_reserved)
        self.usage.append((usage.used / usage.units, full))
        streams = placed.streams().present()
        cycles: Counter[str] = Counter()
        energy: dict[str, float] = {}
        for stream in streams:
            phase = phase_name(stream)
            cost = stream_cost(stream, self.target)
            picojoules = sum(cost.energy_pj.values()) * self.layers
            cycles[phase] += cost.cycles * self.layers
            energy[phase] = energy.get(phase, 0.0) + picojoules
        self.steps.append(step)
        self.cycles.append(dict(cycles))
        self.energy.append(energy)

    def _count(self, by_phase: Mapping[Phase, Counts]) -> None:
        """Add up what one layer does in the timed steps, over the whole device."""
        for phase, counts in by_phase.items():
            row = self.counts.setdefault(phase.value.replace("-", "_"), {})
            for name, value in attrs.asdict(counts).items():
                row[name] = row.get(name, 0) + value


@attrs.define(eq=False)
class _Run:
    task: ServeTask
    memory: Memory
    loop: ServingLoop
    meter: PrefillMeter | None
    timed: _Timed
    drivers: list[tuple[int, ...]] = attrs.field(factory=list)

    @classmethod
    def of(cls, task: ServeTask) -> _Run:
        """A fresh run. Raises ConfigError, WorkloadError, RequestTooLargeError."""
        model = model_preset(task.model)
        device = attrs.evolve(aim_gddr6(), result_registers=task.registers)
        memory = system(task.system, **dict(task.options)).on(device, model)
        settings = LoopSettings(
            concurrency=task.concurrency,
            pool=task.pool,
            max_context=min(task.max_context, memory.longest),
            block_tokens=memory.block_tokens,
            caching=memory.caches,
            eviction=task.eviction,
        )
        loop = ServingLoop.of(
            task.source.open(model.tokenizer),
            settings,
            memory.blocks,
            placement=memory,
            pair_blocks=memory.pair_blocks,
        )
        meter = None
        if task.model in LINEAR_LAYERS:
            plain = task.source.open(model.tokenizer)
            blocks = Layout.of(device, model).granules
            meter = PrefillMeter(CacheReference.of(plain, settings, blocks))
        target = Target(variant=task.variant, host=task.host, channels=device.channels)
        return cls(task, memory, loop, meter, _Timed(target, model.layers))

    def serve(self) -> None:
        """All steps, or as many as the workload has."""
        every = self.task.every
        for number in range(self.task.steps):
            if self.loop.is_exhausted:
                break
            record = self.loop.step()
            placed = self.memory.apply(step_of(record))
            self.drivers.append(_drivers(record, self.memory.block_tokens))
            # In the middle of each interval: the cold start has the weight of one step.
            if number % every == every // 2:
                self.timed.add(number, placed, self.memory.usage())
            self.memory.publish(placed)
            self.loop.completed(record)
            if self.meter is not None:
                self.meter.add(record)

    def report(self) -> Result:
        """Everything that was measured, as JSON.

        counts: sums over the timed steps, of one layer; usage: of each timed step the
        part of the memory that is taken, and the part of that which holds tokens.
        """
        statistics = self.loop.statistics
        sample = Sample.of(self.drivers, self.timed.steps)
        totals = [sum(column) for column in zip(*self.drivers, strict=True)]
        return {
            "statistics": attrs.asdict(statistics),
            "hit_rate": statistics.prefix_hit_rate,
            "drivers": dict(zip(DRIVERS, totals, strict=True)),
            "timed": [self.drivers[step] for step in self.timed.steps],
            "cycles": _estimated(sample, self.timed.cycles),
            "energy_pj": _estimated(sample, self.timed.energy),
            "counts": self.timed.counts,
            "usage": self.timed.usage,
            "prefill": self._prefill(),
        }

    def _prefill(self) -> dict[str, Any] | None:
        if self.meter is None:
            return None
        complete = self.meter.complete.batches()
        required = self.meter.required.batches()
        found: dict[str, Any] = {
            "tokens": int(complete.tokens.sum()),
            "required_tokens": int(required.tokens.sum()),
        }
        for name, gpu in (("seconds", A100_PCIE), ("seconds_slow", A100_SLOW)):
            model = PrefillModel.of(model_preset(self.task.model), gpu)
            found[name] = model.total(complete)
            found["required_" + name] = model.total(required)
        return found


def _drivers(record: StepRecord, block_tokens: int) -> tuple[int, ...]:
    """What the step's cost depends on, in the order of DRIVERS."""
    decode = prefill = attended = filled = returned = 0
    for _, start, count, decodes in record.scheduled:
        if decodes:
            decode += 1
            attended += start + 1
            filled += (start + 1) % block_tokens == 0
        else:
            prefill += count
            returned += start
    return decode, prefill, attended, filled, returned


def _estimated(
    sample: Sample, costs: list[dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    """By phase: the total over the run, and the sample that it comes from."""
    found = {}
    for phase in sorted({phase for step in costs for phase in step}):
        sampled = [step.get(phase, 0) for step in costs]
        estimate = sample.estimate(sampled)
        found[phase] = {
            "total": estimate.total,
            "sampled": sampled,
            "residuals": estimate.residuals.tolist(),
            "fitted": estimate.fitted,
        }
    return found
