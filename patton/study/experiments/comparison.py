"""All systems on the same conversations (Paper Fig. 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import mean
from typing import Any

from patton.config import model_preset
from patton.study.experiments import capacity
from patton.study.experiments.experiment import Experiment, Results
from patton.study.measured import (
    ATTENTION,
    COSTS,
    PARTS,
    PREFILL,
    UNITS,
    Cost,
    Measured,
)
from patton.study.plots import Axes, Plot, bars
from patton.study.prefill import A100_PCIE
from patton.study.results import ALL_MODELS, Figure, geometric_mean
from patton.study.serving import ServeTask
from patton.study.settings import LONG, SHORT, Settings
from patton.systems import SYSTEMS

NAME = "comparison"
PAPER_POLICY = "patton"
BEST = "patton-best"
OURS = (PAPER_POLICY, BEST)
LONG_SYSTEMS = ("blockpim", "pimphony")  # without a limit of their own
OTHERS = tuple(name for name in SYSTEMS if not name.startswith("patton"))

# Speed-up and energy efficiency of PATTON (Paper 5.3).
PAPER: dict[tuple[str, Cost], float] = {
    ("neupims", "latency"): 4.27,
    ("pimphony", "latency"): 1.42,
    ("attacc", "latency"): 1.52,
    ("blockpim", "latency"): 1.57,
    ("neupims", "energy"): 7.94,
    ("pimphony", "energy"): 6.77,
    ("attacc", "energy"): 6.70,
    ("blockpim", "energy"): 1.51,
}
PAPER_MEAN: dict[Cost, float] = {"latency": 1.95, "energy": 4.83}
RATIOS: dict[Cost, str] = {"latency": "speed-up", "energy": "energy efficiency"}


def context_of(system: str) -> int:
    """Tokens of context at which a system is compared."""
    return LONG if system in LONG_SYSTEMS else SHORT


def run_of(settings: Settings, model: str, system: str, context: int) -> ServeTask:
    """The run of a system in one of the two comparisons."""
    options: dict[str, Any] = {}
    if system == BEST:
        options = {
            "schedule": settings.variant,
            **capacity.POLICIES[capacity.BEST_POLICY],
        }
    return settings.serve(model, system, context, **options)


def tasks(settings: Settings) -> list[ServeTask]:
    """Every system at its context, and PATTON at both."""
    return [
        run_of(settings, model, system, context_of(other))
        for model in settings.models
        for other in OTHERS
        for system in (*OURS, other)
    ]


def figures(settings: Settings, results: Results) -> list[Figure]:
    """Parts of every run, and ratios to PATTON's paper and best policies."""
    found: list[Figure] = []
    for task in dict.fromkeys(tasks(settings)):
        found += _parts(task, Measured(results[task]))
    for ours in OURS:
        for cost in COSTS:
            found += _ratios(settings, results, ours, cost)
    return found


def _parts(task: ServeTask, run: Measured) -> list[Figure]:
    system = _label(task.system, task.max_context)
    found = []
    for cost in COSTS:
        unit = UNITS[cost]
        rows = {f"{cost} of {part}": run.part(cost, part) for part in (*PARTS, PREFILL)}
        rows[f"{cost}, all"] = run.total(cost)
        error = run.standard_error(cost, *PARTS)
        if isfinite(error):
            rows[f"{cost}, all, standard error"] = error
        slow = run.prefill(cost, "seconds_slow")
        rows[f"{cost} of {PREFILL} at 50 % of peak"] = slow
        found += [
            Figure(NAME, task.model, system, quantity, value, unit)
            for quantity, value in rows.items()
        ]
    counted = (
        ("hit rate", run.result["hit_rate"], "fraction"),
        ("preemptions", run.result["statistics"]["preemptions"], "requests"),
        ("generated tokens", run.tokens, "tokens"),
        ("memory taken", run.usage()[0], "fraction"),
        ("taken memory that holds tokens", run.usage()[1], "fraction"),
    )
    return [*found, *(Figure(NAME, task.model, system, *row) for row in counted)]


