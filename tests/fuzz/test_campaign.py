"""The commands: smoke, campaigns and their ledger, replay, tiers in processes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuzz import __main__ as command_line
from fuzz import campaign
from fuzz.__main__ import main
from fuzz.bugs import NOTHING, catalogue
from fuzz.targets import TARGETS, touched


def test_all_targets_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", "--seconds", "0.1"]) == 0
    told = capsys.readouterr().out
    assert all(name in told for name in TARGETS)
    assert "canary       found" in told


def test_a_campaign_goes_on_where_the_ledger_ends(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    for _ in range(2):
        arguments = ["campaign", "--minutes", "0.01", "--ledger", str(ledger)]
        assert main([*arguments, "--target", "touched"]) == 0
    rows = [json.loads(line) for line in ledger.read_text().splitlines()]
    seeds = [row["seed"] for row in rows]

    assert sorted({*seeds}) == seeds
    assert all(row["steps"] > 10 and row["failure"] is None for row in rows)
    assert campaign.next_seed(ledger) == seeds[-1] + 1


def test_a_failure_of_a_target_is_kept(tmp_path: Path) -> None:
    with catalogue()["the Commit Zone is passed by"].planted():
        outcome = touched(0, 20.0)
        path = outcome.save(tmp_path)
        assert path is not None
        assert main(["replay", str(path)]) == 1
    assert main(["replay", str(path)]) == 0
    found = outcome.row()["failure"]
    assert found["clause"] == "LIFE-DIRECT"
    assert touched(0, 0.1).save(tmp_path) is None


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("command", ["volume", "situations"])
def test_a_command_says_what_it_did(
    command: str, jobs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    least = ["--least", "0"] if command == "situations" else []
    options = ["--steps", "300", "--seed", "3", "--jobs", jobs]
    assert main([command, *options, *least]) == 0
    told = capsys.readouterr().out
    assert "seed 3" in told
    assert "0 failures" in told


def test_situations_that_are_too_few_fail(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["situations", "--steps", "300"]) == 1
    assert "TOO FEW" in capsys.readouterr().out


def test_bugs_are_hunted_in_several_processes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One that changes nothing survives, another is caught."""
    for only in (NOTHING, "QK forgets"):
        assert main(["bugs", "--only", only, "--jobs", "2"]) == 0
    told = capsys.readouterr().out
    assert "survived nothing at all" in told
    assert "caught   QK forgets" in told


def test_the_machine_runs_in_several_processes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["machine", "--examples", "4", "--jobs", "2"]) == 0
    assert "of those drawn" in capsys.readouterr().out


def test_a_failure_of_the_driver_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "REGRESSIONS", tmp_path)
    with catalogue()["the Commit Zone is passed by"].planted():
        assert main(["volume", "--steps", "2000"]) == 1
    (path,) = tmp_path.glob("*.jsonl")
    assert main(["replay", str(path)]) == 0


def test_a_file_that_is_not_there_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """In one line, with a status of its own."""
    assert 2 == main(["replay", "absent.jsonl"])
    assert "absent.jsonl" in capsys.readouterr().out
