"""The protocol checker: agrees with the timing model, and catches what is wrong."""

from __future__ import annotations

import pytest

from patton.device.aim import Command, TimedCommand, Violation, check, simulate
from patton.device.aim.checker import Constraint, load_constraints
from patton.errors import DeviceConfigError
from tests.device.aim.golden import FOLDER, golden_cases, needs_golden
from tests.device.aim.traces import random_trace

VARIANTS = ("head", "pin", "physical")
HOSTS = ("line-per-cycle", "port-per-channel")

C = Command


def at(
    cycle: int, command: Command, bank: int = -1, row: int = -1, channel: int = 0
) -> TimedCommand:
    return TimedCommand(cycle, channel, command, bank, row)


def rules_broken(
    *commands: TimedCommand, variant: str = "head", end: int | None = None
) -> list[str]:
    return [violation.rule for violation in check(commands, variant=variant, end=end)]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_agrees_with_the_model(variant: str, host: str) -> None:
    """No violation in what the timing model issues for random traces."""
    for seed in range(300, 325):
        trace = random_trace(seed)
        result = simulate(trace, variant=variant, host=host, timed=True)
        assert result.timed is not None

        assert [] == check(result.timed, variant=variant, end=result.cycles)


@needs_golden
@pytest.mark.parametrize("variant", VARIANTS)
def test_agrees_on_golden_cases(variant: str) -> None:
    """Nor for the cases handed over."""
    for name in golden_cases():
        path = FOLDER / "aim" / f"{name}.trace"
        result = simulate(path, variant=variant, timed=True)
        assert result.timed is not None

        assert [] == check(result.timed, variant=variant)


ROW_OPEN = (at(1, C.ACT16, row=7),)
MODE_ON = (at(1, C.TMOD),)

