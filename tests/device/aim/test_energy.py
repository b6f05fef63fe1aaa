"""Energy: the published figures, the corrected flaws, and that nothing is lost."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from patton.device.aim import (
    AimResult,
    energy_by_command,
    energy_by_label,
    energy_pj,
    simulate,
    to_json,
)
from patton.device.aim.energy import (
    PUBLISHED_COMPONENTS,
    load_energy_model,
    published_standby,
)
from patton.device.aim.presets import data_text
from patton.errors import DeviceConfigError
from tests.device.aim.traces import random_trace

BIAS, READ = "AiM WR_BIAS 0 0x80000000\n", "AiM RD_MAC 0 0x80000000\n"
LOAD = "AiM WR_GB 64 0 0x80000000\n"
CONTINUOUS = f"{LOAD}{BIAS}AiM MAC_ABK 64 0x80000000 1\n{READ}AiM EOC\n"
FRAGMENTED = LOAD + f"{BIAS}AiM MAC_ABK 8 0x80000000 1\n{READ}" * 8 + "AiM EOC\n"


def of_channel(text: str) -> dict[str, float]:
    return load_energy_model().of_channel(simulate(text), 0)


def test_microbenchmark_of_the_paper() -> None:
    """Continuous against fragmented MACs: 1.34 times the energy, part by part."""
    model = load_energy_model()
    expected = {
        "ACT": (47205.6, 47205.6),
        "PIM": (84124.8, 84124.8),
        "RD": (547.7, 4381.5),
        "WR": (691.4, 5531.5),
        "DQ": (92928.0, 112640.0),
    }
    continuous, fragmented = of_channel(CONTINUOUS), of_channel(FRAGMENTED)

    for name, (first, second) in expected.items():
        assert first == pytest.approx(continuous[name], abs=0.06), name
        assert second == pytest.approx(fragmented[name], abs=0.06), name
    totals = [
        sum(energy[name] for name in PUBLISHED_COMPONENTS)
        for energy in (continuous, fragmented)
    ]
    assert [272315.9, 365320.5] == [pytest.approx(total, abs=0.1) for total in totals]
    assert 1.34 == pytest.approx(totals[1] / totals[0], abs=0.005)
    controller = [
        t + e["MEM_CTR"] for t, e in zip(totals, (continuous, fragmented), strict=True)
    ]
    assert 1.329 == pytest.approx(controller[1] / controller[0], abs=0.0005)
    assert set(PUBLISHED_COMPONENTS) < set(model.components)


@pytest.mark.parametrize(
    ("command", "component", "expected"),
    [
        ("ACT", "ACT", 2950.35),
        ("ACT16", "ACT", 47205.6),
        ("RD", "RD", 547.69),
        ("AF16", "RD", 8763.0),
        ("WR", "WR", 691.44),
        ("WRA16", "WR", 11063.0),
        ("MAC16", "PIM", 1314.45),
        ("MAC", "PIM", 82.15),
        ("EWMUL16", "PIM", 328.61),
        ("WRGB", "DQ", 1408.0),
        ("WRGB", "GB_WR", 0.163),
        ("WRCP", "GB_RD", 0.139),
        ("MAC16", "MEM_CTR", 66.93 + 95.26),
        ("TMOD", "MEM_CTR", 95.26),
        ("REFab", "REF", 47205.6),
    ],
)
def test_constants(command: str, component: str, expected: float) -> None:
    """What one command is charged, in pJ."""
    energy = load_energy_model().of_command(command)

    assert expected == pytest.approx(energy[component], rel=1e-4, abs=0.001)


def test_free_commands() -> None:
    """PRE is paid with its ACT; a WRGB writes no bank."""
    model = load_energy_model()

    assert {"MEM_CTR"} == model.of_command("PRE").keys()
    assert {"DQ", "GB_WR", "MEM_CTR"} == model.of_command("WRGB").keys()


def test_standby_by_state_and_channel() -> None:
    """263.75 mW with a row open, 183.15 mW without, each channel by its own cycles."""
    result = simulate(CONTINUOUS)
    model = load_energy_model()

    assert (221, 193) == (result.active_cycles[0], result.precharged_cycles[0])
    assert 221 * 0.5 * 263.75 == model.of_standby(result, 0)["ACT_STBY"]
    assert 193 * 0.5 * 183.15 == model.of_standby(result, 0)["PRE_STBY"]
    assert 0 == model.of_standby(result, 1)["ACT_STBY"]
    assert 414 * 0.5 * 183.15 == model.of_standby(result, 1)["PRE_STBY"]


def test_flaw_of_the_published_standby() -> None:
    """Its terms are 32 times too small; ours can be compared with them."""
    result = simulate(CONTINUOUS)
    energy = energy_pj(result)

    assert {
        "ACT_STBY": energy["ACT_STBY"] / 32,
        "PRE_STBY": energy["PRE_STBY"] / 32,
    } == published_standby(result)


def whole(result: AimResult) -> float:
    return math.fsum(energy_pj(result).values())


@pytest.mark.parametrize("variant", ["head", "pin", "physical"])
@pytest.mark.parametrize("seed", range(400, 404))
def test_breakdowns_add_up(seed: int, variant: str) -> None:
    """By channel, command and label, nothing is lost and nothing counted twice."""
    result = simulate(random_trace(seed), variant=variant, timed=True)
    model = load_energy_model()
    channels = [model.of_channel(result, channel) for channel in range(32)]
    labels = energy_by_label(result, lambda line: f"request {line % 3}")
    standby = [model.of_standby(result, channel) for channel in range(32)]
    commands = math.fsum(energy_by_command(result).values())

    for parts in (channels, list(labels.values())):
        total = math.fsum(e for part in parts for e in part.values())
        assert whole(result) == pytest.approx(total)
    static = math.fsum(e for part in standby for e in part.values())
    assert whole(result) == pytest.approx(commands + static)


def test_labels_own_their_commands() -> None:
    """The activation of a row belongs to the line that needed it."""
    result = simulate(CONTINUOUS, timed=True)
    phases = ("load", "bias", "mac", "read")
    energy = energy_by_label(
        result, lambda line: phases[line] if 0 <= line < 4 else "rest"
    )

    assert {*phases, "rest"} == energy.keys()
    assert 47205.6 == pytest.approx(energy["mac"]["ACT"])
    assert "ACT" not in energy["read"]
    assert 64 * 1408.0 == energy["load"]["DQ"]
    assert {"ACT_STBY", "PRE_STBY", "GB_STT"} == energy["rest"].keys()


def test_labels_need_timed_commands() -> None:
    """Without them nobody knows which line a command serves."""
    with pytest.raises(DeviceConfigError):
        energy_by_label(simulate(CONTINUOUS), str)


def test_json() -> None:
    """The object that the command line prints: text keys, no zero counts."""
    found = to_json("p.trace", simulate(CONTINUOUS))

    assert ["trace", "cycles", "commands", "active_cycles", "precharged_cycles"] == (
        list(found)[:5]
    )
    assert ("p.trace", 414) == (found["trace"], found["cycles"])
    assert {
        "0": {
            "ACT16": 1,
            "MAC16": 64,
            "WRGB": 64,
            "RDMAC16": 1,
            "WRMAC16": 1,
            "TMOD": 3,
        }
    } == found["commands"]
    assert (221, 0) == (found["active_cycles"]["0"], found["active_cycles"]["31"])
    assert (193, 414) == (
        found["precharged_cycles"]["0"],
        found["precharged_cycles"]["31"],
    )
    assert load_energy_model().components == tuple(found["energy_pj"])


def test_a_model_from_a_file(tmp_path: Path) -> None:
    """Other figures are a file in the same form."""
    path = tmp_path / "mine.toml"
    text = data_text("energy_cent.toml")
    path.write_text(text.replace("power_mw = 66.3", "power_mw = 132.6"), "utf-8")

    assert 2 * 2950.35 == load_energy_model(path).of_command("ACT")["ACT"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("ACT = 1, ACT16", "ACX = 1, ACT16"),
        ('while = "always"', 'while = "sometimes"'),
        ("pj_per_bit", "pj_per_byte"),
        ("[[charge]]", "[[charge"),
    ],
)
def test_files_that_are_no_models(tmp_path: Path, old: str, new: str) -> None:
    """They are refused with the file's name."""
    path = tmp_path / "bad.toml"
    path.write_text(data_text("energy_cent.toml").replace(old, new), "utf-8")

    with pytest.raises(DeviceConfigError) as caught:
        load_energy_model(path)
    assert str(path) == caught.value.source
