"""One decode step of requests of given lengths, timed: what a context or a batch costs.

Blocks are placed by the runtime while prompts come in side by side, as they would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from patton.config import DeviceConfig, ModelConfig, device_preset, model_preset
from patton.device.aim.costs import Target, stream_cost
from patton.engine.costs import phase_name
from patton.errors import ConfigError
from patton.generate import PAPER, best_schedule, generate_step
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import PlacedStep, Step
from patton.study.tasks import Result

ScheduleName = Literal["paper", "best"]

MOST_REQUESTS = 512  # whose partial blocks the Commit Zone holds
CHUNK = 256  # tokens of each prompt that a step computes


@attrs.frozen
class DecodeTask:
    """A decode step of one layer.

    lengths: tokens of each request before it. modules: devices over which the Key-Value
    heads are split; the step is that of one, all do the same at once. timed: False to
    count activations and commands only, for devices whose timing is not known.
    """

    model: str
    lengths: tuple[int, ...]
    schedule: ScheduleName = "paper"
    device: str = "aim-gddr6"
    registers: int = 1
    modules: int = 1
    variant: str = "pin"
    host: str = "port-per-channel"
    timed: bool = True

    def execute(self) -> Result:
        """Cycles and energy by phase of one layer; activations of all its channels."""
        device = attrs.evolve(
            device_preset(self.device), result_registers=self.registers
        )
        layout = roomy_layout(device, self._part(), sum(self.lengths))
        best = self.schedule == "best"
        schedule = best_schedule(device.name, self.variant) if best else PAPER
        streams = generate_step(decode_step(layout, self.lengths), schedule=schedule)
        cycles, energy, activations, macs = {}, {}, {}, {}
        target = Target(self.variant, self.host, channels=device.channels)
        heads = layout.model.kv_heads
        for stream in streams.present():
            phase = phase_name(stream)
            activations[phase] = stream.activations() * heads
            macs[phase] = stream.counts()
            if self.timed:
                cost = stream_cost(stream, target)
                cycles[phase] = cost.cycles
                energy[phase] = sum(cost.energy_pj.values())
        return {
            "cycles": cycles,
            "energy_pj": energy,
            "activations": activations,
            "commands": {p: {o.name: n for o, n in c.items()} for p, c in macs.items()},
            "tokens_of_device": whole_layout(device, self._part()).tokens,
        }

    def _part(self) -> ModelConfig:
        """What one module holds of the model."""
        model = model_preset(self.model)
        if model.kv_heads % self.modules:
            accepted = f"a divisor of {model.kv_heads} Key-Value heads"
            raise ConfigError("study", "modules", self.modules, accepted)
        return attrs.evolve(
            model,
            kv_heads=model.kv_heads // self.modules,
            query_heads=model.query_heads // self.modules,
        )


def roomy_layout(device: DeviceConfig, model: ModelConfig, tokens: int) -> Layout:
    """The layout on a device with rows enough for so many tokens and the Commit Zone.

    Time and energy of commands do not depend on the number of rows.
    """
    layout = whole_layout(device, model, slots=MOST_REQUESTS)
    while layout.tokens < 2 * tokens:
        device = attrs.evolve(device, rows=2 * device.rows)
        layout = whole_layout(device, model, slots=MOST_REQUESTS)
    return layout


def whole_layout(
    device: DeviceConfig, model: ModelConfig, slots: int | None = None
) -> Layout:
    """The layout with the smallest blocks, of at least 16 tokens, that the device has.

    Raises LayoutError.
    """
    block_tokens = max(16, device.banks, device.lanes)
    return Layout.of(device, model, block_tokens=block_tokens, slots=slots)


def decode_step(layout: Layout, lengths: Sequence[int]) -> PlacedStep:
    """The step in which requests of these lengths, prompts done, add a token each."""
    runtime = Runtime.of(layout)
    done = [0] * len(lengths)
    while any(had < length for had, length in zip(done, lengths, strict=True)):
        counts = [min(CHUNK, n - had) for had, n in zip(done, lengths, strict=True)]
        plan = runtime.apply_step(_step(layout, done, counts))
        runtime.publish(plan)
        done = [had + count for had, count in zip(done, counts, strict=True)]
    return runtime.apply_step(_step(layout, done, [1] * len(done))).place()


def _step(layout: Layout, done: Sequence[int], counts: Sequence[int]) -> Step:
    """So many tokens more of each request; all read what they have."""
    size = layout.block_tokens
    bound = sum(-(-had // size) for had in done)
    grants: list[tuple[int, list[int], list[int]]] = []
    for request, (start, count) in enumerate(zip(done, counts, strict=True)):
        new = -(-(start + count) // size) - -(-start // size)
        if new:
            grants.append((request, [], [*range(bound, bound + new)]))
            bound += new
    writes = [(r, done[r], count) for r, count in enumerate(counts) if count]
    reads = [(r, 0, start + count) for r, start, count in writes]
    return Step(grants=grants, writes=writes, reads=reads)
