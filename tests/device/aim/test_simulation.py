"""Cycle counts that were measured, known quirks, hosts and merging."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from patton.device.aim import (
    AimResult,
    Instruction,
    Opcode,
    mask_of,
    missing_commands,
    parse_trace,
    simulate,
)
from patton.device.aim.controller import Controller
from patton.device.aim.groups import Groups
from patton.device.aim.host import LineHost
from patton.device.aim.presets import load_preset
from patton.device.aim.timing import Timing
from patton.errors import DeviceConfigError, StalledTraceError
from tests.device.aim.traces import random_trace

VARIANTS = ("head", "pin", "physical")
SIMULATORS = ("head", "pin")
HOSTS = ("line-per-cycle", "port-per-channel")
ALL = 0xFFFFFFFF


def lines(*text: str) -> str:
    return "\n".join((*text, "AiM EOC", ""))


def cycles(*text: str, variant: str = "head", host: str = HOSTS[0]) -> int:
    return simulate(lines(*text), variant=variant, host=host).cycles


def commands_of(result: AimResult, channel: int = 0) -> dict[str, int]:
    return dict(result.commands.get(channel, {}))


# --- closed forms ---------------------------------------------------------------


def dot_products(row: int, bursts: int, loaded: int, mask: int) -> list[str]:
    """Load the buffer, set the accumulators, MAC a row, read the result."""
    load = [f"AiM WR_GB {loaded} 0 {mask}"] if loaded else []
    return [
        *load,
        f"AiM WR_BIAS 0 {mask}",
        f"AiM MAC_ABK {bursts} {mask} {row}",
        f"AiM RD_MAC 0 {mask}",
    ]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("mask", [1, 0x80000001, ALL])
@pytest.mark.parametrize(("bursts", "loaded"), [(1, 0), (8, 8), (64, 0), (64, 64)])
def test_a_row_of_macs(variant: str, mask: int, bursts: int, loaded: int) -> None:
    """158 + 2 a MAC + 2 a loaded burst, cold or on a new row; 70 on the open row."""
    once = 158 + 2 * bursts + 2 * loaded
    again = 70 + 2 * bursts + 2 * loaded
    first = dot_products(1, bursts, loaded, mask)

    assert once == cycles(*first, variant=variant)
    new_row = dot_products(2, bursts, loaded, mask)
    assert 2 * once == cycles(*first, *new_row, variant=variant)
    assert once + again == cycles(*first, *first, variant=variant)


@pytest.mark.parametrize("variant", SIMULATORS)
def test_microbenchmark_of_the_paper(variant: str) -> None:
    """64 continuous MACs against 8 x 8: 414 and 904 cycles, 2.18 times as many."""
    continuous = cycles(*dot_products(1, 64, 64, 1), variant=variant)
    parts = [line for _ in range(8) for line in dot_products(1, 8, 0, 1)]
    fragmented = cycles("AiM WR_GB 64 0 1", *parts, variant=variant)

    assert (414, 904) == (continuous, fragmented)
    assert 2.18 == pytest.approx(fragmented / continuous, abs=0.005)


def test_writes_to_all_banks_close_the_row() -> None:
    """70 cycles for the first, 101 for each further one, on the same row or not."""
    assert [70 + 101 * n for n in range(4)] == [
        cycles(*["AiM WR_ABK 0 1 5"] * (n + 1)) for n in range(4)
    ]


@pytest.mark.parametrize(
    ("expected", "text"),
    [
        (190, ["AiM WR_BIAS 0 {all}", "AiM MAC_ABK 16 {all} 1", "AiM RD_MAC 0 {all}"]),
        (6018, ["AiM WR_BIAS 0 {one}", "AiM MAC_ABK 16 {one} 1", "AiM RD_MAC 0 {one}"]),
    ],
    ids=["multicast", "in turn"],
)
def test_multicast_saves_the_waits(expected: int, text: list[str]) -> None:
    """32 channels with one line each, against one after the other."""
    masks = [ALL] if "{all}" in text[0] else [1 << i for i in range(32)]
    trace = [line.format(all=mask, one=mask) for mask in masks for line in text]

    assert expected == cycles(*trace)


# --- quirks, and that `physical` is without them --------------------------------


@pytest.mark.parametrize("variant", SIMULATORS)
def test_a_lone_write_is_lost(variant: str) -> None:
    """It is activated, then EOC completes without waiting for it."""
    result = simulate(lines("W MEM 0 5 100"), variant=variant)

    assert (3, {"ACT": 1}) == (result.cycles, commands_of(result))


def test_missing_commands_names_the_lost() -> None:
    """So that nobody trusts the cycles of such a trace."""
    text = lines("W MEM 0 5 100")
    for variant, lost in (("head", {(0, "WR"): 1}), ("physical", {})):
        result = simulate(text, variant=variant, timed=True)
        assert result.timed is not None
        assert lost == missing_commands(parse_trace(text), result.timed)


@pytest.mark.parametrize(("variant", "reads"), [("head", 0), ("physical", 3)])
def test_any_write_answers_a_read(variant: str, reads: int) -> None:
    """The simulator compares addresses that it never sets."""
    trace = ["W MEM 0 5 100"] * 4 + ["R MEM 0 9 7"] * 3
    result = simulate(lines(*trace), variant=variant)

    assert reads == commands_of(result).get("RD", 0)


def test_physical_answers_reads_of_the_written_row() -> None:
    """A queued write to the same bank and row holds what is read."""
    trace = ["W MEM 0 5 100"] * 4 + ["R MEM 0 5 100"] * 3

    assert "RD" not in commands_of(simulate(lines(*trace), variant="physical"))


def test_no_refresh_but_in_physical() -> None:
    """40,000 idle cycles: ten intervals of 3,906 cycles, rows closed each time."""
    trace = [f"AiM MAC_ABK 100 1 {row}" for row in range(130)]
    head, physical = (simulate(lines(*trace), variant=v) for v in ("head", "physical"))

    assert head.total("REFab") == 0
    assert physical.cycles // 3906 == commands_of(physical, 31)["REFab"]
    assert commands_of(physical)["REFab"] == commands_of(physical, 31)["REFab"]
    assert physical.cycles > head.cycles


def test_results_hold_up_one_channel_only_in_physical() -> None:
    """The simulator's host waits for the result before the next line."""
    one, two = (dot_products(1, 16, 0, mask) for mask in (1, 2))
    alone = cycles(*one)

    assert cycles(*one, *two) > 2 * alone - 60
    assert cycles(*one, *two, variant="physical") < alone + 10
    assert cycles(*one, *two, host="port-per-channel") < alone + 10


