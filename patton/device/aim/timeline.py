"""A timed run in the trace-event format, which Perfetto and Chrome's viewer open.

Every channel is a process, with a track for commands on all banks and one for each
bank that has commands of its own. Equal
commands have equal colours: Perfetto colours by name, Chrome by the colour names here.
Sections stand one after the other on the time axis, with a track of their own. The text
depends on nothing but the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from patton.device.aim.commands import (
    BANK_COMMANDS,
    REGISTER_COMMANDS,
    Command,
    TimedCommand,
)
from patton.device.aim.presets import DEFAULT_PRESET, Preset, load_preset
from patton.device.aim.simulation import AimResult
from patton.device.aim.timing import Timing
from patton.errors import DeviceConfigError

# Names from the palette of Chrome's viewer.
COLOURS: Final = {
    "ACT": "olive",
    "ACT16": "olive",
    "PRE": "grey",
    "PREA": "grey",
    "RD": "thread_state_iowait",
    "RDMAC16": "rail_load",
    "RDAF16": "rail_load",
    "RDCP": "thread_state_iowait",
    "WR": "thread_state_runnable",
    "WRGB": "rail_animation",
    "WRMAC16": "rail_idle",
    "WRA16": "thread_state_runnable",
    "WRCP": "thread_state_runnable",
    "MAC": "good",
    "MAC16": "good",
    "AF16": "yellow",
    "EWMUL16": "yellow",
    "TMOD": "terrible",
    "REFab": "bad",
}

# How long a command that has no stride of its own is shown, by the parameter that says
# how long it keeps its banks from their next use.
DURATIONS: Final = {
    Command.ACT: "nRCDRD",
    Command.ACT16: "nRCDRDMAC",
    Command.PRE: "nRP",
    Command.PREA: "nRP",
    Command.TMOD: "nMODCH",
    Command.REFab: "nRFC",
}
ALL_BANKS_TRACK: Final = 0
SECTIONS_PROCESS: Final = 1_000

Event = dict[str, Any]
Section = tuple[str, AimResult]


def write_timeline(
    path: str | Path,
    sections: Iterable[Section],
    *,
    preset: Preset | None = None,
) -> int:
    """Write timed runs, one after the other, under their names; the number of events.

    Raises DeviceConfigError for a result without timed commands.
    """
    count = 0
    with Path(path).open("w", encoding="ascii", newline="\n") as out:
        out.write('{"displayTimeUnit":"ns","traceEvents":[')
        for event in timeline(sections, preset=preset):
            out.write(",\n" if count else "\n")
            out.write(json.dumps(event, separators=(",", ":")))
            count += 1
        out.write("\n]}\n")
    return count


def timeline(
    sections: Iterable[Section], *, preset: Preset | None = None
) -> Iterator[Event]:
    """The events of `write_timeline`."""
    device = preset or load_preset(DEFAULT_PRESET)
    known: set[tuple[int, int]] = set()
    start = 0
    for name, result in sections:
        if result.timed is None:
            problem = "no timed commands"
            raise DeviceConfigError("timeline", "result", problem, "timed=True")
        clock = _clock(result.cycle_ns, start)
        yield from _named(known, SECTIONS_PROCESS, 0, "sections", "sections")
        yield _slice(SECTIONS_PROCESS, 0, name, clock(0), clock(result.cycles)) | {
            "args": {"cycles": result.cycles, "variant": result.variant}
        }
        durations = _durations(Timing.of(device, result.variant))
        for entry, end in _ended(result, durations):
            track = _track(entry)
            bank = f"bank {entry.bank}" if track else "all banks"
            channel = f"channel {entry.channel}"
            yield from _named(known, entry.channel, track, channel, bank)
            yield _command(entry, track, clock(entry.cycle), clock(end))
        start += result.cycles


def _durations(timing: Timing) -> list[int]:
    """Cycles that each command is shown for, where nothing follows sooner."""
    found = list(timing.stride)
    for command, parameter in DURATIONS.items():
        found[command] = timing.parameters[parameter]
    return found


def _ended(
    result: AimResult, durations: list[int]
) -> Iterator[tuple[TimedCommand, int]]:
    """Commands with the cycle in which they end; those of a track do not overlap."""
    assert result.timed is not None
    following: dict[tuple[int, int], int] = {}
    ends = []
    for entry in reversed(result.timed):
        track = entry.channel, _track(entry)
        last = entry.cycle + entry.stride * (entry.times - 1)
        end = min(last + durations[entry.command], following.get(track, result.cycles))
        ends.append(max(end, entry.cycle + 1))
        following[track] = entry.cycle
    yield from zip(result.timed, reversed(ends), strict=True)


def _track(entry: TimedCommand) -> int:
    """Of a command on one bank, its bank's; tracks of banks count from 1."""
    return entry.bank + 1 if entry.command < BANK_COMMANDS else ALL_BANKS_TRACK


def _clock(cycle_ns: float, start: int) -> Callable[[int], float]:
    """Cycles of a section to microseconds of the whole, the unit of the format."""
    return lambda cycle: round((start + cycle) * cycle_ns / 1000, 6)


def _command(entry: TimedCommand, track: int, start: float, end: float) -> Event:
    name = entry.command.name
    arguments: dict[str, int] = {"cycle": entry.cycle, "line": entry.line}
    if entry.row >= 0 and entry.command not in REGISTER_COMMANDS:
        arguments["row"] = entry.row
    if entry.times > 1:
        arguments["times"] = entry.times
    return _slice(entry.channel, track, name, start, end) | {
        "cname": COLOURS[name],
        "args": arguments,
    }


def _slice(process: int, track: int, name: str, start: float, end: float) -> Event:
    return {
        "ph": "X",
        "name": name,
        "pid": process,
        "tid": track,
        "ts": start,
        "dur": round(end - start, 6),
    }


def _named(
    known: set[tuple[int, int]], process: int, track: int, *names: str
) -> Iterator[Event]:
    """Names and order of a process and a track, before their first event."""
    kinds = (("process", -1, names[0]), ("thread", track, names[1]))
    for kind, number, name in kinds:
        if (process, number) not in known:
            known.add((process, number))
            place = {"ph": "M", "pid": process, "tid": max(number, 0)}
            order = {"sort_index": process if kind == "process" else track}
            yield {**place, "name": f"{kind}_name", "args": {"name": name}}
            yield {**place, "name": f"{kind}_sort_index", "args": order}
