from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import z3

from proofs.__main__ import main
from proofs.lemmas import LEMMAS
from proofs.solver import Answer
from proofs.swaps import swapped

ROOT = Path(__file__).parents[2]
ONE = ["--only", "key_comes_back", "--jobs", "1"]


def test_table_names_theorem_clause_cost_and_result(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line a theorem, and a summary."""
    assert 0 == main(ONE)

    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("key_comes_back"))
    assert "MAP-INVERSE" in row
    assert "proved (24 obligations, 2 bugs seen)" in row
    assert "all proved" in lines[-1]


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing else goes to standard output."""
    assert 0 == main([*ONE, "--json"])

    report = json.loads(capsys.readouterr().out)
    (theorem,) = report.pop("theorems")
    seconds = theorem.pop("seconds")
    assert {"proved": True} == report
    assert 0 < seconds < 60
    assert theorem == {
        "name": "key_comes_back",
        "clause": "MAP-INVERSE",
        "status": "proved",
        "obligations": 24,
        "planted_bugs_refuted": 2,
    }


def test_a_refuted_theorem_ends_with_status_1(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With its counterexample below its line."""
    with swapped("addresses.key_address", "token % m.banks", "token % m.lanes"):
        assert 1 == main(ONE)

    told = capsys.readouterr().out
    assert "REFUTED" in told
    assert "not true: the token comes back" in told
    assert "NOT ALL PROVED" in told


def test_nothing_proved_is_not_all_proved() -> None:
    """A name that no theorem has is no success."""
    with pytest.raises(SystemExit, match="2"):
        main(["--only", "no such theorem", "--jobs", "1"])


def test_dumped_files_are_decided_again(tmp_path: Path) -> None:
    """Each file alone has no model, and says which claim it is."""
    assert 0 == main([*ONE, "--dump", str(tmp_path), "--seeds", "2"])

    files = sorted(tmp_path.glob("*.smt2"))
    names = [path.name.partition(".")[0] for path in files]
    assert 6 == names.count("key_comes_back")  # five claims, and what operators owe
    assert len(LEMMAS) == names.count("lemma")
    assert len(files) == 6 + len(LEMMAS)
    for path in files:
        text = path.read_text(encoding="utf-8")
        solver = z3.Solver()
        solver.from_string(text)
        assert text.startswith("; ")
        assert z3.unsat == solver.check()


def test_the_command_counts_what_the_texts_say() -> None:
    """The theorem whose ways depend most on what a solver has seen before."""
    name = "geometries_are_accepted"
    command = [sys.executable, "-m", "proofs", "--only", name, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    (found,) = json.loads(done.stdout)["theorems"]
    said = json.loads((ROOT / "docs" / "assurance.json").read_text("utf-8"))
    (expected,) = [t for t in said["theorems"] if t["name"] == name]

    assert expected["obligations"] == found["obligations"]


def test_a_second_solver_that_is_missing_is_named_before_anything_is_proved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what brings it."""
    monkeypatch.setattr("proofs.__main__.find_spec", lambda _: None)
    with pytest.raises(SystemExit, match="2"):
        main([*ONE, "--cross"])
    assert "needs cvc5: pip install -e '.[cross]'" in capsys.readouterr().err


@pytest.mark.skipif(find_spec("cvc5") is None, reason="needs the extra cross")
def test_a_second_solver_agrees(capsys: pytest.CaptureFixture[str]) -> None:
    """The same questions, another program; its table follows the first one's."""
    assert 0 == main([*ONE, "--cross"])

    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    counts = next(row[1:6] for row in rows if row and row[0] == "all")
    assert [str(6 + len(LEMMAS))] * 2 + ["0", "0", "0"] == counts


@pytest.mark.skipif(find_spec("cvc5") is None, reason="needs the extra cross")
def test_without_agreement_nothing_is_proved(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A second solver that does not know is a failure."""
    from proofs import cross  # noqa: PLC0415

    def at_a_loss(_text: str, _seed: int) -> Answer:
        return Answer("unknown", 0.0)

    monkeypatch.setitem(cross.SOLVERS, "cvc5", at_a_loss)

    assert 1 == main([*ONE, "--cross", "--json"])
    assert json.loads(capsys.readouterr().out)["proved"] is False
