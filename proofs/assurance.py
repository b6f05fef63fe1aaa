"""`python -m proofs.assurance` writes what is proved, what is tested, what is neither.

It proves all theorems and writes what came of it into a Markdown file, between two
markers; without such a file it makes one. What it writes has no times, so that it
changes only if a statement does. Ends with status 1, and writes nothing, if anything is
not proved.

A clause of the specification counts as proved if a theorem is about it or claims it on
the way. Where a proof ends and something else has to be believed, the text says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import attrs

from proofs.check import Result, check
from proofs.lemmas import LEMMAS
from proofs.spaces import AllGeometries
from proofs.theorem import Theorem, readings
from proofs.theorems import THEOREMS, events
from spec.clauses import ROOT, SPEC, Clause, clauses, mentions

BEGIN = "<!-- What follows is written by `python -m proofs.assurance`. -->"
END = "<!-- End of what `python -m proofs.assurance` writes. -->"
TARGET = ROOT / "docs" / "assurance.md"
HEADING = "What is proved, what is tested, what is neither"

# So many theorems about a clause are named; then those about every event are counted.
_NAMED = 3
_EVENTS = {theorem.name for theorem in events.THEOREMS}

PROVED = """\
A theorem is proved by a solver (z3; cvc5 agrees about each claim in a file of its own,
`python -m proofs --cross`), has premises that can be kept, and comes with planted bugs,
each of which makes its proof fail and gives a counterexample.

* **Address map.** The subject is the shipped functions of `patton/addresses.py`,
  `layout.py` and `locate.py`, run on symbolic numbers; for every geometry, so for any
  sizes of the device and the model.
* **Machine.** The subject is `spec/machine.py`, read by the solver as it stands; for
  any number of requests, blocks, pairs and slots and any block size. The same text runs
  in Python; a test takes ten thousand random steps both ways. Every mutant of it is
  rejected with a counterexample (`python -m proofs.spec_mutants`).
* **Sums, copies and first writes.** Inductions over commands, for all contents, any
  number of commands and any set of resident blocks. Their premises about addresses are
  theorems about the shipped functions. What a command does to the device is stated in
  a formula.

What is proved of the machine is not thereby proved of the runtime: see below."""

TESTED = """\
* **The runtime takes only steps that the machine allows.** Checked at every step of
  tests and campaigns (`fuzz/refinement.py`); a solver cannot read the runtime itself.
* **The generators issue the commands that the inductions speak of.** They work on
  whole NumPy arrays, which take no symbols. Every stream that tests and campaigns make
  is followed command by command with a tag for each datum: each product once, none
  foreign, no lane used that was never written (`patton/device/provenance`). This is a
  proof about that stream for all contents, and a test of the generator.
* **The order of blocks in a table.** The machine knows which blocks a request holds,
  not in which order; what clauses say of "first" and "last" blocks is tested.
* **Device arithmetic.** Bit for bit against a plain reference that rounds in the order
  which the stream states.
* **Preferences.** Which of several allowed places is taken, and in which order blocks
  are offered for eviction."""

NEITHER = """\
* That the solvers, Python and NumPy are right, and that z3's reading of a symbolic
  operator is Python's, beyond the obligations that each operator owes.
* That the formulas which say what a command does describe a device that is built.
* That the engine shares, confirms and evicts the right blocks; that copies which a plan
  lists were carried out before they are published.