# Each breaks exactly the rule it is named after.
PLANTED: dict[str, tuple[str, tuple[TimedCommand, ...]]] = {
    "MAC too soon after ACT16": ("distance", (*ROW_OPEN, at(56, C.MAC16, row=7))),
    "MACs too close": (
        "distance",
        (*ROW_OPEN, at(57, C.MAC16, row=7), at(58, C.MAC16, row=7)),
    ),
    "precharge too soon after ACT": (
        "distance",
        (at(1, C.ACT, 2, 7), at(54, C.PRE, 2)),
    ),
    "activations of a group too close": (
        "distance",
        (at(1, C.ACT, 0, 7), at(6, C.ACT, 1, 7)),
    ),
    "activations of a channel too close": (
        "distance",
        (at(1, C.ACT, 0, 7), at(5, C.ACT, 4, 7)),
    ),
    "bank activated again within nRC": (
        "distance",
        (at(1, C.ACT, 0, 7), at(55, C.PRE, 0), at(89, C.ACT, 0, 7)),
    ),
    "precharge before write recovery": (
        "distance",
        (at(1, C.ACT, 2, 7), at(60, C.WR, 2, 7), at(100, C.PRE, 2)),
    ),
    "write too soon after read": (
        "distance",
        (at(1, C.ACT, 2, 7), at(60, C.RD, 2, 7), at(109, C.WR, 2, 7)),
    ),
    "read too soon after write": (
        "distance",
        (at(1, C.ACT, 2, 7), at(60, C.WR, 2, 7), at(78, C.RD, 2, 7)),
    ),
    "register access within the mode change": (
        "distance",
        (*MODE_ON, at(32, C.WRMAC16)),
    ),
    "buffer written too soon after a read-out": (
        "distance",
        (*MODE_ON, at(40, C.RDMAC16), at(44, C.WRGB)),
    ),
    "activation within the automatic precharge": (
        "distance",
        (*ROW_OPEN, at(60, C.WRA16, row=7), at(132, C.ACT16, row=7)),
    ),
    "read of a closed bank": ("row", (at(1, C.RD, 2, 7),)),
    "write to another row": ("row", (at(1, C.ACT, 2, 7), at(60, C.WR, 2, 8))),
    "activation of an open bank": ("row", (at(1, C.ACT, 2, 7), at(99, C.ACT, 2, 8))),
    "precharge of a closed bank": ("row", (at(1, C.PRE, 2),)),
    "precharge of all closed banks": ("row", (at(1, C.PREA),)),
    "MAC with one bank closed": (
        "row",
        (*ROW_OPEN, at(60, C.PRE, 3), at(70, C.MAC16, row=7)),
    ),
    "MAC after the automatic precharge": (
        "row",
        (*ROW_OPEN, at(60, C.WRA16, row=7), at(70, C.MAC16, row=7)),
    ),
    "activation of all banks over an open row": (
        "row",
        (at(1, C.ACT, 2, 7), at(99, C.ACT16, row=8)),
    ),
    "activation of all open banks": ("row", (*ROW_OPEN, at(99, C.ACT16, row=7))),
    "register access without mode": ("mode", (at(1, C.WRGB),)),
    "MAC in register mode": (
        "mode",
        (*ROW_OPEN, at(60, C.TMOD), at(100, C.MAC16, row=7)),
    ),
    "precharge in register mode": ("mode", (*ROW_OPEN, at(60, C.TMOD), at(99, C.PREA))),
    "two commands in a cycle": ("bus", (at(1, C.TMOD), at(1, C.ACT, 0, 7))),
    "going back in time": ("bus", (at(9, C.ACT, 0, 7), at(3, C.ACT, 4, 7))),
    "a bank that does not exist": ("bank", (at(1, C.ACT, 16, 7),)),
    "a channel that does not exist": ("bank", (at(1, C.ACT, 0, 7, channel=32),)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_planted_violations_are_caught(name: str) -> None:
    """Each by its rule, at its command, which is the last."""
    rule, commands = PLANTED[name]
    found = check(commands)

    assert rule in [violation.rule for violation in found]
    assert {len(commands) - 1} == {violation.index for violation in found}


@pytest.mark.parametrize("name", PLANTED)
def test_without_the_last_command_all_is_well(name: str) -> None:
    """So it is the planted command that is caught."""
    assert [] == check(PLANTED[name][1][:-1])


@pytest.mark.parametrize(
    ("rule", "commands", "kept"),
    [
        (
            "distance",
            (at(1, C.ACT, 0, 7), at(55, C.PRE, 0), at(87, C.ACT, 0, 7)),
            "pin",
        ),
        ("distance", (at(1, C.ACT, 0, 7), at(9, C.ACT, 4, 7), at(63, C.PREA)), "head"),
    ],
)
def test_variants_differ(
    rule: str, commands: tuple[TimedCommand, ...], kept: str
) -> None:
    """`pin` has no nRC; `physical` sets activations 11 cycles apart."""
    other = "head" if kept == "pin" else "physical"

    assert [] == rules_broken(*commands, variant=kept)
    assert [rule] == rules_broken(*commands, variant=other)


def test_precharges_of_pin() -> None:
    """Any two of a channel are 32 cycles apart there."""
    commands = (at(1, C.ACT, 0, 7), at(9, C.ACT, 4, 7), at(70, C.PRE, 0))

    assert [] == rules_broken(*commands, at(101, C.PRE, 4))
    assert ["distance"] == rules_broken(*commands, at(101, C.PRE, 4), variant="pin")


def test_four_activations_in_a_window() -> None:
    """With an activation every 5 cycles, the fifth comes within the window."""
    rules = [Constraint("channel", "ACT", "ACT", 42, 4)]
    commands = [at(1 + 5 * i, C.ACT, 4 * i % 16 + i // 4, 7) for i in range(5)]

    assert [] == check(commands[:4], constraints=rules)
    assert [4] == [found.index for found in check(commands, constraints=rules)]


def test_refresh_must_keep_pace() -> None:
    """In `physical`: no command, and no end, too long after the last refresh."""
    refreshed = at(3906, C.REFab)
    late = at(2 * 3906 + 1, C.ACT, 0, 7)

    assert [] == rules_broken(refreshed, late, variant="physical")
    assert ["refresh"] == rules_broken(late, variant="physical")
    assert ["refresh"] * 31 == rules_broken(refreshed, variant="physical", end=8000)
    assert [] == rules_broken(late)


def test_refresh_needs_closed_banks() -> None:
    """A row left open is lost."""
    assert ["row"] == rules_broken(
        at(1, C.ACT, 0, 7), at(300, C.REFab), variant="physical"
    )


def test_runs_are_looked_at_one_by_one() -> None:
    """The violation is at the command of the run that it belongs to."""
    run = TimedCommand(57, 0, C.MAC16, -1, 7, times=3, stride=1)
    detail = (
        "Constraint(scope='channel', earlier='MAC16', later='MAC16', cycles=2, nth=1) "
        "allows cycle 59"
    )

    assert (
        Violation(1, 0, 58, "MAC16", "distance", detail) == check([*ROW_OPEN, run])[0]
    )


def test_channels_are_apart() -> None:
    """Distances count inside a channel."""
    assert [] == check([at(1, C.ACT, 0, 7), at(1, C.ACT, 0, 7, channel=1)])


def test_unknown_variant() -> None:
    """The table says which it knows."""
    with pytest.raises(DeviceConfigError) as caught:
        load_constraints("tail")

    assert "head, physical, pin" == caught.value.accepted