def _ratios(
    settings: Settings, results: Results, ours: str, cost: Cost
) -> list[Figure]:
    found = []
    means = {}
    for system in OTHERS:
        context, ratios, slow = context_of(system), [], []
        quantity = f"{RATIOS[cost]} over {system}"
        for model in settings.models:
            other, own = (
                Measured(results[run_of(settings, model, name, context)])
                for name in (system, ours)
            )
            ratios.append(other.total(cost) / own.total(cost))
            slow.append(
                other.total(cost, "seconds_slow") / own.total(cost, "seconds_slow")
            )
            found.append(Figure(NAME, model, ours, quantity, ratios[-1], "x"))
        means[system] = geometric_mean(ratios)
        paper = PAPER.get((system, cost))
        slower = f"{RATIOS[cost]} with prefill at 50 % of peak over {system}"
        found += [
            Figure(NAME, ALL_MODELS, ours, quantity, means[system], "x", paper),
            Figure(NAME, ALL_MODELS, ours, slower, geometric_mean(slow), "x"),
        ]
    four = geometric_mean([means[system] for system, kind in PAPER if kind == cost])
    row = (NAME, ALL_MODELS, ours, f"{RATIOS[cost]} over the paper's four")
    return [*found, Figure(*row, four, "x", PAPER_MEAN[cost])]


def plots(found: Sequence[Figure]) -> list[Plot]:
    """Ratios beside the paper's, and the parts of every model's runs."""
    pictures = [_ratio_plot(found, cost) for cost in COSTS]
    models = dict.fromkeys(f.model for f in found if f.model != ALL_MODELS)
    pictures += [_part_plot(found, model, cost) for model in models for cost in COSTS]
    return pictures


def _ratio_plot(found: Sequence[Figure], cost: Cost) -> Plot:
    values: dict[str, dict[str, float]] = {}
    papers = {}
    for figure in found:
        name, over, system = figure.quantity.partition(" over ")
        if over and figure.model == ALL_MODELS and name == RATIOS[cost]:
            values.setdefault(figure.system, {})[system] = figure.value
            if figure.paper is not None:
                papers[system] = figure.paper
    return bars(
        f"{RATIOS[cost].capitalize()} of PATTON",
        "Attention and runtime-induced prefill per generated token, geometric mean of "
        "the models.",
        values,
        Axes("against", f"{cost} / PATTON's", height=3.8),
        paper=papers,
    )


def _part_plot(found: Sequence[Figure], model: str, cost: Cost) -> Plot:
    values: dict[str, dict[str, float]] = {}
    for figure in found:
        kind, of, part = figure.quantity.partition(" of ")
        if figure.model == model and of and kind == cost and part in (*PARTS, PREFILL):
            system = figure.system.replace(", context ", "\n")
            values.setdefault(part, {})[system] = figure.value
    return bars(
        f"{cost.capitalize()} of {model}",
        "Per generated token; the number below a system is its limit of context.",
        values,
        Axes("system and context", UNITS[cost].replace("us", "µs").replace("uJ", "µJ"),
             height=3.8),
        stacked=True,
    )  # fmt: skip


def explain(found: Sequence[Figure]) -> dict[str, str]:
    """Which parts make a ratio, and what its prefill is worth."""
    values = {(f.model, f.system, f.quantity): f.value for f in found}
    models = list(dict.fromkeys(f.model for f in found if f.model != ALL_MODELS))
    reasons: dict[str, str] = {}
    for (other, cost), paper in PAPER.items():
        if other not in OTHERS:
            continue
        systems = [_label(name, context_of(other)) for name in (PAPER_POLICY, BEST)]
        against = _label(other, context_of(other))
        reason = _of_parts(values, models, cost, against, systems)
        reason += _of_prefill(values, models, cost, against, systems)
        reason += _of_price(values, models, cost, against, paper)
        if other == "blockpim":
            reason += (
                " Its authors leave open how requests share rows and which heads share "
                "channels; what hangs on that is in `commit-zone`."
            )
        reasons[f"{RATIOS[cost]} over {other}"] = reason
    for cost in COSTS:
        reasons[f"{RATIOS[cost]} over the paper's four"] = (
            "The geometric mean of the four ratios above it, with their reasons."
        )
    return reasons


def _label(system: str, context: int) -> str:
    return f"{system}, context {context}"


def _of_parts(
    values: Mapping[tuple[str, str, str], float],
    models: Sequence[str],
    cost: Cost,
    against: str,
    systems: Sequence[str],
) -> str:
    """Part by part, the other system by PATTON's two policies, mean of the models."""
    ours, best = systems
    words = []
    for part in ATTENTION:
        quantity = f"{cost} of {part}"
        ratios = (
            geometric_mean(
                [
                    _of(values, model, against, quantity)
                    / _of(values, model, name, quantity)
                    for model in models
                ]
            )
            for name in (ours, best)
        )
        first, second = ratios
        words.append(f"{part} {first:.2f} ({second:.2f})")
    return (
        "Part by part, by the paper's policy (by our best): " + ", ".join(words) + "."
    )


