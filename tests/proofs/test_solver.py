from __future__ import annotations

import pytest
import z3

from proofs import solver
from proofs.solver import Answer, Goal, ask, decide

X, Y = z3.Ints("x y")


def test_a_goal_is_proved_refuted_or_unknown() -> None:
    """Three answers; a counterexample has the values of what is unknown."""
    assert "proved" == ask(Goal("", [X > 1], X > 0).question).status
    refuted = ask(Goal("", [X > 1], X > 2).question)
    assert ("refuted", {"x": 2}) == (refuted.status, dict(refuted.values))
    hard = Goal("", [X > 1, Y > 1], X * X * X != Y * Y * Y + 7)
    assert "unknown" == ask(hard.question, rlimit=100).status


def test_the_cost_does_not_depend_on_what_was_asked_before() -> None:
    """The same question costs the same steps, so that budgets mean something."""
    text = Goal("", [X > 1, Y > X], Y > 2).question
    first = ask(text).rlimit
    ask(Goal("", [], X * Y == Y * X).question)

    assert first == ask(text).rlimit


def test_a_lean_goal_has_only_what_is_needed() -> None:
    """Premises without which it is proved are gone; what fails keeps them all."""
    goal = Goal("", [X > 1, Y > 5, X < 9], X > 0)

    assert [X > 1] == goal.lean().premises
    failing = goal._replace(claim=Y > X)
    assert failing.premises == failing.lean().premises


def test_what_is_too_much_at_once_is_decided_part_by_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only if all parts are proved is the whole."""

    def weak(text: str, seed: int = 0) -> Answer:
        return Answer("unknown", 0.0) if "(and" in text else ask(text, seed)

    monkeypatch.setattr(solver, "ask", weak)

    both = Goal("", [X > 3], z3.And(X > 1, X > 2))
    assert "proved" == decide(both).status
    assert "refuted" == decide(both._replace(claim=z3.And(X > 1, X > 7))).status
    alone = Goal("", [X > 3], z3.Or(X > 1, z3.And(X > 2, Y > 2)))
    assert "unknown" == decide(alone).status
