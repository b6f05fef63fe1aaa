"""How much of the device is worth anything under pressure (Paper 5.4, Fig. 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
import numpy as np

from patton.config import aim_gddr6
from patton.study.experiments.experiment import Experiment, Results
from patton.study.lifecycles import WHOLE_SET, LifecycleTask
from patton.study.measured import COSTS, PARTS, PREFILL, UNITS, Cost, Measured
from patton.study.plots import Axes, Plot, bars, lines, points
from patton.study.results import Figure
from patton.study.serving import ServeTask
from patton.study.settings import LONG, Settings
from patton.study.tasks import Task

NAME: Final = "capacity"
MODEL: Final = "llama3-8b"
REFERENCE: Final = "plain block cache"
PAPER_POLICY: Final = "16 packed, no adoption"
ADOPTING: Final = "16 spread"
WHOLE: Final = "whole Value Row Sets"
BY_QUEUE: Final = "by queue"
BEST_POLICY: Final = f"32 {BY_QUEUE}"
INFORMED: Final = f"1 {BY_QUEUE}"  # a block-granular cache that knows as much

# Options of the runtime and the engine, by the name that the figures have: blocks of a
# pair, then how pairs are chosen, or that the queue says which is evicted.
POLICIES: Final[Mapping[str, Mapping[str, Any]]] = {
    PAPER_POLICY: {"choice": "packed", "adoption": False},
    "16 spread, no adoption": {"adoption": False},
    "16 packed": {"choice": "packed"},
    ADOPTING: {},
    f"{ADOPTING}, lru": {"eviction": "lru"},
    "32 spread": {"pair_blocks": 32},
    "8 packed": {"choice": "packed", "pair_blocks": 8},
    "8 spread": {"pair_blocks": 8},
    "4 packed": {"choice": "packed", "pair_blocks": 4},
    "4 spread": {"pair_blocks": 4},
    "1 spread": {"pair_blocks": 1},
    WHOLE: {"pair_blocks": WHOLE_SET},
    f"{WHOLE}, no adoption": {"pair_blocks": WHOLE_SET, "adoption": False},
    **{
        f"{blocks} {BY_QUEUE}": {"pair_blocks": blocks, "eviction": "queue"}
        for blocks in (32, 16, 8, 1)
    },
}
SWEPT: Final = (PAPER_POLICY, ADOPTING, WHOLE, BEST_POLICY)
BY_AGE: Final = (WHOLE, "32 spread", ADOPTING, "8 spread", "4 spread", "1 spread")
SERVED: Final = (PAPER_POLICY, *BY_AGE, *(f"{n} {BY_QUEUE}" for n in (32, 16, 8)))

HIT_RATE: Final = "hit rate"
AT_PRESSURE: Final = "hit rate under pressure"
WITHOUT_PRESSURE: Final = "hit rate without pressure"
EFFECTIVE: Final = "effective capacity"
AS_INFORMED: Final = "effective capacity by a cache that knows the queue"
RUN: Final = "blocks per SV run"

PAPER_REFERENCE: Final = 0.8786
PAPER_PAIRS: Final = 0.8209  # PATTON
PAPER_WHOLE: Final = 0.3030  # PATTON without O2V
PAPER_HITS: Final = {
    PAPER_POLICY: PAPER_PAIRS,
    ADOPTING: PAPER_PAIRS,
    WHOLE: PAPER_WHOLE,
    f"{WHOLE}, no adoption": PAPER_WHOLE,
}
PAPER_UNPRESSED: Final = 0.9128

# What a point on the frontier of capacity and runs is asked for.
ENOUGH: Final = 0.985  # of effective capacity
LONG_RUN: Final = 12  # blocks


def _policy(settings: Settings, name: str, pool: int) -> LifecycleTask:
    """The run of a policy; under pressure with its effective capacity."""
    effective = pool == settings.pressure
    return settings.lifecycle(
        MODEL, LONG, **POLICIES[name], pool=pool, effective=effective
    )


def _informed(settings: Settings) -> list[LifecycleTask]:
    """The block-granular cache that knows the queue, on parts of the device and all."""
    whole = _policy(settings, INFORMED, settings.pressure)
    rows = [round(share * aim_gddr6().rows) for share in settings.shares]
    return [*(attrs.evolve(whole, rows=n, effective=False) for n in rows), whole]


def _serve(settings: Settings, name: str) -> ServeTask:
    """The run of a policy with its streams, under the names that the system has."""
    policy = {"choice": "spread", "adoption": True, **POLICIES[name]}
    if policy.get("pair_blocks") == WHOLE_SET:
        policy |= {"pair_blocks": None, "o2": False}
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
    served = (_serve(settings, name) for name in SERVED)
    return [*under_pressure, *sweep, *_informed(settings), *served]


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
    return [*found, *_as_informed(settings, results), *_costs(settings, results)]


def _as_informed(settings: Settings, results: Results) -> list[Figure]:
    """Blocks with which a cache that knows as much hits as often, where measured."""
    runs = [results[task] for task in _informed(settings)]
    blocks, hits = ([run[name] for run in runs] for name in ("blocks", "hit_rate"))
    found = []
    for name in POLICIES:
        if name.endswith(BY_QUEUE):
            run = results[_policy(settings, name, settings.pressure)]
            if hits[0] <= run["hit_rate"]:
                share = float(np.interp(run["hit_rate"], hits, blocks)) / run["blocks"]
                row = (NAME, MODEL, name, AS_INFORMED)
                found.append(Figure(*row, min(1.0, share), "fraction"))
    return found


def _costs(settings: Settings, results: Results) -> list[Figure]:
    """Attention, runtime-induced prefill and both, of the policies with streams."""
    found = []
    for name in SERVED:
        run = Measured(results[_serve(settings, name)])
        for cost in COSTS:
            parts = {
                f"{cost} of attention": run.part(cost, *PARTS),
                f"{cost} of {PREFILL}": run.prefill(cost),
                _total(cost): run.total(cost),
            }
            found += [
                Figure(NAME, MODEL, name, quantity, value, UNITS[cost])
                for quantity, value in parts.items()
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
    by_name = {(f.system, f.quantity): f.value for f in found}
    for figure in found:
        quantity, system = figure.quantity, figure.system
        at = quantity.removeprefix(f"{HIT_RATE} at ")
        if at != quantity:
            rates.setdefault(system, {})[float(at)] = figure.value
        elif quantity == AT_PRESSURE:
            pressed[system] = figure.value
        elif quantity == EFFECTIVE:
            blocks, _, family = system.partition(" ")
            if system.startswith(WHOLE):
                blocks, family = "64", system
            place = (by_name[system, RUN], 100 * figure.value)
            frontier.setdefault(family, {})[blocks] = place
        elif quantity == AS_INFORMED:
            place = (by_name[system, RUN], 100 * figure.value)
            row = frontier.setdefault(f"{BY_QUEUE}, of a cache that knows it", {})
            row[system.partition(" ")[0]] = place
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
        *(_cost_plot(found, cost) for cost in COSTS),
    ]


def _cost_plot(found: Sequence[Figure], cost: Cost) -> Plot:
    parts: dict[str, dict[str, float]] = {"attention": {}, PREFILL: {}}
    for figure in found:
        kind, _, part = figure.quantity.partition(" of ")
        if kind == cost and part in parts:
            parts[part][figure.system] = figure.value
    return bars(
        f"Total {cost} under pressure",
        "Attention on the device and runtime-induced prefill on the GPU.",
        parts,
        Axes("policy", UNITS[cost].replace("u", "µ", 1)),
        stacked=True,
    )


def conclude(found: Sequence[Figure]) -> list[str]:
    """Whether one policy has capacity, runs and least cost, and where it comes from."""
    values = {(f.system, f.quantity): f.value for f in found}

    def described(name: str) -> str:
        costs = [f"{values[name, _total(cost)]:.4g} {UNITS[cost]}" for cost in COSTS]
        return (
            f"`{name}` ({values[name, EFFECTIVE]:.1%} at {values[name, RUN]:.1f} "
            f"blocks, {' and '.join(costs)})"
        )

    def cheapest(names: Sequence[str], cost: Cost) -> str:
        return min(names, key=lambda name: values[name, _total(cost)])

    reaching = [
        name
        for name in SERVED
        if values[name, EFFECTIVE] >= ENOUGH and values[name, RUN] >= LONG_RUN
    ]
    by_age = [cheapest(BY_AGE, cost) for cost in COSTS]
    asked = (
        f"Asked of a policy: an effective capacity of {ENOUGH:.1%} (at most 100 %) at "
        f"{LONG_RUN} blocks per SV run, and less total cost than any pair size that "
        "evicts by age. "
    )
    rivals = "Of those the cheapest are " + ", ".join(
        f"{described(name)} in {cost}" for name, cost in zip(by_age, COSTS, strict=True)
    )
    if not reaching:
        nearest = max(SERVED, key=lambda name: _short_of(values, name))
        verdict = f"None has both; nearest is {described(nearest)}."
        return [f"{asked}{verdict} {rivals}.", _of_knowledge(values)]
    best = cheapest(reaching, "latency")
    met = all(
        values[best, _total(cost)] < values[name, _total(cost)]
        for name, cost in zip(by_age, COSTS, strict=True)
    )
    verdict = f"It is {'met' if met else 'not met'} by {described(best)}."
    return [f"{asked}{verdict} {rivals}.", _of_knowledge(values)]


def _total(cost: Cost) -> str:
    return f"{cost} of attention and prefill"


def _short_of(values: Mapping[tuple[str, str], float], name: str) -> float:
    """The part of what is asked that a policy has, by its weaker side."""
    capacity, run = values[name, EFFECTIVE], values[name, RUN]
    return min(capacity / ENOUGH, run / LONG_RUN)


def _of_knowledge(values: Mapping[tuple[str, str], float]) -> str:
    """What is due to knowing the queue, and what pairs cost all the same."""
    names = [name for name in POLICIES if name.endswith(BY_QUEUE) and name != INFORMED]
    worth = ", ".join(
        f"`{name}` hits {values[name, AT_PRESSURE]:.1%}"
        + (f" (worth {share:.1%} of it)" if share is not None else "")
        for name in names
        for share in [values.get((name, AS_INFORMED))]
    )
    return (
        "Nothing is moved for eviction by queue. It knows which requests wait, and the "
        "closed loop queues a conversation's next turn at once, so that it knows more "
        "than a service would whose users take time. A block-granular cache that knows "
        f"as much (`{INFORMED}`) hits {values[INFORMED, AT_PRESSURE]:.1%}, where the "
        f"plain one hits {values[REFERENCE, AT_PRESSURE]:.1%}; {worth}."
    )


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
    live = values[REFERENCE, "live context"]
    return {
        AT_PRESSURE: "The paper presses its device with more than 250,000 tokens of "
        "live context; here it has as many open conversations as make the plain cache "
        f"hit as often as the paper's, with {live:,.0f} tokens of live context on "
        "average: what ended conversations have left competes for room, too. The paper "
        "does not say whether a request fills a pair that an "
        f"ended one left. Pairs of 16 hit {hits(PAPER_POLICY)} if none does and "
        f"{hits(ADOPTING)} if some do (adoption); whole Value Row Sets "
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
    "Policies on Llama3-8B with so many open conversations that the plain cache hits "
    "as often as the paper's reference. Hit rates are of first admissions. Live "
    "context is the history and prompt of all open conversations, running or not, on "
    "average over the run. Latency and energy are of the fastest order of commands "
    "for every policy, reading cached blocks back included.",
    tasks,
    figures,
    plots,
    explain,
    conclude,
)
