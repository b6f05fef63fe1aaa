"""What the order of commands is worth (beyond the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Final, get_args

from patton.device.aim.simulation import HOSTS
from patton.study.decoding import DecodeTask, ScheduleName
from patton.study.experiments.experiment import Experiment, Results
from patton.study.plots import Axes, Plot, bars
from patton.study.results import Figure
from patton.study.settings import LOADS, Settings

NAME: Final = "schedules"
NAMES: Final[tuple[ScheduleName, ...]] = get_args(ScheduleName)
REGISTERS: Final = (1, 2, 4, 8)
PHASES: Final = ("qk", "sv", "partial")

# Eighths of what decoding requests attend to on ShareGPT's conversations, in tokens.
LENGTHS: Final = (102, 248, 373, 503, 637, 793, 984, 1685)

CYCLES: Final = "cycles of QK, SV and partial blocks"
SAVED: Final = "cycles saved on the paper's order with one register"

Choice = tuple[str, ScheduleName, int]


def _choices() -> list[Choice]:
    return [*product(HOSTS, NAMES, REGISTERS)]


def _task(settings: Settings, model: str, choice: Choice) -> DecodeTask:
    """A step at the paper's number of running requests."""
    host, schedule, registers = choice
    running = LOADS[model][0]
    lengths = tuple(sorted(LENGTHS * (running // len(LENGTHS))))
    return DecodeTask(
        model,
        lengths,
        schedule,
        registers=registers,
        variant=settings.variant,
        host=host,
    )


def tasks(settings: Settings) -> list[DecodeTask]:
    """Every schedule with every number of result registers, on both hosts."""
    return [
        _task(settings, model, choice)
        for model in settings.models
        for choice in _choices()
    ]


def figures(settings: Settings, results: Results) -> list[Figure]:
    """Cycles of a layer's step, and what is saved."""
    found = []
    for model in settings.models:
        cycles = {
            choice: _cycles(results, _task(settings, model, choice))
            for choice in _choices()
        }
        for (host, schedule, registers), count in cycles.items():
            system = f"{schedule}, {host}, registers: {registers}"
            saved = 1 - count / cycles[host, "paper", 1]
            rows = ((CYCLES, count, "cycles/layer"), (SAVED, saved, "fraction"))
            found += [Figure(NAME, model, system, *row) for row in rows]
    return found


def _cycles(results: Results, task: DecodeTask) -> int:
    by_phase = results[task]["cycles"]
    return sum(by_phase.get(phase, 0) for phase in PHASES)


def plots(found: Sequence[Figure]) -> list[Plot]:
    """Cycles by registers, a picture for each model."""
    pictures = []
    for model in dict.fromkeys(figure.model for figure in found):
        values: dict[str, dict[str, float]] = {}
        for figure in found:
            if figure.model == model and figure.quantity == CYCLES:
                series, _, registers = figure.system.partition(", registers: ")
                values.setdefault(series, {})[registers] = figure.value / 1000
        pictures.append(
            bars(
                f"A decode step of {model}",
                "One layer, the paper's number of running requests, contexts of 102 to "
                "1,685 tokens.",
                values,
                Axes("result registers of a bank", "thousand cycles"),
            )
        )
    return pictures


EXPERIMENT = Experiment(
    NAME,
    "Schedules and result registers",
    "One decode step in the paper's order of commands and in the best order that was "
    "found, with 1 to 8 result registers a bank (commodity devices have 1). With one "
    "line a cycle for all channels the paper's order serves the channels of a head one "
    "after another; with a port for each channel they overlap by themselves.",
    tasks,
    figures,
    plots,
)
