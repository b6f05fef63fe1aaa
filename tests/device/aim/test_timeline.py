"""Pictures of timed runs: valid, complete, without overlaps, the same every time."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from patton.device.aim import Command, simulate
from patton.device.aim.timeline import COLOURS, SECTIONS_PROCESS, write_timeline
from patton.errors import DeviceConfigError
from tests.device.aim.traces import random_trace


def events(path: Path, *seeds: int, variant: str = "head") -> list[dict[str, Any]]:
    """The events of random traces, one after the other."""
    runs = [simulate(random_trace(s), variant=variant, timed=True) for s in seeds]
    count = write_timeline(path, [(f"run {i}", run) for i, run in enumerate(runs)])
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    assert count == len(found)
    return found


@pytest.mark.parametrize("variant", ["head", "pin", "physical"])
@pytest.mark.parametrize("seed", range(6))
def test_every_command_is_drawn(tmp_path: Path, seed: int, variant: str) -> None:
    """As often as it was issued, by channel, with a colour and a known place."""
    found = events(tmp_path / "t.json", seed, variant=variant)
    result = simulate(random_trace(seed), variant=variant)
    drawn: Counter[tuple[int, str]] = Counter()
    for event in found:
        if event["ph"] == "X" and event["pid"] != SECTIONS_PROCESS:
            drawn[event["pid"], event["name"]] += event["args"].get("times", 1)
            assert COLOURS[event["name"]] == event["cname"]
            assert event["ts"] >= 0
            assert 0 <= event["tid"] <= 16

    expected = {(c, n): k for c, own in result.commands.items() for n, k in own.items()}
    assert expected == dict(drawn)


@pytest.mark.parametrize("seed", range(6))
def test_slices_of_a_track_do_not_overlap(tmp_path: Path, seed: int) -> None:
    """A viewer would nest or drop them; sections follow one another, too."""
    tracks: dict[tuple[int, int], float] = {}
    for event in events(tmp_path / "t.json", seed, seed + 100):
        if event["ph"] == "X":
            track = event["pid"], event["tid"]
            assert event["ts"] >= tracks.get(track, 0) - 1e-9
            assert event["dur"] > 0
            tracks[track] = event["ts"] + event["dur"]


def test_tracks_have_names(tmp_path: Path) -> None:
    """Channels are processes, banks are threads, each named once."""
    found = events(tmp_path / "t.json", 3)
    used = {(e["pid"], e["tid"]) for e in found if e["ph"] == "X"}
    named = [(e["pid"], e["tid"]) for e in found if e["name"] == "thread_name"]

    assert sorted(used) == sorted(named)
    assert {"M", "X"} == {event["ph"] for event in found}


def test_the_text_is_the_same_every_time(tmp_path: Path) -> None:
    for name in ("a.json", "b.json"):
        events(tmp_path / name, 1, 2)

    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


def test_untimed_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DeviceConfigError, match="timed=True"):
        write_timeline(tmp_path / "t.json", [("x", simulate(random_trace(1)))])


def test_every_command_has_a_colour() -> None:
    assert {command.name for command in Command} == COLOURS.keys()
