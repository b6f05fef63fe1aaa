"""Whose energy it is: that of an exported trace, by phase or by request.

Both stand in the notes of the trace, so that a file is all it takes. What lies between
streams, and what no line causes, is under REST.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, get_args

from patton.device.aim.convert import convert
from patton.device.aim.costs import NO_REQUEST, entry_requests
from patton.device.aim.energy import (
    Components,
    EnergyModel,
    energy_by_label,
    load_energy_model,
)
from patton.device.aim.recover import Recovered, streams_of
from patton.device.aim.simulation import AimResult
from patton.device.aim.trace import Instruction

By = Literal["command", "phase", "request"]
WAYS: Final[tuple[By, ...]] = get_args(By)
REST: Final = "rest"


def energy_by(
    trace: Sequence[Instruction],
    result: AimResult,
    by: By,
    model: EnergyModel | None = None,
) -> dict[str, Components]:
    """Energy of a run of the trace, in pJ, by label and component.

    By command it has no standby, which belongs to none. By phase and request the result
    must be timed, and the sum is that of all. Raises TraceError for a trace that no
    streams make.
    """
    energy = model or load_energy_model()
    if by == "command":
        commands = dict.fromkeys(c for own in result.commands.values() for c in own)
        return {c: energy.of_commands({c: result.total(c)}) for c in commands}
    labels = [REST] * len(trace)
    for found in streams_of(trace):
        if by == "phase":
            labels[found.start : found.end] = [found.stream.phase.value] * (
                found.end - found.start
            )
        else:
            own = _requests(found)
            labels[found.start : found.start + len(own)] = own

    def label(line: int) -> str:
        return labels[line] if 0 <= line < len(labels) else REST

    return energy_by_label(result, label, energy)


def _requests(found: Recovered) -> list[str]:
    """The request that each line of a stream serves."""
    stream = found.stream
    owners = entry_requests(stream)
    lines = convert(stream, layer=found.layer, operands=found.operands).entries
    requests = [int(owners[e]) if e >= 0 else NO_REQUEST for e in lines]
    return [
        REST if request == NO_REQUEST else f"step {stream.step} request {request}"
        for request in requests
    ]
