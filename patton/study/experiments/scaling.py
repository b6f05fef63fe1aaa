"""Contexts, batches, pair sizes, devices and modules (beyond the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from patton.study.decoding import DecodeTask, ScheduleName
from patton.study.experiments.experiment import Experiment, Results
from patton.study.lifecycles import LifecycleTask
from patton.study.plots import Axes, Plot, bars, lines, points
from patton.study.results import Figure
from patton.study.settings import LONG, Settings
from patton.study.tasks import Result, Task

NAME: Final = "scaling"
MODEL: Final = "llama3-8b"
SCHEDULES: Final[tuple[ScheduleName, ...]] = ("paper", "best")
BATCH_CONTEXT: Final = 1024
MODULES: Final = (1, 2, 4, 8)
MODULE_BATCH: Final = (2048,) * 32
DEVICES: Final = ("aim-gddr6", "hbm2", "lpddr5", "ddr4", "ddr5")

CYCLES: Final = "cycles of a step"


def _decode(
    settings: Settings, lengths: tuple[int, ...], schedule: ScheduleName, modules: int
) -> DecodeTask:
    return DecodeTask(
        MODEL, lengths, schedule, modules=modules,
        variant=settings.variant, host=settings.host,
    )  # fmt: skip


def _series(settings: Settings) -> dict[tuple[str, int, ScheduleName], DecodeTask]:
    """Timed steps by what is scaled, how far, and the schedule."""
    found = {}
    for schedule in SCHEDULES:
        for tokens in settings.contexts:
            task = _decode(settings, (tokens - 1,), schedule, 1)
            found["context", tokens, schedule] = task
        for batch in settings.batches:
            task = _decode(settings, (BATCH_CONTEXT - 1,) * batch, schedule, 1)
            found["requests", batch, schedule] = task
        for modules in MODULES:
            task = _decode(settings, MODULE_BATCH, schedule, modules)
            found["modules", modules, schedule] = task
    return found


def _pair(settings: Settings, blocks: int) -> LifecycleTask:
    return settings.lifecycle(
        MODEL, LONG, pair_blocks=blocks, pool=settings.pressure, effective=True
    )


def _device(name: str) -> DecodeTask:
    return DecodeTask(MODEL, (4095,), device=name, timed=False)


def tasks(settings: Settings) -> list[Task]:
    """Everything that is scaled."""
    pairs: list[Task] = [_pair(settings, blocks) for blocks in settings.pair_sizes]
    devices = [_device(name) for name in DEVICES]
    return [*pairs, *_series(settings).values(), *devices]


def figures(settings: Settings, results: Results) -> list[Figure]:
    """Cycles of a layer's step, capacity by pair size, activations by device."""
    found = []
    for (what, count, schedule), task in _series(settings).items():
        cycles = sum(results[task]["cycles"].values())
        quantity = f"{CYCLES}, {count} {what}"
        found.append(Figure(NAME, MODEL, schedule, quantity, cycles, "cycles/layer"))
    for blocks in settings.pair_sizes:
        result = results[_pair(settings, blocks)]
        rows = (
            ("effective capacity", result["effective_capacity"], "fraction"),
            ("hit rate under pressure", result["hit_rate"], "fraction"),
            ("blocks per SV run", result["sv_blocks"] / result["sv_runs"], "blocks"),
        )
        system = f"pairs of {blocks}"
        found += [Figure(NAME, MODEL, system, *row) for row in rows]
    for name in DEVICES:
        found += _of_device(name, results[_device(name)])
    return found


def _of_device(name: str, result: Result) -> list[Figure]:
    """What a device of any kind does for one token after 4,095, in one layer."""
    activations: Mapping[str, float] = result["activations"]
    attention = sum(activations[phase] for phase in ("qk", "sv"))
    rows = (
        ("all-bank activations of QK and SV", attention, "activations/layer"),
        ("tokens that the device holds", result["tokens_of_device"], "tokens"),
    )
    return [Figure(NAME, MODEL, name, *row) for row in rows]


def plots(found: Sequence[Figure]) -> list[Plot]:
    """Lines over each size, the pair sizes, and the devices."""
    sizes: dict[str, dict[str, dict[float, float]]] = {}
    pairs: dict[str, list[float]] = {}
    devices: dict[str, float] = {}
    for figure in found:
        if figure.quantity.startswith(CYCLES):
            count, what = figure.quantity.removeprefix(f"{CYCLES}, ").split(" ")
            row = sizes.setdefault(what, {}).setdefault(figure.system, {})
            row[float(count)] = figure.value
        elif figure.system.startswith("pairs of"):
            pairs.setdefault(figure.system, []).append(figure.value)
        elif figure.unit == "activations/layer":
            devices[figure.system] = figure.value
    captions = {
        "context": "One request, in a step in which its block fills and is committed. "
        "Cycles of one layer, writes included.",
        "requests": f"Requests of {BATCH_CONTEXT:,} tokens each, in a step in which "
        "all fill a block: commits are as many as there can be.",
        "modules": f"{len(MODULE_BATCH)} requests of {MODULE_BATCH[0]:,} tokens, the "
        "Key-Value heads split over modules; the cycles are those of one. No block "
        "fills in this step.",
    }
    names = {
        "context": "tokens of context",
        "requests": "requests",
        "modules": "modules",
    }
    pictures = [
        lines(
            f"A decode step over {names[what]}",
            captions[what],
            values,
            Axes(names[what], "cycles per layer", log="xy"),
        )
        for what, values in sizes.items()
    ]
    frontier = {"pairs": {n.split()[-1]: (v[2], 100 * v[0]) for n, v in pairs.items()}}
    return [
        *pictures,
        points(
            "Pair sizes",
            "Blocks of an Order-2 pair from 1 to 64 under pressure, with adoption.",
            frontier,
            Axes("blocks per SV run", "effective capacity (%)"),
        ),
        bars(
            "Devices",
            "Row activations for one token after 4,095 in one layer; the timing of "
            "in-memory commands is known for AiM only.",
            {"QK and SV": devices},
            Axes("device", "all-bank activations"),
        ),
    ]


EXPERIMENT = Experiment(
    NAME,
    "Scaling",
    "Llama3-8B: contexts of 1k to 128k tokens, 1 to 256 requests, pairs of 1 to 64 "
    "blocks, 1 to 8 modules over which the Key-Value heads are split, other devices.",
    tasks,
    figures,
    plots,
)
