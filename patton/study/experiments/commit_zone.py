"""What the Commit Zone saves (Paper Fig. 6 and 8)."""

from __future__ import annotations

from collections.abc import Sequence

from patton.study.experiments.experiment import Experiment, Results
from patton.study.lifecycles import LifecycleTask
from patton.study.measured import ATTENTION, COSTS, UNITS, Cost, Measured
from patton.study.plots import Axes, Plot, bars
from patton.study.results import ALL_MODELS, Figure, geometric_mean, shown
from patton.study.serving import ServeTask
from patton.study.settings import LONG, Settings
from patton.study.tasks import Task

NAME = "commit-zone"
PATTON = "patton"
WITHOUT = "patton-without-commit-zone"
BLOCKPIM = "blockpim"
SYSTEMS = (PATTON, WITHOUT, BLOCKPIM)
VARIANTS = ("pin", "head")

RATIO = "row activations of single-token Value writes, without / with"
WRITES = "Value write speed-up, commits left out"
WRITES_AND_COMMITS = "Value write speed-up, commits included"
SAVED: dict[tuple[str, Cost], tuple[str, float]] = {
    (WITHOUT, "latency"): ("attention latency saved", 0.130),
    (WITHOUT, "energy"): ("attention energy saved", 0.124),
    (BLOCKPIM, "latency"): ("attention latency saved against BlockPIM", 0.227),
    (BLOCKPIM, "energy"): ("attention energy saved against BlockPIM", 0.345),
}


def _run(settings: Settings, model: str, system: str, variant: str) -> ServeTask:
    return settings.serve(model, system, LONG, variant=variant)


def _blocks(settings: Settings, model: str) -> LifecycleTask:
    return settings.lifecycle(model, LONG, choice="packed", adoption=False)


def tasks(settings: Settings) -> list[Task]:
    """Each model with, without, and in BlockPIM, on both versions of the simulator."""
    runs: list[Task] = [
        _run(settings, model, system, variant)
        for model in settings.models
        for system in SYSTEMS
        for variant in VARIANTS
    ]
    return runs + [_blocks(settings, model) for model in settings.models]


def figures(settings: Settings, results: Results) -> list[Figure]:
    """Ratios by model and over all models, on both versions."""
    found: list[Figure] = []
    ratios = {}
    for model in settings.models:
        counted = results[_blocks(settings, model)]["activations"]
        ratios[model] = counted["direct"] / counted["commit_zone"]
    found += _with_mean(RATIO, PATTON, ratios, "x", 12.6)
    for variant in VARIANTS:
        found += _speed_ups(settings, results, variant)
        found += _savings(settings, results, variant)
    return found + _parts(settings, results)


def _parts(settings: Settings, results: Results) -> list[Figure]:
    """Parts of attention by system, geometric mean of the models, on `pin`."""
    found = []
    for system in SYSTEMS:
        runs = [
            Measured(results[_run(settings, model, system, VARIANTS[0])])
            for model in settings.models
        ]
        for cost in COSTS:
            for part in ATTENTION:
                mean = geometric_mean([run.part(cost, part) for run in runs])
                row = (NAME, ALL_MODELS, system, f"{cost} of {part}")
                found.append(Figure(*row, mean, UNITS[cost]))
    return found


def _speed_ups(settings: Settings, results: Results, variant: str) -> list[Figure]:
    """Of Value writes, in steps in which requests only decode."""
    staged: dict[str, float] = {}
    committed: dict[str, float] = {}
    for model in settings.models:
        with_zone, without = (
            Measured(results[_run(settings, model, system, variant)])
            for system in (PATTON, WITHOUT)
        )
        direct = without.decode_only("latency", ("value_write",))
        writes = with_zone.decode_only("latency", ("value_write",))
        commits = with_zone.decode_only("latency", ("commit",))
        staged[model] = direct / writes
        committed[model] = direct / (writes + commits)
    paper = 5.0 if variant == "pin" else None
    system = _label(PATTON, variant)
    return [
        *_with_mean(WRITES, system, staged, "x", None),
        *_with_mean(WRITES_AND_COMMITS, system, committed, "x", paper),
    ]


def _savings(settings: Settings, results: Results, variant: str) -> list[Figure]:
    """Of attention as a whole, against each reference."""
    found: list[Figure] = []
    for system in (WITHOUT, BLOCKPIM):
        for cost in COSTS:
            quantity, paper = SAVED[system, cost]
            kept = {}
            for model in settings.models:
                ours, other = (
                    Measured(results[_run(settings, model, name, variant)])
                    for name in (PATTON, system)
                )
                kept[model] = ours.part(cost, *ATTENTION) / other.part(cost, *ATTENTION)
            for model, part in kept.items():
                row = (NAME, model, _label(PATTON, variant), quantity)
                found.append(Figure(*row, 1 - part, "fraction"))
            row = (NAME, ALL_MODELS, _label(PATTON, variant), quantity)
            saved = 1 - geometric_mean(list(kept.values()))
            known = paper if variant == "pin" else None
            found.append(Figure(*row, saved, "fraction", known))
    return found


