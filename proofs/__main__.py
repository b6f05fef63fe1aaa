"""`python -m proofs`: prove all theorems, and show that the proofs mean something.

Prints a table with the cost of each proof and ends with status 1 if anything is not
proved: also if a solver does not know, if a witness does not keep the premises, if a
planted bug goes unnoticed, or if a lemma fails.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import attrs

from proofs.check import Effort, Result, check
from proofs.jobs import in_order
from proofs.lemmas import FALSE_LEMMAS, LEMMAS, Lemma
from proofs.progress import watched
from proofs.solver import Answer, ask
from proofs.theorem import Theorem
from proofs.theorems import THEOREMS

_THEOREM = {theorem.name: theorem for theorem in THEOREMS}
_WIDTHS = (42, 14, 28, 8, 10)
_HEADINGS = ("theorem", "clause", "kind of statement", "z3 [s]", "rlimit")


@attrs.frozen
class LemmaResult:
    """Whether the solver says of a lemma what it should: that it is true, or false."""

    lemma: Lemma
    is_true: bool
    answer: Answer

    @property
    def is_as_expected(self) -> bool:
        """Whether the solver can tell."""
        return self.answer.status == ("proved" if self.is_true else "refuted")


def check_lemmas(seeds: int = 1) -> Iterator[LemmaResult]:
    """Prove the lemmas, and refute those that are false by design, with each seed."""
    for lemma in (*LEMMAS, *FALSE_LEMMAS):
        for seed in range(seeds):
            answer = ask(lemma.goal.question, seed)
            yield LemmaResult(lemma, lemma in LEMMAS, answer)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the status to exit with."""
    parser = _parser()
    options = parser.parse_args(arguments)
    chosen = [t for t in THEOREMS if not options.only or options.only in t.name]
    if not chosen:
        parser.error(
            f"no theorem's name has {options.only!r}; docs/assurance.md has all"
        )
    if options.cross and find_spec("cvc5") is None:
        parser.error("--cross needs cvc5: pip install -e '.[cross]'")
    say = _silent if options.json else _say
    begin = time.perf_counter()
    with _folder(options) as folder:
        effort = Effort(options.seeds, folder)
        results = list(_theorem_table(chosen, effort, options.jobs, say))
        # After them: what a solver has seen before changes how often it is asked.
        lemmas_hold = _lemma_table(effort, say)
        agreed = not options.cross or _solvers_agree(folder, options, say)
    all_proved = lemmas_hold and all(result.status == "proved" for result in results)
    proved = bool(results) and all_proved and agreed
    if options.json:
        sys.stdout.write(json.dumps(report(results, proved=proved), indent=2) + "\n")
    say(_summary(results, time.perf_counter() - begin, proved=proved))
    return 0 if proved else 1


def report(results: Iterable[Result], *, proved: bool) -> dict[str, object]:
    """The results as plain data, for `--json`."""
    theorems = [
        {
            "name": result.name,
            "clause": _THEOREM[result.name].clause,
            "status": result.status,
            "seconds": round(result.seconds, 3),
            "obligations": result.obligations,
            "planted_bugs_refuted": result.bugs_refuted,
        }
        for result in results
    ]
    return {"theorems": theorems, "proved": proved}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m proofs",
        description="Prove the theorems about the shipped code.",
    )
    parser.add_argument("--only", metavar="TEXT", help="theorems whose name has TEXT")
    parser.add_argument("--json", action="store_true", help="the results as JSON")
    parser.add_argument(
        "--dump", metavar="DIR", type=Path, help="write each claim as SMT-LIB2"
    )
    parser.add_argument(
        "--seeds", metavar="N", type=int, default=1, help="ask with N random seeds"
    )
    parser.add_argument(
        "--cross", action="store_true", help="ask cvc5 too (needs the extra `cross`)"
    )
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=2, help="processes (default 2)"
    )
    return parser


@contextmanager
def _folder(options: argparse.Namespace) -> Iterator[Path | None]:
    """Where claims are written to, if anywhere."""
    if options.dump is not None:
        options.dump.mkdir(parents=True, exist_ok=True)
        yield options.dump
    elif options.cross:
        with TemporaryDirectory() as folder:
            yield Path(folder)
    else:
        yield None


def _solvers_agree(
    folder: Path | None, options: argparse.Namespace, say: Callable[[str], None]
) -> bool:
    # Only here, so that proofs need no second solver.
    from proofs.cross import all_agree, compare  # noqa: PLC0415

    assert folder is not None
    return all_agree(compare(folder, options.seeds, options.jobs, say))


def _lemma_table(effort: Effort, say: Callable[[str], None]) -> bool:
    results = list(check_lemmas(effort.seeds))
    if effort.dump is not None:
        for lemma in LEMMAS:
            lemma.goal.write(effort.dump / f"lemma.{lemma.name}.smt2")
    for result in results:
        if not result.is_as_expected:
            truth = "true" if result.is_true else "false"
            name, status = result.lemma.name, result.answer.status
            say(f"lemma {name!r} is {truth}, but the solver says: {status}")
    seconds = sum(result.answer.seconds for result in results)
    say(
        f"{len(LEMMAS)} lemmas proved, {len(FALSE_LEMMAS)} false ones refuted "
        f"({seconds:.2f} s)"
        if (hold := all(result.is_as_expected for result in results))
        else "LEMMAS FAIL"
    )
    return hold


def _theorem_table(
    theorems: Sequence[Theorem],
    effort: Effort,
    jobs: int,
    say: Callable[[str], None],
) -> Iterator[Result]:
    say(_row(*_HEADINGS, "result"))
    results = _results(theorems, effort, jobs)
    for result in watched(results, len(theorems), "theorems"):
        theorem = _THEOREM[result.name]
        cost = f"{result.seconds:.2f}", f"{result.rlimit:,}"
        say(_row(theorem.name, theorem.clause, theorem.kind, *cost, _told(result)))
        for line in result.details:
            say(f"    {line}")
        yield result


def _results(
    theorems: Sequence[Theorem], effort: Effort, jobs: int
) -> Iterator[Result]:
    names = [theorem.name for theorem in theorems]
    yield from in_order(partial(_check_named, effort=effort), names, jobs)


def _check_named(name: str, effort: Effort) -> Result:
    # Theorems do not travel between processes; their names do.
    return check(_THEOREM[name], effort)


def _told(result: Result) -> str:
    if result.status != "proved":
        return result.status.upper()
    return f"proved ({result.obligations} obligations, {result.bugs_refuted} bugs seen)"


def _row(*cells: str) -> str:
    *head, result = cells
    name, clause, kind, seconds, rlimit = (
        text.rjust(width) if i > 2 else text.ljust(width)
        for i, (text, width) in enumerate(zip(head, _WIDTHS, strict=True))
    )
    return f"{name} {clause} {kind} {seconds} {rlimit}  {result}"


def _summary(results: Sequence[Result], seconds: float, *, proved: bool) -> str:
    bugs = sum(result.bugs_refuted for result in results)
    obligations = sum(result.obligations for result in results)
    count = sum(result.status == "proved" for result in results)
    return (
        f"{count} of {len(results)} theorems proved, {obligations} obligations, "
        f"{bugs} planted bugs refuted, {seconds:.1f} s: "
        + ("all proved" if proved else "NOT ALL PROVED")
    )


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _silent(line: str) -> None:
    """Nothing but the JSON object goes to standard output."""


if __name__ == "__main__":
    sys.exit(main())
