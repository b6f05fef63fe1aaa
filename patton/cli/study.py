"""`patton study`: the paper's evaluation and what goes beyond it, and its report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import TimeElapsedColumn
from rich.table import Table

from patton.cli.aim import VARIANTS
from patton.cli.options import COUNT
from patton.cli.progress import progress_bar
from patton.device.aim.simulation import HOSTS
from patton.study.experiments import EXPERIMENTS
from patton.study.report import write_report
from patton.study.results import Figure, read_results, shown
from patton.study.settings import MODELS, PRESETS, preset
from patton.study.study import run_study
from patton.study.tasks import Source
from patton.study.work import Workers

EXAMPLES = """\b
Examples:
  patton study fragmentation
  patton study --preset quick --workload sharegpt_turns.jsonl.gz --jobs 2 --out quick
  patton study capacity --cluster tcp://head:8786 --workload chats.json --out full
  patton study report quick
"""


class RunsByDefault(click.Group):
    """`patton study NAME...` is `patton study run NAME...`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put in the name of the default command where none is."""
        known = {*self.commands, *self.get_help_option_names(ctx)}
        if not args or args[0] not in known:
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=RunsByDefault, epilog=EXAMPLES)
def study() -> None:
    """Rebuild the paper's evaluation (run, which may be left out), and report it.

    See `patton study run --help` for all options.
    """


@study.command(epilog="Experiments: " + ", ".join(EXPERIMENTS) + ".")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--preset", "name", type=click.Choice([*PRESETS]), default="quick",
    show_default=True, help="How many steps, and how many points.",
)  # fmt: skip
@click.option(
    "--workload", type=click.Path(path_type=Path), metavar="FILE",
    help="Conversations of any known format.  [default: an embedded generator]",
)  # fmt: skip
@click.option(
    "--seed", type=int, default=0, show_default=True, help="Of the generator."
)
@click.option("--models", metavar="NAME,NAME...", help=f"[default: {','.join(MODELS)}]")
@click.option("--steps", type=COUNT, metavar="N", help="Engine steps of each run.")
@click.option(
    "--block-steps", type=COUNT, metavar="N",
    help="Steps of runs without streams.",
)  # fmt: skip
@click.option("--every", type=COUNT, metavar="N", help="Time one step of so many.")
@click.option(
    "--variant", type=click.Choice(VARIANTS), default="pin", show_default=True,
    help="As in `patton aim cycles`.",
)  # fmt: skip
@click.option(
    "--host", type=click.Choice(HOSTS), default="port-per-channel", show_default=True,
    help="As in `patton aim cycles`.",
)  # fmt: skip
@click.option(
    "--jobs", type=COUNT, default=1, show_default=True, metavar="N",
    help="Processes at once.",
)  # fmt: skip
@click.option(
    "--cluster", metavar="ADDRESS", help="A Dask scheduler to give the work to."
)
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
    default=Path("study"), show_default=True,
    help="Where results.json goes, and what an interrupted study goes on from.",
)  # fmt: skip
def run(
    *,
    names: tuple[str, ...],
    name: str,
    workload: Path | None,
    seed: int,
    models: str | None,
    jobs: int,
    cluster: str | None,
    out: Path,
    **chosen: Any,
) -> None:
    """Do experiments (all of them by default) and write their figures."""
    known = {option: value for option, value in chosen.items() if value is not None}
    if models is not None:
        known["models"] = tuple(model.strip() for model in models.split(","))
    settings = preset(name, Source.of(workload, seed), **known)
    workers = Workers(jobs, cluster)
    console = Console(stderr=True, highlight=False)
    with progress_bar(console, TimeElapsedColumn()) as progress:
        task = progress.add_task("runs", total=None)
        results = run_study(
            names,
            settings,
            out,
            workers,
            lambda done, total: progress.update(task, completed=done, total=total),
        )
    wanted = set(names or EXPERIMENTS)
    known_to_paper = [
        figure
        for figure in results.figures
        if figure.study in wanted and figure.paper is not None
    ]
    printed = Console(highlight=False)
    printed.print(_table(known_to_paper))
    printed.print(f"all figures: {out / 'results.json'}", soft_wrap=True)


@study.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
def report(folder: Path) -> None:
    """Write report.html and report.md from the results in a folder."""
    for path in write_report(read_results(folder), folder):
        click.echo(path)


def _table(figures: list[Figure]) -> Table:
    """The figures that the paper has, too."""
    table = Table(box=None)
    for name in ("study", "model", "system", "quantity"):
        table.add_column(name)
    for name in ("ours", "paper", "ratio"):
        table.add_column(name, justify="right")
    for figure in figures:
        numbers = (figure.value, figure.paper, figure.ratio)
        names = (figure.study, figure.model, figure.system, figure.quantity)
        table.add_row(*names, *map(shown, numbers))
    return table
