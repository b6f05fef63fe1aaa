"""A second opinion: cvc5 on the texts that z3 decided (the extra `cross`)."""

from __future__ import annotations

import time

import cvc5

from proofs.solver import Answer, Status

# Milliseconds a question; a solver that gives up says "unknown", which is a failure.
LIMIT_MS = 60_000

_STATUS: dict[str, Status] = {"unsat": "proved", "sat": "refuted"}

# From the least on: in it, integers and functions of them are decided ten times faster.
# What a logic has no words for is refused, not decided otherwise.
_LOGICS = ("QF_UFLIA", "ALL")
_REFUSAL = "(error"  # how the solver's own message begins


def ask_cvc5(text: str, seed: int = 0, limit_ms: int = LIMIT_MS) -> Answer:
    """Decide a question with cvc5, in the least logic that has words for it."""
    begin = time.perf_counter()
    said = _REFUSAL
    for logic in _LOGICS:
        if _REFUSAL in said:
            said = _said(text, logic, seed, limit_ms)
    status = _STATUS.get(said, "unknown")
    return Answer(status, time.perf_counter() - begin)


def _said(text: str, logic: str, seed: int, limit_ms: int) -> str:
    """What the solver prints; a refusal if the logic has no words for the text."""
    terms = cvc5.TermManager()
    solver = cvc5.Solver(terms)
    solver.setOption("tlimit-per", str(limit_ms))
    for name in ("seed", "sat-random-seed"):
        solver.setOption(name, str(seed))
    if logic == "ALL":
        # Instances of quantifiers are also tried at terms that match no pattern.
        solver.setOption("enum-inst", "true")
    solver.setLogic(logic)
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "question")
    symbols = parser.getSymbolManager()
    said = ""
    try:
        while not (command := parser.nextCommand()).isNull():
            said += str(command.invoke(solver, symbols)).strip()
    except RuntimeError as error:
        return f"{_REFUSAL} {error}"
    return said
