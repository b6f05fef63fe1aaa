"""`python -m fuzz` given what makes no sense: refused in one line, before any work."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from fuzz import __main__ as command_line
from fuzz import campaign
from fuzz.__main__ import main
from fuzz.bugs import catalogue
from fuzz.files import REGRESSIONS, Recorded, UnreadableError
from fuzz.processes import processes
from fuzz.targets import TARGETS, Outcome

WRONG_OPTIONS = [
    *("volume --jobs 0", "volume --steps 0", "volume --steps -5", "volume --steps x"),
    *("situations --steps 0", "situations --least -1", "bugs --jobs 0"),
    *("machine --examples 0", "exhaust --depth 0", "exhaust --depth -1"),
    *("smoke --seconds 0", "smoke --seconds x", "campaign --minutes nan"),
    *("campaign --minutes inf", "campaign --minutes -1", "campaign --jobs 0"),
]


@pytest.mark.parametrize("line", WRONG_OPTIONS)
def test_a_number_that_makes_no_sense_is_refused(
    line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(line.split())

    assert 2 == end.value.code
    assert re.search("accepted: a (whole )?number", capsys.readouterr().err)


def test_to_hunt_no_bug_at_all_is_no_success(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert 1 == main(["bugs", "--only", "no such name"])
    assert "'no such name'" in capsys.readouterr().out


def test_more_processes_than_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["machine", "--examples", "1", "--jobs", "2"])
    assert "of those drawn" in capsys.readouterr().out


def test_a_failure_of_the_machine_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_line, "REGRESSIONS", tmp_path)
    with catalogue()["the Commit Zone is passed by"].planted():
        assert 1 == main(["machine", "--examples", "5"])
        (path,) = tmp_path.glob("machine-LIFE-DIRECT-*.jsonl")
        assert 1 == main(["replay", str(path)])
    assert 0 == main(["replay", str(path)])


# --- files ----------------------------------------------------------------------------

GOOD = (REGRESSIONS / "planted-CMD-COMMIT.jsonl").read_text().splitlines()
WATCH = '"watch":{"level":"everything","device":true}'
DAMAGED = {
    "empty": [],
    "no JSON": ["# Regressions"],
    "no header": ["[]", *GOOD[1:]],
    "of no runtime": [GOOD[0].replace('"channels":6', '"channels":0')],
    "unwatched": [GOOD[0].replace(WATCH, '"watch":{}')],
    "of no level": [GOOD[0].replace('"everything"', '"somewhat"')],
    "of no device": [GOOD[0].replace('"device":true', '"device":7')],
    "no event": [GOOD[0], "[]"],
    "an event that there is not": [GOOD[0], '["snapshot"]'],
    "an event cut short": [GOOD[0], '["bind",1]'],
    "no step": [GOOD[0], '["step",[]]'],
    "a write cut short": [GOOD[0], '["step",{"writes":[[1,0]]}]'],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_file_is_told_from_a_failure(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "damaged.jsonl"
    path.write_text("\n".join(DAMAGED[name]))
    with pytest.raises(UnreadableError, match=r"damaged.jsonl.*accepted"):
        Recorded.read(path)

    assert 2 == main(["replay", str(path)])
    assert "damaged.jsonl" in capsys.readouterr().out


@pytest.mark.parametrize("text", ['{"seed":1}\n{"se', "[]\n", '{"seed":"x"}\n'])
def test_a_damaged_ledger_is_told(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = tmp_path / "ledger.jsonl"
    ledger.write_text(text)

    assert 2 == main(["campaign", "--minutes", "0.01", "--ledger", str(ledger)])
    assert "ledger.jsonl" in capsys.readouterr().out
    assert text == ledger.read_text()


# --- campaigns ------------------------------------------------------------------------


def rows(ledger: Path) -> list[Any]:
    """What a ledger has."""
    return [json.loads(line) for line in ledger.read_text().splitlines()]


def test_two_campaigns_do_not_write_one_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would do the same seeds."""
    ledger = tmp_path / "ledger.jsonl"
    arguments = ["campaign", "--minutes", "0.01", "--ledger", str(ledger)]
    inner: list[int] = []

    def touched(number: int, _seconds: float) -> Outcome:
        inner.append(main([*arguments, "--target", "maps"]))
        return Outcome("touched", number, 1, 0.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TARGETS, "touched", touched)
        patch.setattr(campaign, "local", lambda work, _: map(campaign.work, work))
        patch.setattr(campaign, "_until", lambda _, work: [next(iter(work))])
        assert 0 == main([*arguments, "--target", "touched"])

    assert [2] == inner
    assert "another campaign" in capsys.readouterr().out
    assert ["touched"] == [row["target"] for row in rows(ledger)]


def test_a_target_named_twice_is_run_once(tmp_path: Path) -> None:
    """For each seed; else the same would be done again."""
    ledger = tmp_path / "ledger.jsonl"
    arguments = ["campaign", "--minutes", "0.01", "--ledger", str(ledger)]

    assert 0 == main([*arguments, "--target", "maps", "--target", "maps"])
    seeds = [row["seed"] for row in rows(ledger)]
    assert sorted({*seeds}) == seeds


def test_an_interrupted_campaign_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> Iterator[Outcome]:
        yield Outcome("maps", 0, 7, 0.0)
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign, "local", interrupted)
    ledger = tmp_path / "ledger.jsonl"

    assert 130 == main(["campaign", "--minutes", "0.01", "--ledger", str(ledger)])
    assert "7 steps, 0 failures" in capsys.readouterr().out
    assert [7] == [row["steps"] for row in rows(ledger)]


def test_an_interruption_does_not_wait_for_pieces_under_way() -> None:
    with processes(1) as pool:
        worker = pool.submit(os.getpid).result()
        piece = pool.submit(sleep, 60)
        os.kill(worker, signal.SIGINT)
        with pytest.raises(BrokenProcessPool):
            piece.result(timeout=30)
