"""AiM devices as the public simulator models them: traces, cycles, energy, checking.

`simulate` runs a trace; `energy_pj` prices the run; `check` holds its commands against
the rules of the device. All facts about a device are presets in the folder `data`.
Command streams become traces in `convert` and come back in `recover`; `costs` times and
prices them, `timeline` draws them, `external` runs the real simulator.
"""

from __future__ import annotations

from patton.device.aim.checker import Violation, check, missing_commands
from patton.device.aim.commands import Command, TimedCommand
from patton.device.aim.convert import convert, layer_trace, stream_trace
from patton.device.aim.costs import Target, energy_by_request, stream_cost
from patton.device.aim.energy import (
    energy_by_command,
    energy_by_label,
    energy_pj,
    to_json,
)
from patton.device.aim.presets import load_preset
from patton.device.aim.reader import beyond_device, parse_trace, read_trace
from patton.device.aim.recover import Recovered, streams_of
from patton.device.aim.simulation import AimResult, simulate
from patton.device.aim.timeline import write_timeline
from patton.device.aim.trace import (
    Instruction,
    Opcode,
    channels_of,
    format_trace,
    mask_of,
    write_trace,
)

__all__ = [
    "AimResult",
    "Command",
    "Instruction",
    "Opcode",
    "Recovered",
    "Target",
    "TimedCommand",
    "Violation",
    "beyond_device",
    "channels_of",
    "check",
    "convert",
    "energy_by_command",
    "energy_by_label",
    "energy_by_request",
    "energy_pj",
    "format_trace",
    "layer_trace",
    "load_preset",
    "mask_of",
    "missing_commands",
    "parse_trace",
    "read_trace",
    "simulate",
    "stream_cost",
    "stream_trace",
    "streams_of",
    "to_json",
    "write_timeline",
    "write_trace",
]
