"""Options of `patton run` about cycles and energy, and how these are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import click

from patton.cli.aim import FILE, VARIANTS, host_option, operands_option
from patton.cli.options import COUNT, Decorator, Function
from patton.device.aim.costs import Target


class CostOptions(TypedDict):
    """The values of `cost_options`, as a command receives them."""

    cycles: bool
    variant: str | None
    host: str
    operands: Any
    timeline: Path | None
    timeline_steps: int


def cost_options() -> Decorator:
    """The options; --variant or --timeline alone ask for cycles, too."""
    options = (
        click.option(
            "--cycles",
            is_flag=True,
            help="Also count cycles and energy by phase, for all layers (slower).",
        ),
        click.option(
            "--variant",
            type=click.Choice(VARIANTS),
            help="As in `patton aim cycles`.  [default: head]",
        ),
        host_option,
        operands_option,
        click.option(
            "--timeline",
            type=FILE,
            metavar="FILE",
            help="Draw layer 0 of the last steps for the Perfetto viewer.",
        ),
        click.option(
            "--timeline-steps",
            type=COUNT,
            default=2,
            show_default=True,
            metavar="N",
            help="How many.",
        ),
    )

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def target_of(options: CostOptions) -> Target | None:
    """On what to time a run; None if that was not asked for."""
    if not (options["cycles"] or options["variant"] or options["timeline"]):
        return None
    return Target(
        variant=options["variant"] or "head",
        host=options["host"],
        operands=options["operands"],
    )


def cost_rows(results: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Lines of a table: cycles and energy by phase, and where the cycles go."""
    if results["cycles"] is None:
        return
    for phase, cycles in results["cycles"].items():
        microjoules = sum(results["energy_pj"][phase].values()) / 1e6
        label = phase.replace("_", " ")
        yield f"{label}: cycles, energy", f"{cycles:,}, {microjoules:,.1f} uJ"
    for phase, fraction in results["mac_bound"].items():
        yield f"{phase}: share of the MAC bound", f"{fraction:.1%}"
        spent, cycles = results["cycles_spent"][phase], results["cycles"][phase]
        for reason, lost in spent.items():
            yield f"  {reason.replace('_', ' ')}", f"{lost / cycles:.1%}"
