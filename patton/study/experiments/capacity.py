"""How much of the device is worth anything under pressure (Paper 5.4, Fig. 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from patton.study.experiments.experiment import Experiment, Results
from patton.study.lifecycles import WHOLE_SET, LifecycleTask
from patton.study.measured import COSTS, PARTS, PREFILL, UNITS, Measured
from patton.study.plots import Axes, Plot, bars, lines, points
from patton.study.results import Figure
from patton.study.serving import ServeTask
from patton.study.settings import LONG, Settings
from patton.study.tasks import Task

NAME: Final = "capacity"
MODEL: Final = "llama3-8b"
REFERENCE: Final = "plain block cache"
PAPER_POLICY: Final = "16 packed, no adoption"
WHOLE: Final = "whole Value Row Sets"

# Options of the runtime and the engine, by the name that the figures have.
POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    PAPER_POLICY: {"choice": "packed", "adoption": False},
    "16 spread, no adoption": {"adoption": False},
    "16 packed": {"choice": "packed"},
    "16 spread": {},
    "16 spread, lru": {"eviction": "lru"},
    "8 packed": {"choice": "packed", "pair_blocks": 8},
    "8 spread": {"pair_blocks": 8},
    "4 packed": {"choice": "packed", "pair_blocks": 4},
    "4 spread": {"pair_blocks": 4},
    "1 spread": {"pair_blocks": 1},
    WHOLE: {"pair_blocks": WHOLE_SET},
    f"{WHOLE}, no adoption": {"pair_blocks": WHOLE_SET, "adoption": False},
}
BEST_POLICY: Final = "16 spread"
SWEPT: Final = (PAPER_POLICY, BEST_POLICY, WHOLE)
SERVED: Final = (PAPER_POLICY, BEST_POLICY, "8 spread", "4 spread")

HIT_RATE: Final = "hit rate"
AT_PRESSURE: Final = "hit rate under pressure"
WITHOUT_PRESSURE: Final = "hit rate without pressure"
EFFECTIVE: Final = "effective capacity"
RUN: Final = "blocks per SV run"

PAPER_REFERENCE: Final = 0.8786
PAPER_PAIRS: Final = 0.8209  # PATTON
PAPER_WHOLE: Final = 0.3030  # PATTON without O2V
PAPER_HITS: Final = {
    PAPER_POLICY: PAPER_PAIRS,
    BEST_POLICY: PAPER_PAIRS,
    WHOLE: PAPER_WHOLE,
    f"{WHOLE}, no adoption": PAPER_WHOLE,
}
PAPER_UNPRESSED: Final = 0.9128


def _policy(settings: Settings, name: str, pool: int) -> LifecycleTask:
    """The run of a policy; under pressure with its effective capacity."""
    effective = pool == settings.pressure
    return settings.lifecycle(
        MODEL, LONG, **POLICIES[name], pool=pool, effective=effective
    )


def _serve(settings: Settings, name: str) -> ServeTask:
    """The run of a policy with its streams, under the names that the system has."""
    policy = {"choice": "spread", "adoption": True, **POLICIES[name]}
    options = {"pairs": policy.pop("choice"), "schedule": settings.variant, **policy}
    steps = settings.block_steps
    # As many timed steps as elsewhere.
    every = max(1, steps * settings.every // settings.steps)
    run = {"pool": settings.pressure, "steps": steps, "every": every}
    return settings.serve(MODEL, "patton", LONG, **run, **options)


def tasks(settings: Settings) -> list[Task]:
    """Policies at the pool under pressure, the paper's at all, and what they cost."""
    under_pressure: list[Task] = [
        _policy(settings, name, settings.pressure) for name in POLICIES
    ]
    sweep = [_policy(settings, name, pool) for pool in settings.pools for name in SWEPT]
    return [*under_pressure, *sweep, *(_serve(settings, name) for name in SERVED)]


def figures(settings: Settings, results: Results) -> list[Figure]:
    """Hit rates by pool, then each policy under pressure, then total costs."""
    found = _sweep(settings, results)
    for name in POLICIES:
        result = results[_policy(settings, name, settings.pressure)]
        run = result["sv_blocks"] / max(1, result["sv_runs"])
        paper = PAPER_HITS.get(name)
        rows = (
            (AT_PRESSURE, result["hit_rate"], "fraction", paper),
            (EFFECTIVE, result["effective_capacity"], "fraction", None),
            (RUN, run, "blocks", None),
        )
        if name == PAPER_POLICY:
            reference = result["reference_hit_rate"]
            row = (NAME, MODEL, REFERENCE, AT_PRESSURE)
            found.append(Figure(*row, reference, "fraction", PAPER_REFERENCE))
            row = (NAME, MODEL, REFERENCE, "live context")
            found.append(Figure(*row, result["live_tokens"], "tokens"))
        found += [Figure(NAME, MODEL, name, *row) for row in rows]
    for name in SERVED:
        run_of = Measured(results[_serve(settings, name)])
        for cost in COSTS:
            parts = {
                "attention": run_of.part(cost, *PARTS),
                PREFILL: run_of.prefill(cost),
                "attention and prefill": run_of.total(cost),
            }
            found += [
                Figure(NAME, MODEL, name, f"{cost} of {part}", value, UNITS[cost])
                for part, value in parts.items()
            ]
    return found