* Progress: a request may wait for ever when no pair is free.
* Time and energy; they are measured, or simulated elsewhere.
* Calls from several threads."""


@attrs.frozen
class Statement:
    """A clause, the theorems about it, and how many files test it."""

    clause: Clause
    theorems: Sequence[str]
    tests: int


def clauses_of(theorem: Theorem) -> set[str]:
    """The clauses that a theorem is about or, of the machine, claims on the way."""
    if theorem.few is None:
        return {theorem.clause}
    (reading,) = readings(theorem, AllGeometries)
    return {theorem.clause, *(claim.says.partition(",")[0] for claim in reading.claims)}


def statements(theorems: Iterable[Theorem]) -> Iterator[Statement]:
    """All clauses of the specification in its order."""
    about: dict[str, list[str]] = {}
    clause_of = {theorem.name: theorem.clause for theorem in THEOREMS}
    for theorem in theorems:
        for clause in clauses_of(theorem):
            about.setdefault(clause, []).append(theorem.name)
    tested: dict[str, set[str]] = {}
    for folder in ("tests", "fuzz"):
        for clause, files in mentions(folder).items():
            tested.setdefault(clause, set()).update(files)
    for one in clauses(SPEC.read_text(encoding="utf-8")):
        names = sorted(
            about.get(one.id, []), key=lambda name: clause_of[name] != one.id
        )
        yield Statement(one, names, len(tested.get(one.id, ())))


def text(results: Sequence[Result]) -> str:
    """The section, in Markdown."""
    found = list(statements(THEOREMS))
    proved = [one for one in found if one.theorems]
    tested = [one for one in found if one.tests and not one.theorems]
    neither = [one for one in found if not one.tests and not one.theorems]
    obligations = sum(result.obligations for result in results)
    bugs = sum(result.bugs_refuted for result in results)
    summary = (
        f"{len(results)} theorems ({obligations} obligations, {len(LEMMAS)} lemmas) "
        f"are proved and {bugs} planted bugs refuted: `python -m proofs`. Of "
        f"{len(found)} clauses of `spec/SPEC.md`, {len(proved)} are proved of the "
        f"address map, the machine or the inductions below, {len(tested)} are tested "
        f"only, {len(neither)} are neither."
    )
    parts = [
        f"## {HEADING}",
        summary,
        "### Proved",
        PROVED,
        _table(proved),
        "### Tested, not proved",
        TESTED,
        _table(tested),
        "### Neither",
        NEITHER,
    ]
    if neither:
        parts.append("No theorem is about these clauses, and no test names them.")
        parts.append(_table(neither))
    return "\n\n".join(parts)


def _table(rows: Iterable[Statement]) -> str:
    lines = ["| clause | what it says | theorems | test files |", "|---|---|---|---|"]
    for row in rows:
        tests = str(row.tests or "-")
        cells = (row.clause.id, row.clause.sentence, _named(row), tests)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _named(row: Statement) -> str:
    some = [f"`{name}`" for name in row.theorems[:_NAMED]]
    rest = row.theorems[_NAMED:]
    if len(rest) > len(_EVENTS) // 2:
        single = [f"`{name}`" for name in row.theorems if name not in _EVENTS]
        count = len(_EVENTS.intersection(row.theorems))
        return ", ".join([*single, f"{count} about one kind of event each"])
    more = f" and {len(rest)} more" if rest else ""
    return ", ".join(some) + more or "-"


def placed(old: str, section: str) -> str:
    """A file's text with the section between the markers, which it gets if need be."""
    whole = f"{BEGIN}\n\n{section}\n\n{END}"
    if BEGIN not in old:
        return f"{old}\n{whole}\n" if old else f"# Assurance\n\n{whole}\n"
    before, _, rest = old.partition(BEGIN)
    return f"{before}{whole}{rest.partition(END)[2]}"


def _checked(number: int) -> Result:
    # Theorems do not travel between processes; their numbers do.
    return check(THEOREMS[number])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the status to exit with."""
    parser = argparse.ArgumentParser(prog="python -m proofs.assurance")
    parser.add_argument("file", nargs="?", type=Path, default=TARGET, help="Markdown")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args(arguments)
    file: Path = options.file
    results = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for result in pool.map(_checked, range(len(THEOREMS))):
            results.append(result)
            if sys.stderr.isatty():
                told = f"{len(results)}/{len(THEOREMS)} {result.name}"
                sys.stderr.write(f"\r\x1b[K{told}")
    failed = [one.name for one in results if one.status != "proved"]
    if failed:
        sys.stderr.write(f"not proved: {', '.join(failed)}\n")
        return 1
    old = file.read_text(encoding="utf-8") if file.exists() else ""
    file.write_text(placed(old, text(results)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
