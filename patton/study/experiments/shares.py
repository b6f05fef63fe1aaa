"""What writes and recomputation weigh without PATTON's remedies (Paper Fig. 3b, 3c)."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from patton.config import aim_gddr6, model_preset
from patton.layout import Layout
from patton.study.experiments.experiment import Experiment, Results
from patton.study.measured import Measured
from patton.study.plots import Axes, Plot, bars
from patton.study.results import ALL_MODELS, Figure
from patton.study.serving import ServeTask
from patton.study.settings import LONG, SHORT, Settings

WRITE_SHARE = "kv-write-share"
PREFILL_SHARE = "prefill-share"
WITHOUT_ZONE = "patton-without-commit-zone"
REQUEST_OWNED = "attacc"

DECODE_SHARE = "write / (QK + SV), steps without prefill"
RUN_SHARE = "write / (QK + SV), all steps"
MISS_TOKENS = "miss share of prefill tokens"


def write_tasks(settings: Settings) -> list[ServeTask]:
    """PATTON's layout, written directly."""
    return [settings.serve(model, WITHOUT_ZONE, LONG) for model in settings.models]


def write_figures(settings: Settings, results: Results) -> list[Figure]:
    """The share for every model, and its mean beside the paper's 30 %."""
    shares: dict[str, dict[str, float]] = {DECODE_SHARE: {}, RUN_SHARE: {}}
    for model, task in zip(settings.models, write_tasks(settings), strict=True):
        run = Measured(results[task])
        writes = run.decode_only("latency", ("key_write", "value_write"))
        products = run.decode_only("latency", ("qk", "sv"))
        shares[DECODE_SHARE][model] = writes / products
        writes = run.part("latency", "Key write", "Value write")
        shares[RUN_SHARE][model] = writes / run.part("latency", "QK", "SV")
    found = []
    for quantity, by_model in shares.items():
        for model, share in by_model.items():
            row = (WRITE_SHARE, model, WITHOUT_ZONE, quantity)
            found.append(Figure(*row, share, "fraction"))
        paper = 0.30 if quantity == DECODE_SHARE else None
        row = (WRITE_SHARE, ALL_MODELS, WITHOUT_ZONE, quantity)
        found.append(Figure(*row, mean(by_model.values()), "fraction", paper))
    return found


def _by_model(found: Sequence[Figure], prefix: str = "") -> dict[str, dict[str, float]]:
    """Values by quantity, its prefix left out, and model."""
    values: dict[str, dict[str, float]] = {}
    for figure in found:
        name = figure.quantity.removeprefix(prefix)
        values.setdefault(name, {})[figure.model] = figure.value
    return values


def write_plots(found: Sequence[Figure]) -> list[Plot]:
    """Shares by model."""
    return [
        bars(
            "KV write latency without a Commit Zone",
            "Latency of Key and Value writes as a part of that of QK and SV. The paper "
            "gives about 30 % and does not say for which model.",
            _by_model(found),
            Axes("model", "writes / (QK + SV)"),
            paper={ALL_MODELS: 0.30},
        )
    ]


def explain_writes(found: Sequence[Figure]) -> dict[str, str]:
    """The share hangs on how many rows of a Value lie in one channel."""
    shares = {f.model: f.value for f in found if f.quantity == DECODE_SHARE}
    mean_share = shares.pop(ALL_MODELS)
    each = ", ".join(
        f"{share:.1%} on {model} ({rows_of_value(model)} rows a channel)"
        for model, share in shares.items()
    )
    return {
        DECODE_SHARE: f"{mean_share:.1%} on average: {each}. A Value write opens all "
        "rows of its block one after another, so that models whose heads have a "
        "channel each pay most. QK and SV grow with the context, writes do not: longer "
        "conversations mean a lower share. The paper does not say for which model, "
        "context and phase of a run its 30 % holds."
    }


def rows_of_value(model: str) -> int:
    """Rows of a Value block in each of its channels."""
    return Layout.of(aim_gddr6(), model_preset(model)).rows_per_value


WRITES = Experiment(
    WRITE_SHARE,
    "KV writes without a Commit Zone (Fig. 3b)",
    "PATTON's Key and Value layout, partial blocks written straight to their final "
    "place. Counted in steps in which requests only decode, and over the whole run, in "
    "which prefilled blocks are written, too.",
    write_tasks,
    write_figures,
    write_plots,
    explain_writes,
)


def prefill_tasks(settings: Settings) -> list[ServeTask]:
    """A system that forgets a request's blocks at its end."""
    return [settings.serve(model, REQUEST_OWNED, SHORT) for model in settings.models]


def prefill_figures(settings: Settings, results: Results) -> list[Figure]:
    """Cache-miss prefill as a part of all prefill, in tokens and in time."""
    found: list[Figure] = []
    quantities = {
        MISS_TOKENS: "tokens",
        "miss share of prefill time": "seconds",
        "miss share of prefill time at 50 % of peak": "seconds_slow",
    }
    for quantity, name in quantities.items():
        shares = {}
        for model, task in zip(settings.models, prefill_tasks(settings), strict=True):
            prefill = results[task]["prefill"]
            shares[model] = 1 - prefill["required_" + name] / prefill[name]
            row = (PREFILL_SHARE, model, REQUEST_OWNED, quantity)
            found.append(Figure(*row, shares[model], "fraction"))
        paper = 0.90 if name == "tokens" else None
        row = (PREFILL_SHARE, ALL_MODELS, REQUEST_OWNED, quantity)
        found.append(Figure(*row, mean(shares.values()), "fraction", paper))
    return found


def prefill_plots(found: Sequence[Figure]) -> list[Plot]:
    """Shares by model."""
    return [
        bars(
            "Prefill that only a lost prefix makes necessary",
            "Of all prefill in a system without a prefix cache. Time is less than "
            "proportional, since a batch of few tokens costs as much as one of many.",
            _by_model(found, "miss share of prefill "),
            Axes("model", "cache-miss part of prefill"),
            paper={ALL_MODELS: 0.90},
        )
    ]


def explain_prefill(found: Sequence[Figure]) -> dict[str, str]:
    """The share rises with the number of turns a run has seen."""
    shares = {f.model: f.value for f in found if f.quantity == MISS_TOKENS}
    each = ", ".join(f"{share:.1%} on {model}" for model, share in shares.items())
    return {
        MISS_TOKENS: f"{each}. The share is that of history in prompts, and grows with "
        "the turns that a run sees of each conversation: short runs begin with first "
        "turns, which have none. Contexts end at 2,048 tokens here."
    }


PREFILLS = Experiment(
    PREFILL_SHARE,
    "Cache-miss prefill without a prefix cache (Fig. 3c)",
    "Each turn computes its whole prompt again. Required is what an engine with a "
    "block-granular cache of the device's size computes of the same turns; the rest is "
    "due to lost prefixes.",
    prefill_tasks,
    prefill_figures,
    prefill_plots,
    explain_prefill,
)
