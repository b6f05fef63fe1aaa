"""What the Commit Zone saves (Paper Fig. 6 and 8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
PAPER_SPEED_UP = 5.0
SAVED: dict[tuple[str, Cost], tuple[str, float]] = {
    (WITHOUT, "latency"): ("attention latency saved", 0.130),
    (WITHOUT, "energy"): ("attention energy saved", 0.124),
    (BLOCKPIM, "latency"): ("attention latency saved against BlockPIM", 0.227),
    (BLOCKPIM, "energy"): ("attention energy saved against BlockPIM", 0.345),
}

# Other readings of what BlockPIM's authors leave open than the one compared.
READINGS: Mapping[str, Mapping[str, str]] = {
    "requests in turn": {"order": "requests"},
    "Values of a block in one row": {"value_layout": "in_row"},
    "all heads in one channel": {"scope": "device"},
    "all heads in one channel, requests in turn": {
        "scope": "device",
        "order": "requests",
    },
}


def _run(
    settings: Settings, model: str, system: str, variant: str = "pin"
) -> ServeTask:
    return settings.serve(model, system, LONG, variant=variant)


def _read(settings: Settings, model: str, reading: str) -> ServeTask:
    """Fewer steps are timed: nothing but the ratio of attention is looked at."""
    every = max(settings.every, settings.steps // 25)
    options = READINGS[reading]
    return settings.serve(model, BLOCKPIM, LONG, variant="pin", every=every, **options)


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
    runs += [
        _read(settings, model, reading)
        for model in settings.models
        for reading in READINGS
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
    return [*found, *_readings(settings, results), *_parts(settings, results)]


def _readings(settings: Settings, results: Results) -> list[Figure]:
    """Of attention on `pin`, against other readings of BlockPIM."""
    found = []
    for reading in READINGS:
        for cost in COSTS:
            kept = []
            for model in settings.models:
                ours, other = (
                    Measured(results[task]).part(cost, *ATTENTION)
                    for task in (
                        _run(settings, model, PATTON),
                        _read(settings, model, reading),
                    )
                )
                kept.append(ours / other)
            row = (NAME, ALL_MODELS, _label(PATTON, "pin"), _reading(cost, reading))
            found.append(Figure(*row, 1 - geometric_mean(kept), "fraction"))
    return found


def _reading(cost: Cost, reading: str) -> str:
    return f"{SAVED[BLOCKPIM, cost][0]}: {reading}"


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
    paper = PAPER_SPEED_UP if variant == "pin" else None
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
    shown_savings = {quantity for quantity, _ in SAVED.values()}
    for figure in found:
        variant = figure.system.rpartition(" on ")[2]
        if figure.quantity == RATIO:
            speed.setdefault("activations", {})[figure.model] = figure.value
        elif figure.quantity == WRITES_AND_COMMITS:
            name = f"latency on {variant}"
            speed.setdefault(name, {})[figure.model] = figure.value
        elif figure.model == ALL_MODELS and figure.quantity in shown_savings:
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
    pin, head = (f"{PATTON} on {variant}" for variant in VARIANTS)
    fast, slow = (values[version, WRITES_AND_COMMITS] for version in (pin, head))
    between = "lies" if slow <= PAPER_SPEED_UP <= fast else "does not lie"
    writes = (
        f"Staged writes alone are {shown(values[pin, WRITES])} times as fast on `pin` "
        f"({shown(values[head, WRITES])} on `head`), and {shown(fast)} ({shown(slow)}) "
        f"with commits. The paper's {PAPER_SPEED_UP:g} {between} between the two "
        "versions with commits; which it used, and whether commits are counted, it "
        "does not say."
    )
    reasons = {WRITES_AND_COMMITS: writes}
    for (other, cost), (quantity, _) in SAVED.items():
        more = partial if other == WITHOUT else _of_readings(values, cost)
        reasons[quantity] = parts(cost) + more
    return reasons


def _of_readings(values: Mapping[tuple[str, str], float], cost: Cost) -> str:
    """What other readings of BlockPIM would make of the saving, beside the paper's."""
    pin = _label(PATTON, "pin")
    quantity, paper = SAVED[BLOCKPIM, cost]
    by_reading = {name: values[pin, _reading(cost, name)] for name in READINGS}
    listed = ", ".join(f"{saved:.1%} ({name})" for name, saved in by_reading.items())
    every = [values[pin, quantity], *by_reading.values()]
    where = "among" if min(every) <= paper <= max(every) else "outside"
    return (
        " BlockPIM is compared in a favourable reading: blocks go to the channels of "
        "their head, and a row is opened once in a step for all requests that have "
        "blocks in it, while PATTON's schedule in the paper takes requests in turn. "
        f"Against other readings of what its authors leave open PATTON saves {listed}; "
        f"the paper's {paper:.1%} lies {where} these.{_of_products(values, cost)} "
        "`comparison` has PATTON in our best order, too."
    )


def _of_products(values: Mapping[tuple[str, str], float], cost: Cost) -> str:
    """What BlockPIM would have to spend for the paper's saving."""

    def total(system: str) -> float:
        return sum(values[system, f"{cost} of {part}"] for part in ATTENTION)

    scores = values[BLOCKPIM, f"{cost} of QK"]
    wanted = total(PATTON) / (1 - SAVED[BLOCKPIM, cost][1]) - scores
    return (
        f" QK is {scores / total(BLOCKPIM):.0%} of BlockPIM's {cost} and costs PATTON "
        f"{values[PATTON, f'{cost} of QK'] / scores:.2f} times as much; for what the "
        "paper saves all else of BlockPIM's would have to cost "
        f"{wanted / (total(BLOCKPIM) - scores):.2f} times what it does as compared."
    )


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
