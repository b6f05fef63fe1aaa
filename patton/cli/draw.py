"""`patton draw`: a picture of the memory map of a run, recorded or made on the spot."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Unpack

import attrs
import click
from click.core import ParameterSource
from rich.console import Console

from patton.cli.options import LayoutOptions, build_layout, layout_options
from patton.cli.picture.html import to_html
from patton.cli.picture.memory_map import memory_map
from patton.cli.picture.occupancy import Occupancy
from patton.cli.picture.png import to_png
from patton.cli.picture.shapes import Picture
from patton.cli.picture.svg import to_svg
from patton.engine.serving import ServingLoop
from patton.engine.synthetic import default_scenario
from patton.errors import ConfigError, EventError
from patton.events import replay
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step

WRITERS: dict[str, Callable[[Picture], bytes]] = {
    ".svg": lambda picture: to_svg(picture).encode(),
    ".html": lambda picture: to_html(picture).encode(),
    ".png": to_png,
}
SCENARIO_STEP = 120  # by then all kinds of cells are there

EXAMPLES = """\b
Examples:
  patton draw map.svg
  patton draw --at 300 map.html
  patton draw --events run.jsonl --at 50 --layer 1 map.png
"""


@click.command(epilog=EXAMPLES)
@click.argument("out", metavar="OUT.svg|png|html", type=click.Path(path_type=Path))
@click.option(
    "--at",
    type=click.IntRange(min=1),
    metavar="STEP",
    help="Draw after that many engine steps.  [default: 120, or the end of the log]",
)
@click.option(
    "--events",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Replay this recorded run; without it, serve the embedded scenario.",
)
@click.option("--layer", type=int, default=0, show_default=True, metavar="L")
@click.option("--head", type=int, default=0, show_default=True, help="KV head.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the scenario.")
@layout_options(model="tiny", device="tiny")
@click.pass_context
def draw(
    ctx: click.Context,
    *,
    out: Path,
    at: int | None,
    events: Path | None,
    layer: int,
    head: int,
    seed: int,
    **options: Unpack[LayoutOptions],
) -> None:
    """Draw who holds which part of the memory after some engine steps.

    The ending of the file's name is its format; in a browser, .svg and .html say what
    each cell is when it is pointed at.
    """
    write = _writer(out)
    if events is not None:
        _refuse_beside_events(ctx, ("seed", *options))
    with Console(stderr=True).status("serving" if events is None else "replaying"):
        if events is not None:
            runtime = replayed(events, at)
        else:
            runtime = served(build_layout(**options), at or SCENARIO_STEP, seed)
        picture = memory_map(Occupancy.of(runtime), layer=layer, head=head)
    out.write_bytes(write(picture))


def _writer(out: Path) -> Callable[[Picture], bytes]:
    """How to write a file of this name. Raises ConfigError."""
    write = WRITERS.get(out.suffix.lower())
    if write is None:
        accepted = "a name that ends in " + ", ".join(WRITERS)
        raise ConfigError("draw", "OUT", str(out), accepted)
    return write


def _refuse_beside_events(ctx: click.Context, names: Iterable[str]) -> None:
    """A log says itself what was run on what, so options that differ would be lost."""
    for name in names:
        if ctx.get_parameter_source(name) is not ParameterSource.DEFAULT:
            option = "--" + name.replace("_", "-")
            raise click.UsageError(f"{option} has no effect beside --events")


def served(layout: Layout, steps: int, seed: int = 0) -> Runtime:
    """A runtime after the first steps of the embedded scenario, all commits published.

    Raises ConfigError for a seed, RequestTooLargeError for a layout too small for it.
    """
    scenario = default_scenario(seed)
    settings = attrs.evolve(scenario.loop, block_tokens=layout.block_tokens)
    runtime = Runtime.of(layout)
    loop = ServingLoop.of(
        scenario.workload,
        settings,
        layout.granules,
        placement=runtime,
        pair_blocks=layout.pair_blocks,
    )
    for number in range(1, steps + 1):
        record = loop.step()
        writes = [(item.id, start, count) for item, start, count, _ in record.scheduled]
        runtime.publish(runtime.apply_step(Step(writes=writes)))
        # What ends with the last step is still to be seen.
        if number < steps:
            loop.completed(record)
    return runtime


def replayed(path: Path, steps: int | None) -> Runtime:
    """A runtime after the first steps of an event log, all commits published.

    steps: None for the whole log. Raises EventError for what is not a log, ConfigError
    for a step that it does not have.
    """
    runtime: Runtime | None = None
    seen = 0
    for event in replay(path):
        runtime = event.runtime
        if event.plan is not None:
            seen += 1
            if seen == steps:
                runtime.publish(event.plan)
                return runtime
    if runtime is None:
        raise EventError(1, "nothing after the header", "a header and events")
    if steps is not None:
        raise ConfigError(str(path), "at", steps, f"1 to {seen}, the steps of the log")
    return runtime
