"""Checks a theorem: the proof, its witness, and the bugs that it must notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import attrs

from proofs import finite, finite_scope
from proofs.layouts import small_layouts
from proofs.numbers import SymbolicUseError
from proofs.solver import RLIMIT, Answer, Status, ask, decide
from proofs.spaces import AllGeometries
from proofs.swaps import SwapError
from proofs.theorem import Bug, Reading, Theorem, readings

Verdict = Status | Literal["empty", "deaf"]


@attrs.frozen
class Result:
    """What was found out about a theorem.

    status: proved only if the proof, the witness and every planted bug are as they
    should be. "empty": the premises contradict each other, or the witness does not keep
    them; "deaf": a planted bug was not noticed. details: in words, for all that is not
    as it should be.
    """

    name: str
    status: Verdict
    seconds: float
    rlimit: int
    paths: int
    obligations: int
    bugs_refuted: int
    details: tuple[str, ...]


@attrs.frozen
class Effort:
    """How much is asked of a proof.

    seeds: runs of the solver, each with another seed. dump: a folder for every claim as
    SMT-LIB2, with the premises that it needs.
    """

    seeds: int = 1
    dump: Path | None = None


@attrs.define
class _Tally:
    status: Verdict = "proved"
    seconds: float = 0.0
    rlimit: int = 0
    hardest: int = 0  # rlimit of one question
    details: list[str] = attrs.field(factory=list)

    def fail(self, status: Verdict, detail: str) -> None:
        if self.status == "proved":
            self.status = status
        self.details.append(detail)

    def count(self, name: str, answer: Answer) -> None:
        self.seconds += answer.seconds
        self.rlimit += answer.rlimit
        self.hardest = max(self.hardest, answer.rlimit)
        if answer.status != "proved":
            self.fail(answer.status, f"{answer.status}: {name}")


def check(theorem: Theorem, effort: Effort | None = None) -> Result:
    """Prove a theorem for all geometries, and see that the proof means something."""
    effort = effort or Effort()
    tally = _Tally()
    paths = obligations = 0
    for paths, reading in enumerate(readings(theorem, AllGeometries), 1):
        obligations += len(reading.claims) + len(reading.owed) + len(reading.closed)
        _prove(tally, effort, f"{theorem.name}.{paths}", reading)
    if tally.status != "proved":
        found = list(_counterexample(theorem))
        if found:
            tally.status = "refuted"
            tally.details += found
    _try_witness(tally, theorem)
    refuted = _plant_bugs(tally, theorem)
    return Result(
        theorem.name,
        tally.status,
        tally.seconds,
        tally.rlimit,
        paths,
        obligations,
        refuted,
        tuple(tally.details),
    )


def _plant_bugs(tally: _Tally, theorem: Theorem) -> int:
    """Plant each bug in turn; how many were noticed."""
    refuted = 0
    for bug in theorem.planted:
        # Without any sizes a solver looks for a proof that is not there until it is
        # stopped: after twice the work that a proof without the bug took.
        limit = 2 * tally.hardest if theorem.few else RLIMIT
        try:
            is_noticed = is_refuted(theorem, bug, limit)
        except SwapError as error:
            tally.fail("deaf", str(error))
            continue
        refuted += is_noticed
        if not is_noticed:
            tally.fail("deaf", f"not noticed: {bug.says}")
    return refuted


def _counterexample(theorem: Theorem) -> Iterator[str]:
    """A case that breaks the theorem, in the project's words, if there is one."""
    if theorem.few is not None:
        for reading in readings(_in_few(theorem), AllGeometries):
            yield from finite_scope.counterexample(list(reading.single_goals()))
        return
    counterexample = finite.search(theorem)
    if counterexample is not None:
        yield from counterexample.lines()


def is_refuted(theorem: Theorem, bug: Bug, rlimit: int = RLIMIT) -> bool:
    """Whether a planted bug makes the proof fail, and makes a counterexample."""
    small_layouts()  # made once, and never by code that has a bug
    with bug.planted():
        if is_proved(theorem, bug, rlimit):
            return False
        if theorem.few is not None:
            return "refuted" in _statuses(_in_few(theorem), bug)
        return finite.search(theorem, bug) is not None


def _in_few(theorem: Theorem) -> Theorem:
    assert theorem.few is not None
    return attrs.evolve(theorem, given=theorem.few)


def is_proved(theorem: Theorem, bug: Bug | None = None, rlimit: int = RLIMIT) -> bool:
    """Whether the proof for all geometries succeeds with the code as it is now."""
    try:
        statuses = _statuses(theorem, bug, rlimit)
        return all(status == "proved" for status in statuses)
    except SymbolicUseError:
        return False


def _statuses(
    theorem: Theorem, bug: Bug | None, rlimit: int = RLIMIT
) -> Iterator[Status]:
    for reading in readings(theorem, AllGeometries, bug):
        for goal in reading.goals():
            yield ask(goal.question, rlimit=rlimit).status


def _try_witness(tally: _Tally, theorem: Theorem) -> None:
    case = theorem.witness
    if case is None:
        (reading,) = readings(_in_few(theorem), AllGeometries)
        if ask(reading.contradiction.question).status != "refuted":
            tally.fail("empty", "the solver finds nothing that keeps the premises")
    elif not finite.keeps_premises(theorem, case):
        tally.fail("empty", "the witness does not keep the premises")
    elif not finite.claims_about(theorem, case):
        tally.fail("empty", "nothing is claimed of the witness")
    elif finite.replay(theorem, case) is not None:
        tally.fail("refuted", "the witness does not keep the claims")


def _prove(tally: _Tally, effort: Effort, name: str, reading: Reading) -> None:
    for goal in reading.goals():
        tally.count(f"{name}: {goal.name}", decide(goal))
        for seed in range(1, effort.seeds):
            status = decide(goal, seed).status
            if status != "proved":
                tally.fail(status, f"{status} with seed {seed}: {name}: {goal.name}")
    if effort.dump is not None:
        for number, goal in enumerate(reading.single_goals(), 1):
            goal.lean().write(effort.dump / f"{name}.{number}.smt2")
