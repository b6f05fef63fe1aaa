"""Whose energy it is: nothing is lost, and nothing counted twice."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest

from patton.device.aim import Instruction, energy_pj, parse_trace, simulate
from patton.device.aim.convert import layer_trace
from patton.device.aim.energy import Components, load_energy_model
from patton.device.aim.labels import REST, energy_by
from patton.device.aim.trace import Opcode
from tests.device.aim.test_convert import llama_streams

END = Instruction(Opcode.EOC)


def exported() -> list[Instruction]:
    """A decode of Llama3-8B with notes."""
    return [*layer_trace(llama_streams()), END]


def whole(parts: Sequence[Components]) -> float:
    return math.fsum(pj for part in parts for pj in part.values())


@pytest.mark.parametrize("by", ["phase", "request"])
def test_labels_share_all_of_the_energy(by: str) -> None:
    trace = exported()
    result = simulate(trace, timed=True)
    found = energy_by(trace, result, by)  # type: ignore[arg-type]

    assert whole([energy_pj(result)]) == pytest.approx(whole([*found.values()]))
    phases = {"key-write", "value-write", "qk", "sv", "partial", REST}
    expected = phases if by == "phase" else {"step 1 request 0", REST}
    assert expected == found.keys()


def test_a_line_of_another_tool_has_the_phase_of_its_command() -> None:
    """A write before a decode is more to write, and changes nothing of the products."""
    trace = exported()
    (write,) = parse_trace("AiM WR_ABK 0 0x80000000 5\nAiM EOC\n")[:1]
    both, alone = (
        energy_by(lines, simulate(lines, timed=True), "phase")
        for lines in ([write, *trace], trace)
    )

    assert both["key-write"]["WR"] > alone["key-write"]["WR"]
    assert both["qk"]["PIM"] == alone["qk"]["PIM"]


def test_energy_by_command_has_no_standby() -> None:
    trace = exported()
    result = simulate(trace)
    found = energy_by(trace, result, "command", load_energy_model())

    assert {"MAC16", "ACT16", "WRGB"} <= found.keys()
    standby = {"ACT_STBY", "PRE_STBY"}
    everything = energy_pj(result)
    commands = math.fsum(everything[n] for n in everything.keys() - standby)
    assert commands == pytest.approx(whole([*found.values()]) + everything["GB_STT"])
