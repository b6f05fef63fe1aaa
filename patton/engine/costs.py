"""Cycles and energy of a served run, phase by phase (Paper 5.2).

Every stream is simulated for one layer; layers cost the same, so sums are over all
layers of the model. The AiM device executes phases one after the other.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import attrs

from patton.commands import CommandStream
from patton.config import DEVICE_PRESETS
from patton.device.aim.convert import check_frame
from patton.device.aim.costs import Target, run_stream, stream_cost
from patton.device.aim.energy import Components
from patton.device.aim.presets import DEFAULT_PRESET
from patton.device.aim.simulation import AimResult
from patton.device.aim.timeline import write_timeline
from patton.errors import DeviceConfigError
from patton.generate import StepStreams
from patton.generate.assembly import frame_of
from patton.layout import Layout

# Their layouts are known, the timing of their in-memory commands is not published.
OTHER_DEVICES = DEVICE_PRESETS.keys() - {"aim-gddr6", "tiny"}

# Phases in which nothing but MACs would be the ideal.
MAC_BOUND_PHASES = ("qk", "sv", "partial")


def check_timing_known(layout: Layout) -> None:
    """Raise DeviceConfigError for a device whose timing no public source gives."""
    if layout.device.name in OTHER_DEVICES:
        accepted = "aim-gddr6, since no timing of the others is known"
        raise DeviceConfigError("cycles", "device", layout.device.name, accepted)


@attrs.define(eq=False)
class RunCosts:
    """What the streams of a run cost on an AiM device.

    layers: of the model. timeline_steps: so many of the last steps are kept for
    `write_timeline`. cycles, macs [phase], energy_pj [phase][component] and spent
    [phase][reason] are sums over steps and layers.
    """

    KEYS: ClassVar = ("cycles", "energy_pj", "mac_bound", "cycles_spent")

    target: Target
    layers: int
    recent: deque[list[CommandStream]]
    cycles: Counter[str] = attrs.field(factory=Counter)
    macs: Counter[str] = attrs.field(factory=Counter)
    energy_pj: dict[str, Components] = attrs.field(factory=dict)
    spent: dict[str, Counter[str]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, layout: Layout, target: Target, timeline_steps: int = 0) -> RunCosts:
        """Nothing counted yet.

        Raises DeviceConfigError for a device that the preset does not describe, and
        FrameError for what no trace can address.
        """
        if target.preset.name == DEFAULT_PRESET:
            check_timing_known(layout)
        layers = layout.model.layers
        check_frame(frame_of(layout), layers - 1, target.operands)
        target = attrs.evolve(target, channels=layout.device.channels)
        return cls(target, layers, deque(maxlen=timeline_steps))

    def add(self, streams: StepStreams) -> None:
        """Count one step."""
        present = streams.present()
        self.recent.append(present)
        for stream in present:
            phase = phase_name(stream)
            cost = stream_cost(stream, self.target)
            self.cycles[phase] += cost.cycles * self.layers
            self.macs[phase] += cost.macs * self.layers
            energy = self.energy_pj.setdefault(phase, {})
            for component, pj in cost.energy_pj.items():
                energy[component] = energy.get(component, 0.0) + pj * self.layers
            spent = self.spent.setdefault(phase, Counter())
            for reason, cycles in cost.spent.items():
                spent[reason] += cycles * self.layers

    def mac_bound(self) -> dict[str, float]:
        """By phase: what its MACABs alone would take, as a part of its cycles."""
        cycles_per_mac = 2
        return {
            phase: cycles_per_mac * self.macs[phase] / self.cycles[phase]
            for phase in MAC_BOUND_PHASES
            if self.cycles[phase]
        }

    def report(self) -> dict[str, Any]:
        """What was counted, under the names of the command line's JSON."""
        phases = sorted(self.cycles)
        return {
            "cycles": {phase: self.cycles[phase] for phase in phases},
            "energy_pj": {phase: self.energy_pj[phase] for phase in phases},
            "mac_bound": self.mac_bound(),
            "cycles_spent": {
                phase: dict(self.spent[phase])
                for phase in MAC_BOUND_PHASES
                if phase in self.spent
            },
        }

    def write_timeline(self, path: Path) -> int:
        """Draw layer 0 of the last steps for a viewer; the number of events."""
        return write_timeline(path, self._sections(), preset=self.target.preset)

    def _sections(self) -> Iterator[tuple[str, AimResult]]:
        for streams in self.recent:
            for stream in streams:
                name = f"step {stream.step} {stream.phase.value}"
                yield name, run_stream(stream, self.target, timed=True)


def phase_name(stream: CommandStream) -> str:
    """The phase as a key of JSON."""
    return stream.phase.value.replace("-", "_")
