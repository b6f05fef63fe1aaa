"""The real simulator, where the user has it: run on a trace, and compared with ours.

It is called as its own scripts call it, `ramulator2 -f CONFIG -t TRACE`, and prints its
statistics as YAML on standard output. A binary tells not which version it is: compare
with the variant that was built ("pin" or "head").
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import attrs

from patton.device.aim.commands import Command
from patton.device.aim.simulation import AimResult
from patton.device.aim.trace import CHANNELS, Instruction, write_trace
from patton.errors import SimulatorError

TIMEOUT_S: Final = 3600

# `name: number`, with a comment after it where the simulator has one.
VALUE: Final = r":\s*(\d+)\s*(?:#.*)?$"
CYCLES: Final = re.compile(rf"^\s*memory_system_cycles{VALUE}", re.MULTILINE)
COUNT: Final = re.compile(rf"^\s*CH(\d+)_num_(\w+)_commands{VALUE}", re.MULTILINE)
STATE: Final = re.compile(
    rf"^\s*CH(\d+)_(active|precharged)_cycles{VALUE}", re.MULTILINE
)

# In the simulator's source tree, seen from its binary.
CONFIGS: Final = ("test/example.yaml", "../test/example.yaml")


@attrs.frozen
class Printed:
    """What the simulator printed; the fields as in `AimResult`."""

    cycles: int
    commands: Mapping[int, Mapping[str, int]]
    active_cycles: Mapping[int, int]
    precharged_cycles: Mapping[int, int]


def run_simulator(
    simulator: str | Path,
    trace: str | Path | Sequence[Instruction],
    *,
    config: str | Path | None = None,
    timeout_s: float = TIMEOUT_S,
) -> Printed:
    """Run the simulator at this path on a trace, a file or instructions.

    config: its configuration; default: test/example.yaml of its source tree. Raises
    SimulatorError if it cannot be run, fails, or prints no statistics.
    """
    program = Path(simulator).resolve()
    settings = Path(config).resolve() if config is not None else _config(program)
    with tempfile.TemporaryDirectory() as folder:
        if isinstance(trace, str | Path):
            path = Path(trace).resolve()
        else:
            path = Path(folder) / "own.trace"
            write_trace(trace, path)
        words = [str(program), "-f", str(settings), "-t", str(path)]
        try:
            done = subprocess.run(  # noqa: S603 - the user named the program
                words,
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=timeout_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            accepted = "a program that runs to its end"
            raise SimulatorError(str(simulator), str(error), accepted) from error
    if done.returncode:
        last = (done.stderr or done.stdout).strip().splitlines()[-1:]
        problem = f"exit status {done.returncode}: {' '.join(last)[:200]}"
        raise SimulatorError(str(simulator), problem, "exit status 0")
    return read_statistics(done.stdout, str(simulator))


def read_statistics(text: str, simulator: str = "simulator") -> Printed:
    """Read what the simulator printed.

    Raises SimulatorError if it has no cycles or no command counts: to compare nothing
    would look like agreement.
    """
    cycles, counts = CYCLES.search(text), COUNT.findall(text)
    if cycles is None or not counts:
        missing = "command counts" if cycles else "memory_system_cycles"
        accepted = "its statistics on standard output"
        raise SimulatorError(simulator, f"no {missing} printed", accepted)
    commands: dict[int, dict[str, int]] = {}
    known = Command.__members__
    for channel, name, count in counts:
        if int(count) and name in known:
            commands.setdefault(int(channel), {})[name] = int(count)
    states: dict[str, dict[int, int]] = {"active": {}, "precharged": {}}
    for channel, state, count in STATE.findall(text):
        states[state][int(channel)] = int(count)
    return Printed(int(cycles[1]), commands, states["active"], states["precharged"])


def differences(printed: Printed, result: AimResult) -> Iterator[str]:
    """In what a run of ours differs from the simulator's; nothing if in nothing."""
    if printed.cycles != result.cycles:
        yield f"cycles: simulator {printed.cycles}, here {result.cycles}"
    for channel in range(CHANNELS):
        theirs = printed.commands.get(channel, {})
        ours = result.commands.get(channel, {})
        for name in sorted({*theirs, *ours}):
            pair = theirs.get(name, 0), ours.get(name, 0)
            if pair[0] != pair[1]:
                yield f"channel {channel} {name}: simulator {pair[0]}, here {pair[1]}"
        for state in ("active_cycles", "precharged_cycles"):
            count = getattr(printed, state).get(channel)
            own = getattr(result, state)[channel]
            if count is not None and count != own:
                yield f"channel {channel} {state}: simulator {count}, here {own}"


def _config(program: Path) -> Path:
    for name in CONFIGS:
        found = program.parent / name
        if found.is_file():
            return found.resolve()
    accepted = "its configuration, given with --simulator-config"
    raise SimulatorError(str(program), f"no {' or '.join(CONFIGS)} near it", accepted)
