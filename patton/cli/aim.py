"""`patton aim`: traces of the AiM simulator, their cycles, energy and pictures."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from patton.commands import Phase
from patton.config import ModelConfig
from patton.device.aim import (
    AimResult,
    Instruction,
    energy_pj,
    load_preset,
    read_trace,
    simulate,
    to_json,
)
from patton.device.aim.convert import OPERAND_WAYS, layer_trace
from patton.device.aim.external import differences, run_simulator
from patton.device.aim.labels import WAYS as ENERGY_WAYS
from patton.device.aim.labels import energy_by
from patton.device.aim.presets import DEFAULT_PRESET
from patton.device.aim.simulation import HOSTS
from patton.device.aim.timeline import write_timeline
from patton.device.aim.trace import Opcode, format_lines
from patton.engine.costs import check_timing_known
from patton.errors import ConfigError, WorkloadError
from patton.events import replay
from patton.generate import generate_step

VARIANTS: Final = tuple(load_preset(DEFAULT_PRESET).variants)
DIFFERENT: Final = 1

EXAMPLES = """\b
Examples:
  patton aim cycles attention.trace --json
  patton aim cycles attention.trace --variant pin --simulator build/ramulator2
  patton run --steps 100 --record events.jsonl
  patton aim export events.jsonl steps.trace --first 90
  patton aim timeline steps.trace steps.json
