"""A second opinion: cvc5 on the texts that z3 decided (the extra `cross`)."""

from __future__ import annotations

import time

import cvc5

from proofs.solver import Answer, Status

# Milliseconds a question; a solver that gives up says "unknown", which is a failure.
_TIME_LIMIT_MS = "60000"

_STATUS: dict[str, Status] = {"unsat": "proved", "sat": "refuted"}


def ask_cvc5(text: str) -> Answer:
    """Decide a question with cvc5."""
    begin = time.perf_counter()
    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    solver.setOption("tlimit-per", _TIME_LIMIT_MS)
    # Instances of quantifiers are also tried at terms that match no pattern.
    solver.setOption("enum-inst", "true")
    solver.setLogic("ALL")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "question")
    symbols = parser.getSymbolManager()
    said = ""
    while not (command := parser.nextCommand()).isNull():
        said += str(command.invoke(solver, symbols)).strip()
    status = _STATUS.get(said, "unknown")
    return Answer(status, time.perf_counter() - begin)