def test_open_banks_are_told_apart_only_in_physical() -> None:
    """Elsewhere bank 1 stands for bank 5 too: its PRE ends the active time of both."""
    trace = ["W MEM 0 5 1"] * 8 + ["W MEM 0 1 1"] * 8 + ["W MEM 0 1 2"] * 8
    head = simulate(lines(*trace), variant="head")
    physical = simulate(lines(*trace), variant="physical")

    assert head.precharged_cycles[0] > 20
    assert physical.precharged_cycles[0] < 5


@pytest.mark.parametrize(("variant", "expected"), [("pin", 3807), ("head", 824)])
def test_precharges_one_by_one(variant: str, expected: int) -> None:
    """Single-bank precharges of a channel are 32 cycles apart in `pin` alone."""
    trace = [f"W MEM 0 {bank} {row}" for row in range(8) for bank in range(16)]

    assert expected == simulate(lines(*trace, "AiM SYNC"), variant=variant).cycles - 2


def test_selecting_no_channel_does_nothing() -> None:
    """Mask 0 and 0 bursts cost their line's cycle, even for a blocking line."""
    assert cycles() + 3 == cycles(
        "AiM RD_MAC 0 0", "AiM MAC_ABK 0 1 5", "AiM EWADD 4 0 0"
    )


def test_activation_function_opens_its_table() -> None:
    """The row with the look-up table of the function in force, in all banks."""
    same = ["AiM AF 1", "AiM AF 1"]
    other = ["AiM AF 1", "W CFR 2 1", "AiM AF 1"]

    assert 1 == commands_of(simulate(lines(*same)), 31)["ACT16"]
    assert 2 == commands_of(simulate(lines(*other)), 31)["ACT16"]
    assert 1 == commands_of(simulate(lines("W CFR 1 1", *same)), 31)["ACT16"]


# --- results, hosts, merging ----------------------------------------------------


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(100, 108))
def test_merging_changes_nothing(seed: int, variant: str, host: str) -> None:
    """Channels simulated once are as if each were simulated by itself."""
    trace = random_trace(seed)
    merged, single = (
        simulate(trace, variant=variant, host=host, timed=True, merging=merging)
        for merging in (True, False)
    )

    assert single == merged