"""

FILE = click.Path(path_type=Path)

variant_option = click.option(
    "--variant", type=click.Choice(VARIANTS), default="head", show_default=True,
    help="Version of the simulator: pin, which CENT ships; head, the newest; physical, "
    "without the quirks of both.",
)  # fmt: skip
host_option = click.option(
    "--host", type=click.Choice(HOSTS), default=HOSTS[0], show_default=True,
    help="One line a cycle for all channels together, or a port for each.",
)  # fmt: skip
operands_option = click.option(
    "--operands", type=click.Choice(OPERAND_WAYS), default="shared", show_default=True,
    help="One multicast line for all heads, or one for each operand.",
)  # fmt: skip


@click.group(epilog=EXAMPLES)
def aim() -> None:
    """Cycles, energy and traces of an AiM device, as the public simulator counts."""


@aim.command()
@click.argument("traces", type=FILE, nargs=-1, required=True, metavar="TRACE...")
@variant_option
@host_option
@click.option(
    "--simulator", type=FILE, metavar="PATH",
    help="Also run the real simulator, and say where it differs (exit status 1).",
)  # fmt: skip
@click.option(
    "--simulator-config", type=FILE, metavar="FILE",
    help="Its configuration.  [default: test/example.yaml of its source tree]",
)  # fmt: skip
@click.option(
    "--by", type=click.Choice(ENERGY_WAYS),
    help="Also the energy by command, or by what the notes of an exported trace say.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def cycles(
    *,
    traces: tuple[Path, ...],
    variant: str,
    host: str,
    simulator: Path | None,
    simulator_config: Path | None,
    by: Any,
    as_json: bool,
) -> None:
    """Count the cycles, commands and energy of traces."""
    if simulator is not None and (variant == "physical" or host != HOSTS[0]):
        problem = f"--simulator knows the host {HOSTS[0]} and the variants pin and head"
        raise click.UsageError(problem)
    differs = False
    for trace in traces:
        lines = read_trace(trace)
        timed = by in {"phase", "request"}
        result = simulate(lines, variant=variant, host=host, timed=timed)
        found = to_json(str(trace), result)
        if by is not None:
            found[f"energy_pj_by_{by}"] = energy_by(lines, result, by)
        if simulator is not None:
            printed = run_simulator(simulator, trace, config=simulator_config)
            unlike = list(differences(printed, result))
            differs = differs or bool(unlike)
            found["simulator"] = {"cycles": printed.cycles, "differences": unlike}
        if as_json:
            click.echo(json.dumps(found))
        else:
            click.echo("\n".join(_in_words(found, result)))
    if differs:
        raise click.exceptions.Exit(DIFFERENT)


def _in_words(found: dict[str, Any], result: AimResult) -> Iterator[str]:
    """A result for people: the sums over all channels."""
    micros = result.cycles * result.cycle_ns / 1000
    yield f"{found['trace']}: {result.cycles:,} cycles ({micros:,.2f} us)"
    names = dict.fromkeys(n for counts in result.commands.values() for n in counts)
    counts = ", ".join(f"{name} {result.total(name):,}" for name in names)
    channels = len(result.commands)
    yield f"  {counts or 'no commands'} on {channels} channel{'s'[: channels != 1]}"
    energy = {name: pj for name, pj in energy_pj(result).items() if pj}
    parts = ", ".join(f"{name} {pj / 1000:,.1f}" for name, pj in energy.items())
    yield f"  {sum(energy.values()) / 1000:,.1f} nJ: {parts}"
    for key, parts in found.items():
        if key.startswith("energy_pj_by_"):
            sums = {name: sum(part.values()) / 1000 for name, part in parts.items()}
            yield from (
                f"  {name}: {nanojoules:,.1f} nJ" for name, nanojoules in sums.items()
            )
    if "simulator" in found:
        printed = found["simulator"]
        unlike = printed["differences"] or ["no difference"]
        yield f"  simulator: {printed['cycles']:,} cycles"
        yield from (f"  {line}" for line in unlike)


@aim.command()
@click.argument("events", type=FILE)
@click.argument("out", type=FILE)
@click.option("--layer", type=int, default=0, show_default=True, metavar="L")
@operands_option
@click.option("--first", type=int, metavar="STEP", help="First step.  [default: all]")
@click.option("--last", type=int, metavar="STEP", help="Last step.  [default: all]")
@click.option(
    "--phase", "phases", type=click.Choice([phase.value for phase in Phase]),
    multiple=True, help="Only this phase; may be given again.  [default: all]",
)  # fmt: skip
@click.option("--no-notes", is_flag=True, help="Leave out what only PATTON reads.")
def export(
    *,
    events: Path,
    out: Path,
    layer: int,
    operands: Any,
    first: int | None,
    last: int | None,
    phases: tuple[str, ...],
    no_notes: bool,
) -> None:
    """Write the streams of an event log as a trace of one layer.

    Step by step and phase by phase, each complete before the next.
    """
    steps = lines = seen = 0
    # A log that is refused half-way leaves nothing that looks like a trace.
    part = out.with_name(out.name + ".part")
    try:
        with part.open("w", encoding="ascii", newline="\n") as text:
            for event in replay(events):
                _check_layer(layer, event.runtime.layout.model)
                if event.plan is None:
                    continue
                seen = event.plan.step
                if not _within(seen, first, last):
                    continue
                check_timing_known(event.runtime.layout)
                streams = generate_step(event.plan.place()).present()
                chosen = [s for s in streams if not phases or s.phase.value in phases]
                found = list(
                    layer_trace(
                        chosen, layer=layer, operands=operands, notes=not no_notes
                    )
                )
                text.writelines(f"{line}\n" for line in format_lines(found))
                steps += bool(chosen)
                lines += len(found)
            if not steps:
                accepted = f"steps up to {seen}, and phases that they have"
                raise WorkloadError(str(events), 0, "nothing is chosen", accepted)
            end = Instruction(Opcode.EOC)
            text.writelines(f"{line}\n" for line in format_lines([end]))
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)
    click.echo(f"{out}: {lines + 1:,} lines of {steps:,} steps, layer {layer}")


def _check_layer(layer: int, model: ModelConfig) -> None:
    if not 0 <= layer < model.layers:
        raise ConfigError(model.name, "layer", layer, f"0 to {model.layers - 1}")


def _within(step: int, first: int | None, last: int | None) -> bool:
    after = first is None or first <= step
    return after and (last is None or step <= last)


@aim.command()
@click.argument("trace", type=FILE)
@click.argument("out", type=FILE)
@variant_option
@host_option
def timeline(*, trace: Path, out: Path, variant: str, host: str) -> None:
    """Draw a trace for the Perfetto viewer (ui.perfetto.dev) or Chrome's.

    A track for each channel and bank, colours by command.
    """
    result = simulate(trace, variant=variant, host=host, timed=True)
    count = write_timeline(out, [(trace.name, result)])
    click.echo(f"{out}: {count:,} events of {result.cycles:,} cycles")
