"""Energy of a simulated trace, by component, channel, command and any label of lines.

The numbers and their sources are data (`data/energy_cent.toml`), where the flaws of the
published script that this corrects have their names. `published_standby` gives its
standby terms for comparison. All energies are picojoules.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import attrs

from patton.device.aim.commands import Command
from patton.device.aim.presets import data_text
from patton.device.aim.simulation import AimResult
from patton.errors import DeviceConfigError

DEFAULT_MODEL: Final = "energy_cent.toml"

# What the published comparison of continuous and fragmented MACs adds up.
PUBLISHED_COMPONENTS: Final = ("ACT", "RD", "WR", "PIM", "DQ", "ACT_STBY", "PRE_STBY")

STANDBY_STATES: Final = ("active", "precharged", "always")

# The script takes the mean over the channels twice, then multiplies by them once.
PUBLISHED_CHANNELS: Final = 32

Components = dict[str, float]


@attrs.frozen
class Charge:
    """Energy of commands: `unit_pj` times the number of units that work for each."""

    component: str
    unit_pj: float
    source: str
    units: Mapping[str, float]

    def of(self, command: str) -> float:
        """What one command is charged, in pJ."""
        return self.unit_pj * self.units.get(command, self.units.get("*", 0))


@attrs.frozen
class Standby:
    """Power of a channel in a state: "active", "precharged" or "always"."""

    component: str
    power_mw: float
    state: str
    source: str


@attrs.frozen
class EnergyModel:
    """Charges per command and standby powers per channel."""

    name: str
    charges: tuple[Charge, ...]
    standby: tuple[Standby, ...]

    @property
    def components(self) -> tuple[str, ...]:
        """The names of all components, in the order of the model."""
        names = [charge.component for charge in self.charges]
        names += [entry.component for entry in self.standby]
        return tuple(dict.fromkeys(names))

    def of_command(self, command: str) -> Components:
        """What one command costs, by component."""
        found: Components = {}
        for charge in self.charges:
            _add(found, charge.component, charge.of(command))
        return {name: energy for name, energy in found.items() if energy}

    def of_commands(self, counts: Mapping[str, float]) -> Components:
        """What so many commands cost, by component; standby not included."""
        found: Components = {}
        for command, count in counts.items():
            for component, energy in self.of_command(command).items():
                _add(found, component, energy * count)
        return found

    def of_standby(self, result: AimResult, channel: int) -> Components:
        """Standby of a channel over the whole run."""
        cycles = {
            "active": result.active_cycles[channel],
            "precharged": result.precharged_cycles[channel],
            "always": result.cycles,
        }
        return {
            entry.component: entry.power_mw * cycles[entry.state] * result.cycle_ns
            for entry in self.standby
        }

    def of_channel(self, result: AimResult, channel: int) -> Components:
        """Energy of one channel by component."""
        commands = self.of_commands(result.commands.get(channel, {}))
        return _sum([commands, self.of_standby(result, channel)])


def load_energy_model(path: Path | None = None) -> EnergyModel:
    """Read a model from a file, or the one of CENT; DeviceConfigError if it is none."""
    return _default() if path is None else _read(path.read_text("utf-8"), str(path))


def energy_pj(result: AimResult, model: EnergyModel | None = None) -> Components:
    """Energy of a run by component, summed over its channels, in pJ."""
    model = model or load_energy_model()
    channels = (model.of_channel(result, channel) for channel in result.active_cycles)
    return dict.fromkeys(model.components, 0.0) | _sum(channels)


def published_standby(
    result: AimResult, model: EnergyModel | None = None
) -> Components:
    """The standby terms as the published script counts them, 32 times too small."""
    energy = energy_pj(result, model)
    names = ("ACT_STBY", "PRE_STBY")
    return {name: energy[name] / PUBLISHED_CHANNELS for name in names}


def energy_by_command(
    result: AimResult, model: EnergyModel | None = None
) -> dict[str, float]:
    """Energy of the commands of all channels, by command; standby not included."""
    model = model or load_energy_model()
    commands = dict.fromkeys(c for counts in result.commands.values() for c in counts)
    return {
        command: result.total(command) * sum(model.of_command(command).values())
        for command in commands
    }


def energy_by_label(
    result: AimResult,
    label: Callable[[int], str],
    model: EnergyModel | None = None,
) -> dict[str, Components]:
    """Energy by label of the lines that caused it, such as their phase or request.

    label: of the instruction with that index; -1 stands for what no line caused, such
    as refresh and the cycles after a channel's last command. A channel's standby goes
    to the labels by the cycles up to their commands, at its mean power: the sum over
    labels is that of `energy_pj`. Needs a result with `timed` commands.
    """
    if result.timed is None:
        raise DeviceConfigError("energy", "result", "no timed commands", "timed=True")
    model = model or load_energy_model()
    counts: dict[str, dict[str, float]] = {}
    cycles: dict[int, dict[str, float]] = {c: {} for c in result.active_cycles}
    reached = dict.fromkeys(result.active_cycles, 0)
    for entry in result.timed:
        name = label(entry.line)
        _add(counts.setdefault(name, {}), entry.command.name, entry.times)
        last = entry.cycle + entry.stride * (entry.times - 1)
        _add(cycles[entry.channel], name, last - reached[entry.channel])
        reached[entry.channel] = last
    for channel, last in reached.items():
        _add(cycles[channel], label(-1), result.cycles - last)
    found = {name: [model.of_commands(own)] for name, own in counts.items()}
    for channel, spent in cycles.items():
        standby = model.of_standby(result, channel)
        for name, own in spent.items():
            share = {c: e * own / result.cycles for c, e in standby.items()}
            found.setdefault(name, []).append(share)
    return {name: _sum(parts) for name, parts in found.items()}


def to_json(name: str, result: AimResult) -> dict[str, Any]:
    """A run as a JSON object: keys are text, and counts of zero are left out."""
    return {
        "trace": name,
        "cycles": result.cycles,
        "commands": {str(c): dict(counts) for c, counts in result.commands.items()},
        "active_cycles": {str(c): n for c, n in result.active_cycles.items()},
        "precharged_cycles": {str(c): n for c, n in result.precharged_cycles.items()},
        "energy_pj": energy_pj(result),
    }


def _read_default() -> EnergyModel:
    return _read(data_text(DEFAULT_MODEL), DEFAULT_MODEL)


_default = functools.cache(_read_default)


def _read(text: str, source: str) -> EnergyModel:
    try:
        table = tomllib.loads(text)
        charges = tuple(_charge(row) for row in table["charge"])
        standby = tuple(_standby(row) for row in table["standby"])
        return EnergyModel(table["name"], charges, standby)
    except (KeyError, TypeError, ValueError) as problem:
        accepted = f"a file in the form of data/{DEFAULT_MODEL}"
        raise DeviceConfigError(source, "model", str(problem), accepted) from problem


def _charge(row: Mapping[str, Any]) -> Charge:
    units = row["commands"]
    for command in units.keys() - {"*"}:
        Command[command]
    if "power_mw" in row:
        unit_pj = row["power_mw"] * row["time_ns"]
    else:
        unit_pj = row["pj_per_bit"] * row["bits"]
    return Charge(row["component"], unit_pj, row["source"], units)


def _standby(row: Mapping[str, Any]) -> Standby:
    if row["while"] not in STANDBY_STATES:
        raise ValueError(f"while {row['while']!r}")
    return Standby(row["component"], row["power_mw"], row["while"], row["source"])


def _add(totals: dict[str, float], name: str, amount: float) -> None:
    totals[name] = totals.get(name, 0) + amount


def _sum(parts: Iterable[Mapping[str, float]]) -> Components:
    found: Components = {}
    for part in parts:
        for component, energy in part.items():
            _add(found, component, energy)
    return found
