"""Theorems about the machine: about the text that runs, and heard when they fail."""

from __future__ import annotations

import re

import attrs
import pytest
import z3

from proofs import spec_mutants
from proofs.check import check, is_proved
from proofs.finite_scope import Few
from proofs.logic import Unbounded
from proofs.spec_mutants import all_mutants, fate, sampled
from proofs.swaps import swapped
from proofs.theorem import Theorem
from proofs.theorems import THEOREMS, commits, events, lock_step, words
from spec.clauses import SPEC, clauses
from spec.machine import TRANSITIONS

BY_NAME = {theorem.name: theorem for theorem in events.THEOREMS}


def about(name: str) -> Theorem:
    """The theorem about one kind of event."""
    return BY_NAME[events.PLANTED[name][0]]


def test_there_is_a_theorem_for_every_kind_of_event() -> None:
    assert set(TRANSITIONS) == set(events.PLANTED)
    assert len(TRANSITIONS) + 1 == len(events.THEOREMS)
    known = {clause.id for clause in clauses(SPEC.read_text(encoding="utf-8"))}
    assert {theorem.clause for theorem in events.THEOREMS} <= known


def test_every_clause_about_commands_has_a_theorem() -> None:
    """And so has isolation."""
    known = {clause.id for clause in clauses(SPEC.read_text(encoding="utf-8"))}
    about_commands = {name for name in known if name.startswith("CMD-")}

    assert {*about_commands, "DEV-ALONE"} <= {theorem.clause for theorem in THEOREMS}


@pytest.mark.parametrize("name", ["end", "write_on", "copy"])
def test_an_event_is_proved_with_witness_and_bugs(name: str) -> None:
    result = check(about(name))

    assert "proved" == result.status, result.details
    assert len(about(name).planted) == result.bugs_refuted
    assert result.obligations > 100


@pytest.mark.parametrize(
    "theorem",
    [
        *(theorem for theorem in THEOREMS if theorem.kind == "induction"),
        *(*commits.THEOREMS, *words.THEOREMS),
    ],
    ids=lambda theorem: theorem.name,
)
def test_inductions_and_words_are_proved(theorem: Theorem) -> None:
    result = check(theorem)

    assert "proved" == result.status, result.details
    assert len(theorem.planted) == result.bugs_refuted > 1


def test_a_counterexample_is_told_in_words() -> None:
    with swapped(
        "spec.machine.publish", "s.slot_used.remove(s.slot(b))", "s.slot_used"
    ):
        result = check(attrs.evolve(about("publish"), planted=()))

    told = "\n".join(result.details)
    assert "refuted" == result.status
    assert "not true: INV-SLOT, 4: still holds" in told
    # Which block it is depends on what the solver was asked before.
    assert re.search(r"^  in_slot\(block \d\)$", told, re.MULTILINE)
    assert re.search(r"block \(\d\) = block", told)


def test_without_one_index_the_caches_come_apart() -> None:
    """The paper's equal sizes are not enough (`tests/spec/test_lock_step.py`)."""
    (theorem,) = lock_step.THEOREMS

    assert not is_proved(theorem, theorem.planted[0], rlimit=2_000_000)


def test_a_formula_inside_another_one_captures_nothing() -> None:
    lg = Unbounded()
    claim = lg.exists("r", lambda q: lg.forall("r", lambda r: lg.eq(q, r)))
    solver = z3.Solver()
    solver.add(claim, lg.arguments("rr")[0] != lg.arguments("rr")[1])

    assert z3.unsat == solver.check()


def test_few_things_are_all_there_is() -> None:
    lg = Few()
    (r,) = lg.arguments("r")
    solver = z3.Solver()
    solver.add(lg.forall("r", lambda q: lg.not_(lg.eq(q, r))))

    assert z3.unsat == solver.check()


def test_mutants_of_the_machine_are_rejected() -> None:
    mutants = sampled(8)
    fates = {mutant.says: fate(mutant) for mutant in mutants}

    assert len({mutant.says for mutant in all_mutants()}) == len(list(all_mutants()))
    assert len(list(all_mutants())) >= 300
    assert {"rejected"} == set(fates.values()), fates


@pytest.mark.parametrize("result", ["rejected", "ACCEPTED", "no formula"])
def test_only_rejection_of_all_mutants_is_a_success(
    result: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spec_mutants, "fate", lambda _: result)

    status = spec_mutants.main(["--count", "2", "--jobs", "1"])
    assert (result != "rejected") == status
    told = capsys.readouterr().out
    assert f"2 mutants: 2 {result}" in told
    assert (result != "rejected") == (f"{result}: holds" in told)
