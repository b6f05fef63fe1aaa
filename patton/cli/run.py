"""`patton run`: serve conversations on the device, from blocks to outputs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any, Unpack

import attrs
import click
from rich.console import Console
from rich.progress import Progress, TimeRemainingColumn
from rich.table import Table

from patton.cli.costs import CostOptions, cost_options, cost_rows, target_of
from patton.cli.options import (
    COUNT,
    DEVICE,
    Decorator,
    LayoutOptions,
    build_layout,
    json_option,
    layout_options,
    print_json,
)
from patton.cli.progress import progress_bar
from patton.engine.costs import RunCosts
from patton.engine.placement_gate import EVICTIONS
from patton.engine.serving import LoopSettings
from patton.engine.session import CHECKS, RunSettings, Session
from patton.engine.synthetic import default_scenario
from patton.engine.workloads import open_workload
from patton.events import Recorder
from patton.generate import PAPER, Schedule, best_schedule
from patton.layout import Layout
from patton.pairs import CHOICES

WORKLOAD_STEPS = 1000

EXAMPLES = """\b
Examples:
  patton run
  patton run --workload sharegpt_turns.jsonl.gz --model llama3-8b --steps 10000
  patton run --model opt-6.7b --concurrency 8 --pool 16 --no-commit-zone
  patton run --steps 200 --record events.jsonl && patton replay events.jsonl
  patton run --steps 40 --variant pin --timeline steps.json
