"""The adapter to the real simulator, against a stand-in for its binary."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from patton.device.aim import AimResult, Instruction, simulate
from patton.device.aim.external import differences, read_statistics, run_simulator
from patton.errors import SimulatorError
from tests.device.aim.fake_simulator import install, statistics
from tests.device.aim.traces import random_trace

SHORTEST = "memory_system_cycles: 1\n CH0_num_ACT_commands: 0\n"


def compared(folder: Path, printed: AimResult, own: AimResult) -> list[str]:
    program = install(folder, statistics(printed))
    return list(differences(run_simulator(program, random_trace(7)), own))


def test_equal_runs_do_not_differ(tmp_path: Path) -> None:
    result = simulate(random_trace(7))

    assert [] == compared(tmp_path, result, result)


def test_every_number_is_compared(tmp_path: Path) -> None:
    """Cycles, counts of both sides, and the states of every channel."""
    own = simulate(random_trace(7))
    channel = next(iter(own.commands))
    counts = {**own.commands, channel: {**own.commands[channel], "RDAF16": 99}}
    active = {**own.active_cycles, channel: own.active_cycles[channel] + 1}
    other = attrs.evolve(
        own, cycles=own.cycles + 2, commands=counts, active_cycles=active
    )

    found = compared(tmp_path, other, own)

    # The precharged cycles of all channels follow from the cycles.
    words = [line.split(":")[0] for line in found]
    assert "cycles" == words[0]
    assert f"channel {channel} RDAF16" in words
    assert f"channel {channel} active_cycles" in words
    assert 32 == sum("precharged" in word for word in words)
    assert len(found) == 3 + 32


def test_a_trace_file_and_an_own_configuration(tmp_path: Path) -> None:
    program = install(tmp_path, statistics(simulate(random_trace(7))))
    trace, config = tmp_path / "a.trace", tmp_path / "own.yaml"
    trace.write_text("AiM EOC\n")
    config.write_text("Frontend:\n")

    assert run_simulator(program, trace, config=config).cycles


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("missing", "No such file"),
        ("no config", "given with --simulator-config"),
        ("fails", "exit status 3"),
        ("prints nothing", "no memory_system_cycles"),
        ("counts nothing", "no command counts"),
        ("hangs", "timed out"),
    ],
)
def test_a_simulator_that_does_not_do(tmp_path: Path, trouble: str, words: str) -> None:
    """Each trouble is a typed error that names the program."""
    known = {"prints nothing": "", "counts nothing": "memory_system_cycles: 1\n"}
    printed = known.get(trouble, SHORTEST)
    program = install(tmp_path, printed, status=3 * (trouble == "fails"))
    if trouble == "missing":
        program.unlink()
    if trouble == "no config":
        (tmp_path / "test" / "example.yaml").unlink()
    timeout_s = 0.001 if trouble == "hangs" else 60.0

    with pytest.raises(SimulatorError, match=words):
        run_simulator(program, random_trace(7), timeout_s=timeout_s)


def test_unknown_statistics_are_passed_over() -> None:
    """Counts of zero and of what issues no command are no counts."""
    text = (
        "memory_system_cycles: 12\n CH3_num_ACT_commands: 2\n"
        " CH3_num_PRE_commands: 0\n CH4_num_EOC_commands: 5\n CH3_idle_cycles: 4\n"
    )

    assert {3: {"ACT": 2}} == read_statistics(text).commands


def test_a_stand_in_wants_an_end(tmp_path: Path) -> None:
    """Instructions without EOC get one on their way to the simulator."""
    program = install(tmp_path, SHORTEST)

    assert 1 == run_simulator(program, list[Instruction]()).cycles
