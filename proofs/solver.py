"""Questions to a solver, as text that any solver reads.

What is decided is the SMT-LIB2 text itself, read by a fresh solver: the file that
`--dump` writes is the very question that was answered, and the answer and its cost do
not depend on what was asked before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import attrs
import z3

from proofs.numbers import Term

Status = Literal["proved", "refuted", "unknown"]

# Far above what any question of the project needs (see the table of `python -m proofs`)
# and a few seconds of work. Steps, unlike seconds, are the same on every machine.
RLIMIT = 20_000_000

_STATUS: Mapping[str, Status] = {"unsat": "proved", "sat": "refuted"}


@attrs.frozen
class Answer:
    """What a solver said. values: of a counterexample, by name."""

    status: Status
    seconds: float
    rlimit: int = 0
    values: Mapping[str, int] = attrs.field(factory=dict)


class Goal(NamedTuple):
    """Something to be shown from premises."""

    name: str
    premises: list[Term]
    claim: Term

    @property
    def question(self) -> str:
        """The text that has no model if and only if the premises imply the claim."""
        solver = z3.Solver()
        solver.add(*self.premises, z3.Not(self.claim))
        return str(solver.to_smt2())

    def write(self, path: Path) -> None:
        """Write the question to a file, below a line with the goal's name."""
        path.write_text(f"; {self.name}\n{self.question}", encoding="utf-8")

    def parts(self) -> list[Goal]:
        """A goal for each thing that the claim says of several."""
        claims = self.claim.children() if z3.is_and(self.claim) else [self.claim]
        return [self._replace(claim=claim) for claim in claims]

    def lean(self) -> Goal:
        """The same with only the premises that a proof needs, if there is one.

        Most lemmas that are cited are of no use for a claim. Without them the text is
        short enough to be read, and for slower solvers.
        """
        solver = z3.Solver()
        solver.set("rlimit", RLIMIT)
        solver.add(z3.Not(self.claim))
        for i, premise in enumerate(self.premises):
            solver.assert_and_track(premise, f"premise {i}")
        if solver.check() != z3.unsat:
            return self
        used = {str(name) for name in solver.unsat_core()}
        kept = [p for i, p in enumerate(self.premises) if f"premise {i}" in used]
        return self._replace(premises=kept)


def ask(text: str, seed: int = 0, rlimit: int = RLIMIT) -> Answer:
    """Decide a question with z3."""
    begin = time.perf_counter()
    solver = z3.Solver(ctx=z3.Context())
    solver.set("rlimit", rlimit)
    solver.set("random_seed", seed)
    solver.from_string(text)
    status = _STATUS.get(str(solver.check()), "unknown")
    values = _values(solver.model()) if status == "refuted" else {}
    seconds = time.perf_counter() - begin
    return Answer(status, seconds, _rlimit_used(solver), values)


def decide(goal: Goal, seed: int = 0) -> Answer:
    """Decide a goal; if that is too much at once, part by part.

    A seed without luck on ten claims together has no trouble with each of them.
    """
    answer = ask(goal.question, seed)
    parts = goal.parts()
    if answer.status != "unknown" or len(parts) == 1:
        return answer
    answers = [answer, *(ask(part.question, seed) for part in parts)]
    failed = (a for a in answers[1:] if a.status != "proved")
    return attrs.evolve(
        next(failed, answers[-1]),
        seconds=sum(a.seconds for a in answers),
        rlimit=sum(a.rlimit for a in answers),
    )


def _values(model: z3.ModelRef) -> dict[str, int]:
    return {
        entry.name(): model[entry].as_long()
        for entry in model.decls()
        if entry.arity() == 0 and z3.is_int_value(model[entry])
    }


def _rlimit_used(solver: z3.Solver) -> int:
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count"))