def _with_mean(
    quantity: str,
    system: str,
    by_model: dict[str, float],
    unit: str,
    paper: float | None,
) -> list[Figure]:
    found = [
        Figure(NAME, model, system, quantity, value, unit)
        for model, value in by_model.items()
    ]
    mean = geometric_mean(list(by_model.values()))
    return [*found, Figure(NAME, ALL_MODELS, system, quantity, mean, unit, paper)]


def _label(system: str, variant: str) -> str:
    return f"{system} on {variant}"


def plots(found: Sequence[Figure]) -> list[Plot]:
    """Activations, speed-ups, and what attention saves."""
    speed: dict[str, dict[str, float]] = {}
    saved: dict[str, dict[str, float]] = {}
    for figure in found:
        variant = figure.system.rpartition(" on ")[2]
        if figure.quantity == RATIO:
            speed.setdefault("activations", {})[figure.model] = figure.value
        elif figure.quantity == WRITES_AND_COMMITS:
            name = f"latency on {variant}"
            speed.setdefault(name, {})[figure.model] = figure.value
        elif figure.model == ALL_MODELS and figure.unit == "fraction":
            row = saved.setdefault(variant, {})
            row[_short(figure.quantity)] = figure.value
    papers = {_short(name): paper for name, paper in SAVED.values()}
    return [
        bars(
            "Single-token Value writes, direct by staged",
            "Row activations of all steps, and latency of the timed steps in which "
            "requests only decode, commits included. The paper: 12.6 and 5.",
            speed,
            Axes("model", "direct / staged"),
        ),
        bars(
            "What attention saves",
            "Key and Value writes, QK and SV together, geometric mean of the models.",
            saved,
            Axes("against PATTON without Commit Zone, and BlockPIM", "part saved"),
            paper=papers,
        ),
    ]


def _short(quantity: str) -> str:
    """As it stands at an axis that says the rest."""
    return quantity.replace("attention ", "").replace(" saved", "")


def explain(found: Sequence[Figure]) -> dict[str, str]:
    """Why savings differ: what writes give, partial blocks in SV take."""
    values = {(f.system, f.quantity): f.value for f in found if f.model == ALL_MODELS}

    def by_system(cost: Cost, part: str) -> str:
        numbers = (shown(values[name, f"{cost} of {part}"]) for name in SYSTEMS)
        with_zone, without, blockpim = numbers
        unit = UNITS[cost]
        return (
            f"{part} takes {with_zone} {unit} with a Commit Zone, {without} without, "
            f"{blockpim} in BlockPIM"
        )

    def parts(cost: Cost) -> str:
        lines = [by_system(cost, part) for part in ("Value write", "SV")]
        return "; ".join(lines) + "."

    partial = (
        " A partial block in the Commit Zone costs SV more than in its final place: "
        "each of its pieces is initialised, multiplied and read alone (Paper 4.4), "
        "where otherwise the block is one more burst of a run. That is set against "
        "what writes save."
    )
    blocks = (
        " BlockPIM writes Values directly, too, and has no partial blocks apart. How "
        "the paper orders its commands is not published; `comparison` has PATTON with "
        "our best policy and order."
    )
    pin, head = (f"{PATTON} on {variant}" for variant in VARIANTS)
    writes = (
        f"Staged writes alone are {shown(values[pin, WRITES])} times as fast on `pin` "
        f"({shown(values[head, WRITES])} on `head`), and "
        f"{shown(values[pin, WRITES_AND_COMMITS])} "
        f"({shown(values[head, WRITES_AND_COMMITS])}) with commits. The paper's 5 lies "
        "between, and does not say whether commits are counted."
    )
    reasons = {WRITES_AND_COMMITS: writes}
    for (other, cost), (quantity, _) in SAVED.items():
        more = partial if other == WITHOUT else blocks
        reasons[quantity] = parts(cost) + more
    return reasons


EXPERIMENT = Experiment(
    NAME,
    "The Commit Zone (Fig. 6 and 8)",
    "PATTON as the paper describes it (packed pairs, no adoption, the paper's "
    "schedule), the same without a Commit Zone, and BlockPIM serve the same "
    "conversations. Activations are counted in every step. `pin` is the version of the "
    "simulator that CENT ships, in which a precharge blocks the whole channel; `head` "
    "is the newest.",
    tasks,
    figures,
    plots,
    explain,
)
