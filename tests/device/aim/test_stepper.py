"""The jumping model against one that steps through every cycle."""

from __future__ import annotations

import pytest

from patton.device.aim import Instruction, Opcode, simulate
from patton.device.aim.reader import parse_trace
from tests.device.aim.golden import VARIANTS, needs_golden, random_cases
from tests.device.aim.stepper import step_through
from tests.device.aim.traces import random_trace

SHORT = 60  # instructions; stepping takes a tenth of a second for a thousand cycles


def assert_same(trace: list[Instruction], variant: str, *, ports: bool = False) -> None:
    expected = step_through(trace, variant, ports=ports)
    host = "port-per-channel" if ports else "line-per-cycle"
    result = simulate(trace, variant=variant, host=host)

    assert expected.cycles == result.cycles
    for channel, active in expected.active_cycles.items():
        assert expected.commands.get(channel) == result.commands.get(channel)
        assert active == result.active_cycles[channel]


@pytest.mark.parametrize("ports", [False, True], ids=["lines", "ports"])
@pytest.mark.parametrize("variant", ["head", "pin", "physical"])
@pytest.mark.parametrize("seed", range(6))
def test_random_traces(seed: int, variant: str, *, ports: bool) -> None:
    """Same cycles, commands and active cycles, for every variant and host."""
    assert_same(random_trace(seed, SHORT), variant, ports=ports)


@pytest.mark.parametrize("ports", [False, True], ids=["lines", "ports"])
def test_refresh_in_the_middle_of_a_line(*, ports: bool) -> None:
    """A refresh cuts a line of MACs in two, and closes rows of idle channels."""
    text = "".join(
        f"AiM MAC_ABK 100 0xc0000000 {row}\nW MEM 1 3 {row}\n" for row in range(25)
    )
    assert_same(parse_trace(text + "AiM EOC\n"), "physical", ports=ports)


@pytest.mark.parametrize("gap", [0, 30, 60, 200])
@pytest.mark.parametrize("variant", ["head", "pin"])
def test_dropped_precharges(variant: str, gap: int) -> None:
    """Reads hold up an activated write, whose row the next write would close."""
    text = "R MEM 0 0 1\nR MEM 0 4 1\nW MEM 0 8 1\nW MEM 0 8 2\n"
    trace = parse_trace((text + "W GPR 0\n" * gap) * 3 + "AiM EOC\n")

    assert_same(trace, variant)


@needs_golden
@pytest.mark.parametrize("variant", VARIANTS)
def test_stepper_agrees_with_the_simulator(variant: str) -> None:
    """The stepping model is a witness: it is exact on short handed-over traces."""
    cases = [case for case in random_cases() if case[variant]["cycles"] < 700]

    assert 10 <= len(cases)
    for case in cases:
        stepped = step_through(parse_trace(case["trace"]), variant)
        own = {str(channel): counts for channel, counts in stepped.commands.items()}
        assert (case[variant]["cycles"], case[variant]["commands"]) == (
            stepped.cycles,
            own,
        )


def test_traces_are_varied() -> None:
    """The random traces use all instructions between them."""
    used = {line.opcode for seed in range(40) for line in random_trace(seed)}

    assert set(Opcode) == used
