"""`patton run` with cycles and energy: what it counts, draws and refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from patton.device.aim.costs import Target, stream_cost
from patton.device.aim.energy import load_energy_model
from patton.events import replay
from patton.generate import generate_step

Command = Callable[..., Result]
SHORT = ("--steps", 6, "--check", "placement")
PHASES = {"key_write", "value_write", "qk", "sv", "partial"}


def results(done: Result) -> dict[str, Any]:
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_cycles_and_energy_by_phase(patton: Command, tmp_path: Path) -> None:
    """Those of every stream of the log, times the layers of the model."""
    log = tmp_path / "events.jsonl"
    found = results(patton("run", *SHORT, "--cycles", "--json", "--record", log))
    cycles: dict[str, int] = {}
    act_pj: dict[str, float] = {}
    for event in replay(log):
        for stream in generate_step(event.plan.place()).present() if event.plan else ():
            phase = stream.phase.value.replace("-", "_")
            cost = stream_cost(stream, Target(channels=4))
            cycles[phase] = cycles.get(phase, 0) + 2 * cost.cycles
            act_pj[phase] = act_pj.get(phase, 0) + 2 * cost.energy_pj["ACT"]

    assert PHASES <= cycles.keys()
    assert cycles == found["cycles"]
    components = set(load_energy_model().components)
    assert all(components == set(parts) for parts in found["energy_pj"].values())
    assert act_pj == pytest.approx({p: e["ACT"] for p, e in found["energy_pj"].items()})


def test_the_mac_bound_and_what_is_lost(patton: Command) -> None:
    """MACs are a part of the cycles; reasons account for all of them."""
    found = results(patton("run", *SHORT, "--variant", "pin", "--json"))

    assert {"qk", "sv", "partial"} == found["mac_bound"].keys()
    for phase, fraction in found["mac_bound"].items():
        spent = found["cycles_spent"][phase]
        assert 0 < fraction < 1
        assert found["cycles"][phase] <= sum(spent.values())
        assert spent["mode_switches"] > spent["macs"]


def test_nothing_is_counted_unless_asked(patton: Command) -> None:
    found = results(patton("run", *SHORT, "--json"))

    for name in ("cycles", "energy_pj", "mac_bound", "cycles_spent"):
        assert found[name] is None


def test_variants_and_operands(patton: Command) -> None:
    """Pin never writes faster than head; with one head both ways are the same."""
    head = results(patton("run", *SHORT, "--cycles", "--json"))["cycles"]
    split = results(patton("run", *SHORT, "--cycles", "--operands", "split", "--json"))
    pin = results(patton("run", *SHORT, "--variant", "pin", "--json"))["cycles"]

    assert head["qk"] == split["cycles"]["qk"] == pin["qk"]
    assert head["value_write"] <= split["cycles"]["value_write"]
    assert head["value_write"] <= pin["value_write"]


def test_a_timeline_of_the_last_steps(patton: Command, tmp_path: Path) -> None:
    """Sections are named by step and phase; the file is the same every time."""
    texts = []
    for name in ("a.json", "b.json"):
        path = tmp_path / name
        words = ("--timeline", path, "--timeline-steps", 2)
        assert 0 == patton("run", *SHORT, *words).exit_code
        texts.append(path.read_text())

    assert texts[0] == texts[1]
    events = json.loads(texts[0])["traceEvents"]
    names = [e["name"] for e in events if e["pid"] == 1000 and e["ph"] == "X"]
    assert {"4", "5"} == {name.split()[1] for name in names}
    assert {"qk", "sv", "key-write"} <= {name.split()[2] for name in names}


def test_in_words(patton: Command) -> None:
    done = patton("run", *SHORT, "--cycles")

    assert "qk: cycles, energy" in done.stdout
    assert "share of the MAC bound" in done.stdout
    assert "mode switches" in done.stdout


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--check", "lifecycle", "--cycles"], "streams to time"),
        (
            ["--device", "lpddr5", "--model", "llama3-8b", "--cycles"],
            "device is 'lpddr5'",
        ),
        (["--timeline", "none/there.json"], "No such file"),
    ],
)
def test_refusals(patton: Command, words: list[str], problem: str) -> None:
    """Before anything is served."""
    done = patton("run", "--steps", 1000, *words)

    assert 2 == done.exit_code
    assert problem in done.stderr
    assert 1 == len(done.stderr.splitlines())