def test_channels_are_merged_again() -> None:
    """After a write to one channel, later multicast lines find it like the others."""
    trace = parse_trace(lines("W MEM 3 5 1", *dot_products(7, 8, 8, ALL), "AiM SYNC"))
    groups = Groups.of(Timing.of(load_preset(), "head"), logged=False, merging=True)
    LineHost(groups).run(trace)

    assert [ALL] == [controller.mask for controller in groups.controllers]
    assert 1 == groups.pasts[3].counts[0] - groups.pasts[4].counts[0]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(200, 206))
def test_timed_commands_are_those_counted(seed: int, variant: str, host: str) -> None:
    """Each command has its cycle, in order, none beyond the end."""
    result = simulate(random_trace(seed), variant=variant, host=host, timed=True)
    assert result.timed is not None
    counts: Counter[tuple[int, str]] = Counter()
    for entry in result.timed:
        counts[entry.channel, entry.command.name] += entry.times
        assert 0 < entry.cycle + entry.stride * (entry.times - 1) <= result.cycles

    assert sorted(result.timed) == list(result.timed)
    assert counts == {
        (channel, name): number
        for channel, found in result.commands.items()
        for name, number in found.items()
    }


def test_lines_of_commands() -> None:
    """A timed command knows the instruction that it serves."""
    result = simulate(lines(*dot_products(1, 8, 8, 1)), timed=True)
    assert result.timed is not None

    assert [
        ("TMOD", 0),
        ("WRGB", 0),
        ("WRMAC16", 1),
        ("TMOD", 2),
        ("ACT16", 2),
        ("MAC16", 2),
        ("TMOD", 3),
        ("RDMAC16", 3),
    ] == [(entry.command.name, entry.line) for entry in result.timed]


def test_three_ways_to_give_a_trace(tmp_path: Path) -> None:
    """A path, a text, or instructions, which need not end in EOC."""
    text = lines(*dot_products(1, 8, 8, 1))
    path = tmp_path / "a.trace"
    path.write_text(text)
    trace = parse_trace(text)
    expected = simulate(path)

    assert expected == simulate(str(path))
    assert expected == simulate(text)
    assert expected == simulate(trace)
    assert expected == simulate(trace[:-1])
    assert expected == simulate([*trace, Instruction(Opcode.SYNC)])
    assert {"WR_GB": 1, "WR_BIAS": 1, "MAC_ABK": 1, "RD_MAC": 1, "EOC": 1} == (
        expected.lines
    )


def test_every_channel_has_its_time() -> None:
    """Active and precharged cycles add up to the run, for idle channels too."""
    result = simulate(lines(*dot_products(1, 8, 8, mask_of([4]))))

    assert list(range(32)) == list(result.active_cycles)
    for channel in range(32):
        active = result.active_cycles[channel]
        assert result.cycles == active + result.precharged_cycles[channel]
    assert [4] == list(result.commands)


def test_timing_can_be_overridden() -> None:
    """Without the delay of its three mode switches a row takes 97 cycles, not 190."""
    trace = lines(*dot_products(1, 8, 8, 1))

    assert 190 == simulate(trace).cycles
    assert 97 == simulate(trace, timing={"nMODCH": 0}).cycles


def test_unknown_host() -> None:
    """It is refused with the known ones."""
    with pytest.raises(DeviceConfigError) as caught:
        simulate(lines(), host="line")

    assert ("host", "line") == (caught.value.parameter, caught.value.value)


def test_rows_closed_for_ever() -> None:
    """With such a tRAS, MACs and an activated write close each other's row."""
    trace = lines("W MEM 0 0 1", "AiM MAC_ABK 1 0x80000000 2")
    assert 160 == simulate(trace).cycles

    with pytest.raises(StalledTraceError) as caught:
        simulate(trace, timing={"nRAS": 1})
    assert (1, 0) == (caught.value.line, caught.value.channel)


def test_a_trace_that_never_ends() -> None:
    """A row taken from an activated request, and no PRE that would give it back."""
    groups = Groups.of(Timing.of(load_preset(), "head"), logged=False, merging=True)
    controller: Controller = groups.select(mask_of([3]))[0]
    controller.active.append((1, 0, 7, 3, 4))
    controller.rows[0] = 8
    controller.contested = True

    with pytest.raises(StalledTraceError) as caught:
        controller.sync(10, 5)
    assert (5, 3) == (caught.value.line, caught.value.channel)
    controller.writes.extend([(9, 0, 9, 3, 4)] * 33)
    with pytest.raises(StalledTraceError):
        controller.write(0, 9, 10, 6)