def _sweep(settings: Settings, results: Results) -> list[Figure]:
    """Hit rates over the number of open conversations; the fewest press on nothing."""
    found = []
    for pool in settings.pools:
        unpressed = pool == min(settings.pools)
        quantity = WITHOUT_PRESSURE if unpressed else f"{HIT_RATE} at {pool}"
        paper = PAPER_UNPRESSED if unpressed else None
        rates = {}
        for name in SWEPT:
            result = results[_policy(settings, name, pool)]
            rates[name] = result["hit_rate"]
            rates.setdefault(REFERENCE, result["reference_hit_rate"])
        found += [
            Figure(NAME, MODEL, name, quantity, rate, "fraction", paper)
            for name, rate in rates.items()
        ]
        live = results[_policy(settings, PAPER_POLICY, pool)]["live_tokens"]
        quantity = f"live context at {pool}"
        found.append(Figure(NAME, MODEL, REFERENCE, quantity, live, "tokens"))
    return found


def plots(found: Sequence[Figure]) -> list[Plot]:
    """Hit rates, the frontier of capacity against runs, and total cost."""
    rates: dict[str, dict[float, float]] = {}
    pressed: dict[str, float] = {}
    frontier: dict[str, dict[str, tuple[float, float]]] = {}
    costs: dict[str, dict[str, float]] = {}
    by_name = {(f.system, f.quantity): f.value for f in found}
    for figure in found:
        quantity, system = figure.quantity, figure.system
        at = quantity.removeprefix(f"{HIT_RATE} at ")
        if at != quantity:
            rates.setdefault(system, {})[float(at)] = figure.value
        elif quantity == AT_PRESSURE:
            pressed[system] = figure.value
        elif quantity == EFFECTIVE:
            family = "whole sets" if system.startswith(WHOLE) else system.split(" ")[1]
            family = family.rstrip(",") + (", no adoption" if "no a" in system else "")
            place = (by_name[system, RUN], 100 * figure.value)
            frontier.setdefault(family, {})[system.split(" ")[0]] = place
        elif quantity in {"latency of attention", f"latency of {PREFILL}"}:
            part = quantity.removeprefix("latency of ")
            costs.setdefault(part, {})[system] = figure.value
    return [
        lines(
            "Hit rate over open conversations",
            "Llama3-8B on 16 GiB, contexts up to 8,192 tokens, 32 running requests. "
            "The plain cache has as many blocks and no pairs.",
            rates,
            Axes("open conversations", "prefix hit rate"),
        ),
        bars(
            "Hit rate under pressure",
            "The number of conversations at which the plain cache hits as often as the "
            "paper's GPU reference.",
            {"ours": pressed},
            Axes("policy: blocks of a pair, how pairs are chosen", "prefix hit rate"),
            paper={REFERENCE: PAPER_REFERENCE, **PAPER_HITS},
        ),
        points(
            "Capacity against reductions",
            "Up and to the right is better. Effective capacity is the part of the "
            "blocks with which a plain cache hits as often.",
            frontier,
            Axes("blocks per SV run", "effective capacity (%)", height=4.2),
        ),
        bars(
            "Total cost under pressure",
            "Attention on the device and runtime-induced prefill on the GPU.",
            costs,
            Axes("policy", "µs/token"),
            stacked=True,
        ),
    ]


def explain(found: Sequence[Figure]) -> dict[str, str]:
    """The paper is silent on adoption; the rest is where conversations stop fitting."""
    values = {(f.system, f.quantity): f.value for f in found}

    def hits(name: str) -> str:
        return f"{values[name, AT_PRESSURE]:.1%}"

    swept = [
        f"{f.value:.1%} at {f.quantity.rpartition(' ')[2]}"
        for f in found
        if f.system == REFERENCE and f.quantity.startswith(f"{HIT_RATE} at ")
    ]
    return {
        AT_PRESSURE: "The paper does not say whether a request fills a pair that an "
        f"ended one left. Pairs of 16 hit {hits(PAPER_POLICY)} if none does and "
        f"{hits(BEST_POLICY)} if some do (adoption); whole Value Row Sets "
        f"{hits(f'{WHOLE}, no adoption')} and {hits(WHOLE)}. All of them move fast "
        "with the load: conversations take turns, which is the worst case of least "
        f"recently used, and the plain cache hits {', '.join(swept)} open "
        "conversations.",
        WITHOUT_PRESSURE: "Without pressure the hit rate is a property of the "
        "conversations and of the number of steps, the same for every policy that has "
        "room: first turns find nothing, and a last block is seldom full.",
    }


EXPERIMENT = Experiment(
    NAME,
    "Capacity under pressure (Fig. 9)",
    "Policies on Llama3-8B with more conversations than the device holds. Hit rates "
    "are of first admissions. Live context is the history and prompt of all open "
    "conversations, running or not, on average over the run.",
    tasks,
    figures,
    plots,
    explain,
)
