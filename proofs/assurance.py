"""`python -m proofs.assurance` writes what is proved, what is tested, what is neither.

It proves all theorems and writes what came of it: a record of the run into
`docs/assurance.json`, the whole text, clause by clause, into `docs/assurance.md`, and a
short form into `README.md`, both texts between two markers. With `--check` it writes
nothing and compares. Nothing of it is a time, so that it changes only if a statement
does. Ends with status 1, and writes nothing, if anything is not proved, or with
`--check` if a file is not what would be written.

A clause of the specification counts as proved if a theorem is about it or claims it on
the way. Where a proof ends and something else has to be believed, the text says so.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import attrs

from proofs.check import Result, check
from proofs.jobs import in_order
from proofs.lemmas import LEMMAS
from proofs.progress import watched
from proofs.spaces import AllGeometries
from proofs.theorem import Theorem, readings
from proofs.theorems import THEOREMS, events
from spec.clauses import ROOT, SPEC, Clause, clauses, mentions

BEGIN = "<!-- What follows is written by `python -m proofs.assurance`. -->"
END = "<!-- End of what `python -m proofs.assurance` writes. -->"
HEADING = "What is proved, what is tested, what is neither"
RECORD, WHOLE, README = "docs/assurance.json", "docs/assurance.md", "README.md"

# So many theorems about a clause are named; then those about every event are counted.
_NAMED = 3
_EVENTS = {theorem.name for theorem in events.THEOREMS}

# Groups of clauses, what they are about, and of what their theorems speak.
_GROUPS = {
    "INV": ("what holds in every state", "the specified machine"),
    "LIFE": ("requests, blocks and pairs", "the specified machine"),
    "STEP": ("the engine step", "the specified machine"),
    "MAP": ("where an element lies", "the shipped functions"),
    "CMD": ("what commands do", "commands, in formulas"),
    "DEV": ("what a device checks", "commands, in formulas"),
}

PROVED = """\
A theorem is proved by a solver (z3; a second one, cvc5, is asked about each claim in a
file of its own by `python -m proofs --cross`), has premises that can be kept, and comes
with planted bugs, each of which makes its proof fail and gives a counterexample.

* **Address map.** The subject is the shipped functions of `patton/addresses.py` and
  `layout.py`, run on symbolic numbers; for every geometry, so for any
  sizes of the device and the model. `python -m proofs.sweep` proves the same again on
  1,000 concrete layouts with the solver's own arithmetic, and that nothing overflows
  there; `python -m proofs.mutants` changes the functions and sees the proofs fail.
* **Machine.** The subject is `spec/machine.py`, read by the solver as it stands; for
  any number of requests, blocks, pairs and slots and any block size. The same text runs
  in Python; a test takes ten thousand random steps both ways. Mutants of it are
  rejected with a counterexample (`python -m proofs.spec_mutants`).
* **Commands** (clauses CMD and DEV-ALONE). Inductions over commands, for all contents,
  any number of commands and any set of resident blocks. Their premises about addresses
  are theorems about the shipped functions. What a command does to the device, and which
  commands a stream is made of, is stated in formulas; see the second point below.

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

SHORT = """\
For every geometry, any number of requests and blocks, and all contents. The address map
is proved as it ships. The rules of allocation are proved of the machine in `spec/`,
beside which tests run the runtime step by step. What commands do is proved of formulas,
and every stream that tests generate is followed term by term. Taken for granted: the
solver, Python and NumPy, and that a device does what the formulas say. Neither proved
nor tested: that the serving engine shares and evicts the right blocks, progress when
memory is full, and calls from several threads."""


@attrs.frozen
class Record:
    """What a run proved: for each theorem its obligations and bugs refuted."""

    obligations: Mapping[str, int]
    bugs: Mapping[str, int]

    @classmethod
    def of(cls, results: Iterable[Result]) -> Record:
        """The record of a run in which everything was proved."""
        found = list(results)
        return cls(
            {one.name: one.obligations for one in found},
            {one.name: one.bugs_refuted for one in found},
        )

    @classmethod
    def parse(cls, text: str) -> Record:
        """The record that a file holds."""
        theorems = json.loads(text)["theorems"]
        return cls(
            {one["name"]: one["obligations"] for one in theorems},
            {one["name"]: one["planted_bugs_refuted"] for one in theorems},
        )

    def __str__(self) -> str:
        theorems = [
            {
                "name": theorem.name,
                "clause": theorem.clause,
                "obligations": self.obligations[theorem.name],
                "planted_bugs_refuted": self.bugs[theorem.name],
            }
            for theorem in THEOREMS
        ]
        lemmas = [lemma.says for lemma in LEMMAS]
        return json.dumps({"lemmas": lemmas, "theorems": theorems}, indent=1) + "\n"

    @property
    def summary(self) -> str:
        """The whole run in a sentence."""
        return (
            f"{len(self.bugs)} theorems ({sum(self.obligations.values())} obligations, "
            f"{len(LEMMAS)} lemmas) are proved and {sum(self.bugs.values())} planted "
            "bugs refuted: `python -m proofs`."
        )


