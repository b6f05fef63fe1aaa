"""`patton run --schedule`: the same outputs in fewer cycles."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("click")

from click.testing import CliRunner

from patton.cli.main import main


def results(*words: str) -> Any:
    """The JSON of a run that succeeds."""
    done = CliRunner().invoke(main, ["run", "--json", *words])
    assert done.exit_code == 0, done.output
    return json.loads(done.output)


def test_the_best_schedule_takes_fewer_cycles_for_the_same_outputs() -> None:
    """Every output stays equal to the reference; scores cost less."""
    words = ("--steps", "12", "--variant", "pin", "--schedule")
    paper, best = results(*words, "paper"), results(*words, "best")

    assert paper["bit_exact"]
    assert best["bit_exact"]
    assert best["cycles"]["qk"] < paper["cycles"]["qk"]
