"""Presets and the tables worked out from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from patton.device.aim import Command, load_preset
from patton.device.aim.checker import load_constraints
from patton.device.aim.commands import BANK_COMMANDS
from patton.device.aim.presets import data_text, preset_names
from patton.device.aim.timing import Timing, evaluate
from patton.errors import DeviceConfigError

VARIANTS = ("pin", "head", "physical")
Table = dict[tuple[str, str, str], int]


def scheduler_table(variant: str) -> Table:
    """(scope, earlier, later) -> cycles, as the scheduler has it, seen from bank 5."""
    timing = Timing.of(load_preset(), variant)
    found: Table = {}
    for command in Command:
        deltas = timing.channel[command]
        if command < BANK_COMMANDS:
            deltas += timing.deferred[command]
        for later, cycles in deltas:
            found["channel", command.name, Command(later).name] = cycles
        if timing.hold[command]:
            for later in Command:
                key = ("channel", command.name, later.name)
                found[key] = timing.hold[command]
    for command in map(Command, range(BANK_COMMANDS)):
        for index, cycles in timing.bank[command][5]:
            bank, later = divmod(index, BANK_COMMANDS)
            scope = "bank" if bank == 5 else "bank group"
            found[scope, command.name, Command(later).name] = cycles
    return found


def in_force(table: Table, earlier: str, later: str, scopes: tuple[str, ...]) -> int:
    """The distance that counts, if the two commands share these scopes."""
    return max(table.get((scope, earlier, later), 0) for scope in scopes)


@pytest.mark.parametrize("variant", VARIANTS)
def test_tables_are_those_of_the_checker(variant: str) -> None:
    """Formulas over parameters come to the numbers that were written down."""
    own = scheduler_table(variant)
    expected = {
        rule[:3]: rule.cycles for rule in load_constraints(variant) if rule.nth == 1
    }
    # A TMOD is issued for a command that is ready, whatever held that back. So TMOD
    # itself and, before it, REFab need no entry of their own in the checker's table.
    for shared in (
        ("channel",),
        ("channel", "bank group"),
        ("channel", "bank group", "bank"),
    ):
        for earlier in Command:
            for later in Command:
                names = earlier.name, later.name
                if earlier == Command.TMOD and later in {Command.TMOD, Command.REFab}:
                    continue
                assert in_force(expected, *names, shared) == in_force(
                    own, *names, shared
                ), (shared, names)


def test_only_physical_has_an_activate_window() -> None:
    """Four activations in 42 cycles; the simulator never enforces its own."""
    windows = [Timing.of(load_preset(), v).activate_window for v in VARIANTS]

    assert [None, None, (4, 42)] == windows
    assert [("ACT", 42)] == [
        (rule.later, rule.cycles)
        for rule in load_constraints("physical")
        if rule.nth == 4
    ]


def test_latencies() -> None:
    """Cycles to completion, as measured."""
    timing = Timing.of(load_preset(), "head")
    expected = {"WR": 8, "WRGB": 3, "WRMAC16": 3, "RDMAC16": 2, "RDAF16": 2}
    expected |= {"RD": 52, "WRA16": 40, "RDCP": 1, "WRCP": 1, "MAC": 1, "MAC16": 1}
    expected |= {"AF16": 1, "EWMUL16": 1}

    assert expected == {c.name: timing.latency[c] for c in Command if timing.latency[c]}


def test_sums() -> None:
    """Expressions are sums and differences of parameters and numbers."""
    assert 50 == evaluate("a + 3 - b + c", {"a": 52, "b": 6, "c": 1})


def test_overrides_replace_parameters() -> None:
    """As the simulator's option -p does, for all that its code does not fix."""
    timing = Timing.of(load_preset(), "head", {"nMODCH": 7, "nWTRL": 20})

    assert 7 == timing.hold[Command.TMOD]
    assert (Command.RDMAC16, 28) in timing.deferred[Command.WR]


def test_overrides_reach_rules_that_are_hidden_otherwise() -> None:
    """With a small nWTRL it is nWTRS that holds up a read-out after WRMAC16."""
    timing = Timing.of(load_preset(), "head", {"nWTRL": 5})

    assert (Command.RDMAC16, 12) in timing.channel[Command.WRMAC16]


@pytest.mark.parametrize(
    ("overrides", "parameter", "value"),
    [
        ({"nXYZ": 1}, "timing", "nXYZ"),
        ({"nWPRE": 1}, "timing", "nWPRE"),
        ({"nRP": -1}, "nRP", -1),
    ],
)
def test_overrides_are_checked(
    overrides: dict[str, int], parameter: str, value: object
) -> None:
    """Unknown, fixed and negative parameters are refused."""
    with pytest.raises(DeviceConfigError) as caught:
        Timing.of(load_preset(), "head", overrides)

    assert (parameter, value) == (caught.value.parameter, caught.value.value)


def test_every_value_has_a_source() -> None:
    """And a unit, in every shipped preset and variant."""
    for name in preset_names():
        preset = load_preset(name)
        tables = [preset.organisation, preset.timing]
        tables += [variant.timing for variant in preset.variants.values()]
        for table in tables:
            assert all(value.unit and value.source for value in table.values())


def test_a_preset_from_a_file(tmp_path: Path) -> None:
    """A device of one's own is a file in the same form."""
    text = data_text("gddr6_aim.toml").replace('name = "gddr6_aim"', 'name = "mine"')
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")

    assert "mine" == load_preset(path).name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('scope = "bank group"', 'scope = "bank grape"'),
        ("[organisation]", "[organization]"),
        ("cycle_ns = 0.5", "cycle_ns = "),
        ("refresh = true", "refresher = true"),
    ],
)
def test_files_that_are_no_presets(tmp_path: Path, old: str, new: str) -> None:
    """They are refused with the file's name."""
    path = tmp_path / "bad.toml"
    path.write_text(data_text("gddr6_aim.toml").replace(old, new), encoding="utf-8")

    with pytest.raises(DeviceConfigError) as caught:
        load_preset(path)
    assert str(path) == caught.value.source


def test_a_window_of_other_commands_is_refused(tmp_path: Path) -> None:
    """The model knows the window of activations only."""
    text = data_text("gddr6_aim.toml").replace("window = 4", "window = 4\n#")
    text = text.replace(
        'before = ["ACT"]\nafter = ["ACT"]\ncycles = "nFAW"',
        'before = ["PRE"]\nafter = ["ACT"]\ncycles = "nFAW"',
    )
    path = tmp_path / "window.toml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(DeviceConfigError):
        Timing.of(load_preset(path), "physical")


def test_unknown_names() -> None:
    """The accepted ones are in the error."""
    with pytest.raises(DeviceConfigError) as caught:
        load_preset("gddr7")
    assert "gddr6_aim or a path" == caught.value.accepted

    with pytest.raises(DeviceConfigError) as caught:
        Timing.of(load_preset(), "tail")
    assert "pin, head, physical" == caught.value.accepted