@attrs.frozen
class Statement:
    """A clause, the theorems about it, and whether a test or a campaign names it."""

    clause: Clause
    theorems: Sequence[str]
    is_tested: bool

    @property
    def part(self) -> str:
        """Which part of the text it belongs to."""
        if self.theorems:
            return "proved"
        return "tested only" if self.is_tested else "neither"


def clauses_of(theorem: Theorem) -> set[str]:
    """The clauses that a theorem is about or, of the machine, claims on the way."""
    if theorem.few is None:
        return {theorem.clause}
    (reading,) = readings(theorem, AllGeometries)
    claims = (claim.says.partition(",")[0] for claim in reading.claims)
    return {theorem.clause, *claims}


@cache
def statements() -> tuple[Statement, ...]:
    """All clauses of the specification in its order."""
    about: dict[str, list[str]] = {}
    clause_of = {theorem.name: theorem.clause for theorem in THEOREMS}
    for theorem in THEOREMS:
        for clause in clauses_of(theorem):
            about.setdefault(clause, []).append(theorem.name)
    tested = mentions("tests").keys() | mentions("fuzz").keys()
    found = []
    for one in clauses(SPEC.read_text(encoding="utf-8")):
        names = sorted(
            about.get(one.id, []), key=lambda name: clause_of[name] != one.id
        )
        found.append(Statement(one, names, one.id in tested))
    return tuple(found)


def whole(record: Record) -> str:
    """All clauses, in Markdown."""
    of_part = {
        part: [one for one in statements() if one.part == part]
        for part in ("proved", "tested only", "neither")
    }
    counts = {part: len(found) for part, found in of_part.items()}
    summary = (
        f"{record.summary} Of {len(statements())} clauses of `spec/SPEC.md`, "
        f"{counts['proved']} are proved of the address map, the machine or the "
        f"inductions below, {counts['tested only']} are tested only, "
        f"{counts['neither']} are neither."
    )
    parts = [
        f"## {HEADING}",
        summary,
        "### Proved",
        PROVED,
        _table(of_part["proved"]),
        "### Tested, not proved",
        TESTED,
        _table(of_part["tested only"]),
        "### Neither",
        NEITHER,
    ]
    if of_part["neither"]:
        parts.append("No theorem is about these clauses, and no test names them.")
        parts.append(_table(of_part["neither"]))
    return "\n\n".join(parts)


def short(record: Record) -> str:
    """Counts by group of clauses, in Markdown."""
    lines = [
        "| clauses of `spec/SPEC.md` | proved | tested only | neither | proved of |",
        "|---|---|---|---|---|",
    ]
    for group, (about, subject) in _GROUPS.items():
        of_group = (one for one in statements() if one.clause.id.startswith(group))
        counts = Counter(one.part for one in of_group)
        numbers = (str(counts[part]) for part in ("proved", "tested only", "neither"))
        lines.append(f"| {group}: {about} | {' | '.join(numbers)} | {subject} |")
    end = f"Clause by clause: [{WHOLE}]({WHOLE})."
    parts = (f"## {HEADING}", record.summary, "\n".join(lines), f"{SHORT} {end}")
    return "\n\n".join(parts)


def _table(rows: Iterable[Statement]) -> str:
    lines = ["| clause | what it says | theorems | tested |", "|---|---|---|---|"]
    for row in rows:
        tested = "yes" if row.is_tested else "-"
        cells = (row.clause.id, row.clause.sentence, _named(row), tested)
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
    whole_section = f"{BEGIN}\n\n{section}\n\n{END}"
    if BEGIN not in old:
        return f"{old}\n{whole_section}\n" if old else f"{whole_section}\n"
    before, _, rest = old.partition(BEGIN)
    return f"{before}{whole_section}{rest.partition(END)[2]}"


def files(root: Path, record: Record) -> Iterator[tuple[Path, str]]:
    """Each file that is written, and its text with what is written into it."""
    yield root / RECORD, str(record)
    for name, section in ((WHOLE, whole(record)), (README, short(record))):
        path = root / name
        old = path.read_text(encoding="utf-8") if path.exists() else ""
        yield path, placed(old, section)


def differences(root: Path, record: Record) -> list[str]:
    """The files that are not what would be written."""
    return [
        path.relative_to(root).as_posix()
        for path, text in files(root, record)
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]


def _checked(number: int) -> Result:
    # Theorems do not travel between processes; their numbers do.
    return check(THEOREMS[number])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the status to exit with."""
    parser = argparse.ArgumentParser(prog="python -m proofs.assurance")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("--root", type=Path, default=ROOT, help="of the repository")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    options = parser.parse_args(arguments)
    checked = in_order(_checked, range(len(THEOREMS)), options.jobs)
    results = list(watched(checked, len(THEOREMS), "theorems"))
    failed = [one.name for one in results if one.status != "proved"]
    if failed:
        sys.stderr.write(f"not proved: {', '.join(failed)}\n")
        return 1
    record = Record.of(results)
    if options.check:
        stale = differences(options.root, record)
        for name in stale:
            sys.stderr.write(f"{name} is not what this run says\n")
        return 1 if stale else 0
    for path, text in files(options.root, record):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