def _of_prefill(
    values: Mapping[tuple[str, str, str], float],
    models: Sequence[str],
    cost: Cost,
    against: str,
    systems: Sequence[str],
) -> str:
    """Shares of prefill, hit rates, and the ratios of attention alone."""

    def share(name: str) -> float:
        return mean(_prefill_shares(values, models, cost, name))

    def attention(name: str, model: str) -> float:
        prefill = _of(values, model, name, f"{cost} of {PREFILL}")
        return _of(values, model, name, f"{cost}, all") - prefill

    def ratio(name: str) -> float:
        return geometric_mean(
            [attention(against, model) / attention(name, model) for model in models]
        )

    hits = [
        f"{mean(_of(values, model, name, 'hit rate') for model in models):.0%}"
        for name in (against, *systems)
    ]
    ours, best = systems
    return (
        f" Runtime-induced prefill is {share(against):.0%} of its {cost} and "
        f"{share(ours):.0%} ({share(best):.0%}) of PATTON's, which find {hits[0]} and "
        f"{hits[1]} ({hits[2]}) of prompts in their caches. Without prefill the ratio "
        f"is {ratio(ours):.2f} ({ratio(best):.2f})."
    )


def _prefill_shares(
    values: Mapping[tuple[str, str, str], float],
    models: Sequence[str],
    cost: Cost,
    name: str,
) -> list[float]:
    """Runtime-induced prefill as a part of all, of each model."""
    return [
        _of(values, model, name, f"{cost} of {PREFILL}")
        / _of(values, model, name, f"{cost}, all")
        for model in models
    ]


def _of_price(
    values: Mapping[tuple[str, str, str], float],
    models: Sequence[str],
    cost: Cost,
    against: str,
    paper: float,
) -> str:
    """What prefill would have to cost for the paper's ratio."""
    if mean(_prefill_shares(values, models, cost, against)) < 0.1:
        return ""
    scale = _fitting_price(values, models, cost, against, paper)
    if scale is None:
        return f" No {cost} of prefill would give the paper's ratio."
    if cost == "latency":
        return f" It would be the paper's if prefill took {scale:.2f} times as long."
    watts = A100_PCIE.watts
    return (
        f" Prefill is priced at {watts:.0f} W, the limit of the card, where the paper "
        f"measured it; at {scale * watts:,.0f} W the ratio would be the paper's."
    )


def _fitting_price(
    values: Mapping[tuple[str, str, str], float],
    models: Sequence[str],
    cost: Cost,
    against: str,
    paper: float,
) -> float | None:
    """The factor on prefill's cost that makes the ratio the paper's, by bisection."""
    ours = _label(PAPER_POLICY, int(against.rpartition(" ")[2]))

    def ratio(scale: float) -> float:
        def cost_of(model: str, name: str) -> float:
            whole = _of(values, model, name, f"{cost}, all")
            prefill = _of(values, model, name, f"{cost} of {PREFILL}")
            return whole + (scale - 1) * prefill

        return geometric_mean(
            [cost_of(model, against) / cost_of(model, ours) for model in models]
        )

    low, high = 0.0, 100.0
    if not ratio(low) < paper < ratio(high):
        return None
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(middle) < paper else (low, middle)
    return low


def _of(
    values: Mapping[tuple[str, str, str], float], model: str, name: str, quantity: str
) -> float:
    """A run's value; where a model's context is shorter, the run has that."""
    system, _, context = name.partition(", context ")
    limit = min(int(context), model_preset(model).max_context)
    return values[model, _label(system, limit), quantity]


EXPERIMENT = Experiment(
    NAME,
    "Comparison of the systems (Fig. 7)",
    "Every system serves the same conversations under its own lifecycle. Latency and "
    "energy are of all layers per generated token: Key writes, Value writes (commits "
    "included), QK, SV (partial blocks included), reading cached blocks back for "
    "prefill, and the prefill that only the runtime's misses make necessary. The paper "
    "gives totals, so that which part differs from its own cannot be said; the reasons "
    "list ours. The order of commands is the paper's for `patton`, which loads a query "
    "again for each row of Keys; the other systems keep a query that is loaded, where "
    "one query head has a Key head to itself, as `patton-best` does. `patton` "
    "is the paper's: pairs of 16, packed, no adoption, its order of commands. "
    f"`patton-best` has our best policy under pressure (`{capacity.BEST_POLICY}` of "
    "`capacity`) and the order of commands that is fastest.",
    tasks,
    figures,
    plots,
    explain,
)