"""


class RunOptions(LayoutOptions, CostOptions):
    """The values of the options of `patton run`, as the command receives them."""

    workload: Path | None
    layers: int | None
    steps: int | None
    concurrency: int | None
    pool: int | None
    max_context: int | None
    token_budget: int | None
    seed: int
    check: Any
    validate: bool
    choice: Any
    eviction: Any
    no_commit_zone: bool
    no_adoption: bool
    no_o2: bool
    schedule: str


def _number(name: str, text: str) -> Decorator:
    return click.option(name, type=COUNT, metavar="N", help=text)


@click.command(epilog=EXAMPLES)
@click.option(
    "--workload",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Conversations of any known format.  [default: an embedded generator]",
)
@layout_options(model=None, device=None)
@_number("--layers", "Layers that a data check executes.  [default: all]")
@_number("--steps", f"Engine steps.  [default: 300, of a workload {WORKLOAD_STEPS}]")
@_number("--concurrency", "Requests that run at once.  [default: 20; 32]")
@_number("--pool", "Conversations open at once.  [default: 24; 64]")
@_number("--max-context", "Tokens of a turn with all before.  [default: the model's]")
@_number("--token-budget", "Tokens of one step.  [default: 192; 2048]")
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the generator."
)
@click.option(
    "--check",
    type=click.Choice(CHECKS),
    help="data: execute every stream and compare every output bit for bit; placement: "
    "generate the streams only.  [default: data for tiny, else placement]",
)
@click.option("--validate", is_flag=True, help="Prove every stream, term by term.")
@click.option(
    "--choice", type=click.Choice(CHOICES), default="spread", show_default=True,
    help="How a new pair is picked.",
)  # fmt: skip
@click.option(
    "--eviction", type=click.Choice(EVICTIONS), default="pairs", show_default=True,
    help="Whole pairs, or blocks in the engine's own order.",
)  # fmt: skip
@cost_options()
@click.option("--no-commit-zone", is_flag=True, help="Write partial blocks in place.")
@click.option("--no-adoption", is_flag=True, help="Never fill on the pair of a hit.")
@click.option("--no-o2", is_flag=True, help="Pairs of a whole Value Row Set.")
@click.option(
    "--schedule", type=click.Choice(["paper", "best"]), default="paper",
    show_default=True, help="Order of commands: the paper's, or the fastest measured.",
)  # fmt: skip
@click.option(
    "--record", type=click.Path(path_type=Path), metavar="FILE",
    help="Write the event log, for `patton replay`.",
)  # fmt: skip
@click.option(
    "--effective-capacity", is_flag=True,
    help="Also find the plain cache that hits as often (by bisection; slow).",
)  # fmt: skip
@json_option
def run(
    *,
    as_json: bool,
    record: Path | None,
    effective_capacity: bool,
    **options: Unpack[RunOptions],
) -> None:
    """Serve conversations: place blocks, make streams, execute and check them.

    Without options an embedded workload of the tiny model is served on a small device,
    where everything happens: sharing, adoption, chunked prefill, commits, eviction,
    preemption.
    """
    if record is not None and options["workload"] is not None:
        _refuse_same_file(record, options["workload"])
    settings = run_settings(**options)
    session = Session.of(settings)
    if options["timeline"] is not None:
        options["timeline"].touch()  # a wrong path shows before the run, not after
    console = Console(stderr=True, highlight=False)
    with ExitStack() as stack:
        if record is not None:
            out = stack.enter_context(record.open("w", encoding="utf-8"))
            recorder = Recorder.attach(session.runtime, out)
            stack.callback(recorder.close)
        progress = stack.enter_context(progress_bar(console, TimeRemainingColumn()))
        task = progress.add_task("serving", total=settings.steps)
        session.run(lambda steps: progress.update(task, completed=steps))
        results = _results(session, progress, effective_capacity=effective_capacity)
        if session.costs is not None and options["timeline"] is not None:
            session.costs.write_timeline(options["timeline"])
    if as_json:
        print_json(results)
    else:
        _print(settings, results, Console(highlight=False))


def _refuse_same_file(record: Path, workload: Path) -> None:
    """A log would overwrite the workload before it is read."""
    if record.exists() and workload.exists() and record.samefile(workload):
        raise click.UsageError("--record is the file of --workload")


def run_settings(**options: Unpack[RunOptions]) -> RunSettings:
    """What to run. Raises ConfigError, WorkloadError."""
    model = "tiny" if options["model"] is None else options["model"]
    device = options["device"]
    if device is None:
        device = "tiny" if model == "tiny" else DEVICE
    layout = _layout(model, device, options)
    scenario = default_scenario(options["seed"])
    if options["workload"] is None and model == device == "tiny":
        loop, steps = scenario.loop, scenario.steps
    else:
        loop, steps = LoopSettings(max_context=layout.model.max_context), WORKLOAD_STEPS
    limits = ("concurrency", "pool", "max_context", "token_budget")
    chosen: dict[str, Any] = {
        name: value
        for name, value in options.items()
        if name in limits and value is not None
    }
    loop = attrs.evolve(
        loop, block_tokens=layout.block_tokens, eviction=options["eviction"], **chosen
    )
    workload = scenario.workload
    if options["workload"] is not None:
        tokenizer = layout.model.tokenizer
        workload = open_workload(options["workload"], tokenizer=tokenizer)
    return RunSettings(
        workload=workload,
        layout=layout,
        loop=loop,
        steps=steps if options["steps"] is None else options["steps"],
        check=options["check"] or ("data" if model == "tiny" else "placement"),
        layers=options["layers"],
        validate=options["validate"],
        costs=target_of(options),
        timeline_steps=options["timeline_steps"] if options["timeline"] else 0,
        choice=options["choice"],
        adoption=not options["no_adoption"],
        commit_zone=not options["no_commit_zone"],
        schedule=_schedule(layout, options),
    )


def _schedule(layout: Layout, options: RunOptions) -> Schedule:
    if options["schedule"] == "paper":
        return PAPER
    return best_schedule(layout.device.name, options["variant"] or "head")


def _layout(model: str, device: str, options: RunOptions) -> Layout:
    layout = build_layout(
        model=model,
        device=device,
        slots=options["slots"],
        pair_blocks=options["pair_blocks"],
        block_tokens=options["block_tokens"],
        capacity_gib=options["capacity_gib"],
    )
    if not options["no_o2"]:
        return layout
    if options["pair_blocks"] is not None:
        problem = "--no-o2 makes pairs of whole row sets; leave --pair-blocks out"
        raise click.UsageError(problem)
    whole_set = layout.stripes * layout.values_per_set
    return Layout.of(
        layout.device,
        layout.model,
        block_tokens=layout.block_tokens,
        pair_blocks=whole_set,
        slots=layout.slots,
    )


def _results(
    session: Session, progress: Progress, *, effective_capacity: bool
) -> dict[str, Any]:
    task = progress.add_task("plain cache of as many blocks", total=None)
    results = session.report()
    results["prefix_hit_rate_block_cache"] = session.reference_hit_rate()
    results["effective_capacity"] = None
    if effective_capacity:
        progress.update(task, description="plain caches of fewer blocks")
        results["effective_capacity"] = session.effective_capacity()
    return results


def _print(settings: RunSettings, results: dict[str, Any], console: Console) -> None:
    layout = settings.layout
    console.print(
        f"[bold]{settings.workload.name}[/]: {layout.model.name} on "
        f"{layout.device.name}, {layout.pairs:,} pairs of {layout.pair_blocks} blocks, "
        f"{settings.loop.concurrency} requests at once of {settings.loop.pool} open "
        "conversations",
        soft_wrap=True,
    )
    table = Table(box=None, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for name, value in results.items():
        for label, shown in _rows(name, value):
            table.add_row(label, shown)
    for label, shown in cost_rows(results):
        table.add_row(label, shown)
    console.print(table)
    if results["bit_exact"]:
        console.print("every output equals the reference, bit for bit")
    if settings.validate:
        console.print("every stream has its terms, each once and none foreign")


def _rows(name: str, value: Any) -> list[tuple[str, str]]:
    """A result as lines of the table; what was not measured has none."""
    label = name.replace("_", " ")
    if value is None or name == "bit_exact" or name in RunCosts.KEYS:
        return []
    if isinstance(value, dict):
        return [row for key in value for row in _rows(f"{name}_{key}", value[key])]
    if isinstance(value, float):
        return [(label, f"{value:.4g}")]
    return [(label, f"{value:,}")]
