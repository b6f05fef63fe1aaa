"""Theorems about any number of commands: their words, and where they are tried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import z3

from proofs.check import check
from proofs.numbers import Work
from proofs.theorem import Claim, Without
from proofs.turns import (
    FEW,
    Turns,
    a_few,
    any_number,
    by_induction,
    claimed_all,
    suppose_all,
)


def counter(turns: Turns) -> tuple[z3.ArithRef, z3.FuncDeclRef]:
    return z3.Int("done"), turns.function("count", "command", "number")


def given(space: Work, turns: Turns) -> tuple[Work, Turns]:
    """Every command counts one more."""
    done, count = counter(turns)
    premises = {
        "nothing at first": count(0) == 0,
        "one more each time": count(done + 1) == count(done) + 1,
        "some are done": z3.And(0 <= done, done < turns.commands),
        "so far": count(done) == done,
    }
    suppose_all(space, premises)
    return space, turns


def claim(space: Work, turns: Turns) -> Iterator[Claim]:
    done, count = counter(turns)
    claims = {"at first": count(0) == 0, "after one more": count(done + 1) == done + 1}
    yield from claimed_all(space, claims)


def test_an_induction_is_proved_and_its_bugs_are_refuted() -> None:
    result = check(
        by_induction(
            "counting", "MAP-COMMIT", given, claim, Without("one more each time")
        )
    )

    assert ("proved", 1) == (result.status, result.bugs_refuted)


def test_a_premise_that_is_not_needed_is_no_bug() -> None:
    """The theorem would be called deaf."""
    idle = by_induction(
        "counting", "MAP-COMMIT", given, claim, Without("some are done")
    )

    assert "deaf" == check(idle).status


def test_an_induction_without_its_step_is_refuted_in_words() -> None:
    """The counterexample has few commands, and names what is false."""

    def stands_still(space: Work, turns: Turns) -> tuple[Work, Turns]:
        space.dropped = frozenset({"one more each time"})
        return given(space, turns)

    result = check(by_induction("counting", "MAP-COMMIT", stands_still, claim))

    assert "refuted" == result.status
    assert "not true: after one more" in result.details


@pytest.mark.parametrize("turns", [any_number(), a_few()], ids=["any number", "a few"])
def test_what_holds_of_each_holds_of_one(turns: Turns) -> None:
    red = turns.function("red", "thing", "truth")
    done = turns.function("done", "command", "truth")
    one = z3.Const("some thing", turns.sorts["thing"])
    solver = z3.Solver()
    solver.add(turns.each("thing", red), turns.each_command(done))

    assert z3.unsat == solver.check(z3.Not(red(one)))
    assert z3.unsat == solver.check(turns.commands >= 1, z3.Not(done(0)))
    assert z3.sat == solver.check(z3.Not(done(turns.commands)))


def test_few_things_are_so_few() -> None:
    turns = a_few()

    assert FEW == len(turns.things["thing"])
    solver = z3.Solver()
    others = [z3.Const(f"thing {n}", turns.sorts["thing"]) for n in range(FEW + 1)]
    assert z3.unsat == solver.check(z3.Distinct(*others))
