"""Presets: timing, organisation and variants of a device as data with sources.

A preset is a TOML file: those in the folder `data` go by name, any other by path. What
its distances mean for a scheduler is said in `timing`, not here.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final

import attrs

from patton.errors import DeviceConfigError

DEFAULT_PRESET: Final = "gddr6_aim"
SCOPES: Final = ("channel", "bank group", "bank")


@attrs.frozen
class Value:
    """A number of a preset with its unit and where it was found."""

    value: float
    unit: str
    source: str


@attrs.frozen
class Variant:
    """Which behaviour of the public simulator, or of a physical device, is meant.

    refresh: all-bank refresh every nREFI; wait_for_activated: SYNC, EOC and AiM
    requests wait for activated reads and writes; forward_same_row_only: a queued write
    answers only reads of its bank and row; completion_per_channel: RD_MAC and RD_AF
    hold back only the channels that they read; banks_tracked: how many banks the count
    of active cycles tells apart; timing: parameters that differ from the preset's.
    """

    name: str
    about: str
    refresh: bool = False
    wait_for_activated: bool = False
    forward_same_row_only: bool = False
    completion_per_channel: bool = False
    banks_tracked: int = 4
    timing: Mapping[str, Value] = attrs.field(factory=dict)


@attrs.frozen
class Distance:
    """Cycles that must lie between any command of `before` and any of `after`.

    cycles: a sum of timing parameters; window: from the how many-th last `before`;
    only: the variants that have the rule, empty for all.
    """

    scope: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    cycles: str
    window: int = 1
    only: tuple[str, ...] = ()


@attrs.frozen
class Preset:
    """A device: organisation, timing parameters in cycles, distances, variants."""

    name: str
    cycle_ns: float
    organisation: Mapping[str, Value]
    timing: Mapping[str, Value]
    latency: Mapping[str, str]
    distances: tuple[Distance, ...]
    variants: Mapping[str, Variant]

    def size(self, name: str) -> int:
        """A number of the organisation, such as "channels" or "rows"."""
        return int(self.organisation[name].value)

    def variant(self, name: str) -> Variant:
        """The variant of that name; DeviceConfigError if there is none."""
        if name not in self.variants:
            raise DeviceConfigError(
                self.name, "variant", name, ", ".join(self.variants)
            )
        return self.variants[name]


def preset_names() -> list[str]:
    """The names that `load_preset` knows."""
    folder = resources.files(__package__) / "data"
    names = (item.name for item in folder.iterdir())
    return sorted(
        name.removesuffix(".toml")
        for name in names
        if name.endswith(".toml") and not name.startswith("energy_")
    )


def load_preset(preset: str | Path = DEFAULT_PRESET) -> Preset:
    """Read a preset by name or from a path; DeviceConfigError if it cannot be used."""
    if isinstance(preset, Path):
        text, source = preset.read_text(encoding="utf-8"), str(preset)
    elif preset in preset_names():
        return _shipped(preset)
    else:
        accepted = ", ".join(preset_names()) + " or a path"
        raise DeviceConfigError("aim", "preset", preset, accepted)
    return _read(text, source)


def _read_shipped(name: str) -> Preset:
    return _read(data_text(f"{name}.toml"), name)


# Many short traces are simulated one after the other.
_shipped = functools.cache(_read_shipped)


def _read(text: str, source: str) -> Preset:
    try:
        return _preset(tomllib.loads(text))
    except (KeyError, TypeError, ValueError) as problem:
        accepted = "a file in the form of data/gddr6_aim.toml"
        raise DeviceConfigError(source, "preset", str(problem), accepted) from problem


def data_text(name: str) -> str:
    """The text of a file in the folder `data`."""
    file = resources.files(__package__) / "data" / name
    return file.read_text(encoding="utf-8")


def _preset(table: Mapping[str, Any]) -> Preset:
    return Preset(
        name=table["name"],
        cycle_ns=table["cycle_ns"],
        organisation=_values(table["organisation"]),
        timing=_values(table["timing"]),
        latency=dict(table["latency"]),
        distances=tuple(_distance(row) for row in table["distance"]),
        variants={
            name: Variant(
                name=name, **{**row, "timing": _values(row.get("timing", {}))}
            )
            for name, row in table["variant"].items()
        },
    )


def _values(table: Mapping[str, Any]) -> dict[str, Value]:
    return {name: Value(**row) for name, row in table.items()}


def _distance(row: Mapping[str, Any]) -> Distance:
    if row["scope"] not in SCOPES:
        raise ValueError(f"scope {row['scope']!r}")
    return Distance(
        scope=row["scope"],
        before=tuple(row["before"]),
        after=tuple(row["after"]),
        cycles=row["cycles"],
        window=row.get("window", 1),
        only=tuple(row.get("only", ())),
    )
