"""Run a trace: how many cycles it takes, and which commands each channel issues."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from patton.device.aim.commands import Command, TimedCommand
from patton.device.aim.groups import Groups
from patton.device.aim.host import LineHost, PortHost
from patton.device.aim.presets import DEFAULT_PRESET, Preset, load_preset
from patton.device.aim.reader import parse_trace, read_trace
from patton.device.aim.timing import Timing
from patton.device.aim.trace import Instruction, Opcode
from patton.errors import DeviceConfigError

HOSTS: Final = ("line-per-cycle", "port-per-channel")

Trace = str | Path | Sequence[Instruction]


@attrs.frozen
class AimResult:
    """What a trace costs on a device.

    cycles: until EOC completed, of `cycle_ns` nanoseconds each; commands: by channel
    and command, without zeros; active_cycles, precharged_cycles: by channel, with a
    bank open and with none; lines: instructions up to EOC, by opcode; timed: the
    commands in the order of their cycles, None unless asked for.
    """

    device: str
    variant: str
    host: str
    cycle_ns: float
    cycles: int
    commands: Mapping[int, Mapping[str, int]]
    active_cycles: Mapping[int, int]
    precharged_cycles: Mapping[int, int]
    lines: Mapping[str, int]
    timed: tuple[TimedCommand, ...] | None = None

    def total(self, command: str) -> int:
        """How often all channels together issued a command."""
        return sum(counts.get(command, 0) for counts in self.commands.values())


def simulate(
    trace: Trace,
    *,
    variant: str = "head",
    host: str = "line-per-cycle",
    timed: bool = False,
    timing: Mapping[str, int] | None = None,
    preset: str | Path | Preset = DEFAULT_PRESET,
    merging: bool = True,
) -> AimResult:
    """Simulate a trace given as path, as text of several lines, or as instructions.

    variant: "pin" or "head" for the two versions of the public simulator, "physical"
    for one without their quirks. host: "line-per-cycle" or "port-per-channel". timed:
    keep all commands with their cycles. timing: parameters in cycles that replace those
    of the preset. merging: simulate channels that have become alike once; never changes
    the result. Instructions that end without EOC get one.

    TraceError for a bad line, DeviceConfigError for an unknown name,
    StalledTraceError where the simulator would run for ever.
    """
    device = preset if isinstance(preset, Preset) else load_preset(preset)
    if host not in HOSTS:
        raise DeviceConfigError(device.name, "host", host, ", ".join(HOSTS))
    rules = Timing.of(device, variant, timing)
    instructions = _instructions(trace)
    groups = Groups.of(rules, logged=timed, merging=merging)
    per_channel = rules.variant.completion_per_channel
    kind = LineHost if host == HOSTS[0] else PortHost
    cycles = kind(groups, per_channel=per_channel).run(instructions)
    commands, active = _per_channel(groups, cycles)
    return AimResult(
        device=device.name,
        variant=variant,
        host=host,
        cycle_ns=device.cycle_ns,
        cycles=cycles,
        commands=commands,
        active_cycles=active,
        precharged_cycles={channel: cycles - n for channel, n in active.items()},
        lines=_line_counts(instructions),
        timed=tuple(_timed(groups, rules)) if timed else None,
    )


def _instructions(trace: Trace) -> Sequence[Instruction]:
    if isinstance(trace, str) and "\n" in trace:
        return parse_trace(trace)
    if isinstance(trace, str | Path):
        return read_trace(trace)
    end = next((i for i, x in enumerate(trace) if x.opcode == Opcode.EOC), len(trace))
    return [*trace[:end], Instruction(Opcode.EOC)]


def _line_counts(instructions: Sequence[Instruction]) -> dict[str, int]:
    counts = Counter(instruction[0] for instruction in instructions)
    return {opcode.name: counts[opcode] for opcode in Opcode if counts[opcode]}


def _per_channel(
    groups: Groups, cycles: int
) -> tuple[dict[int, dict[str, int]], dict[int, int]]:
    """Commands and active cycles of each channel."""
    commands: dict[int, dict[str, int]] = {}
    active: dict[int, int] = {}
    for channel, controller in sorted(groups.by_channel().items()):
        past = groups.pasts[channel]
        counts = map(operator.add, controller.counts, past.counts)
        found = {c.name: n for c, n in zip(Command, counts, strict=True) if n}
        if found:
            commands[channel] = found
        active[channel] = controller.active_until(cycles) + past.active
    return commands, active


def _timed(groups: Groups, timing: Timing) -> list[TimedCommand]:
    """All commands by cycle and channel."""
    found = []
    for channel, controller in groups.by_channel().items():
        for log in (*groups.pasts[channel].log, controller.log or []):
            for first, command, bank, row, count, line in log:
                stride = timing.stride[command]
                kind = Command(command)
                found.append(
                    TimedCommand(first, channel, kind, bank, row, count, stride, line)
                )
    return sorted(found)
