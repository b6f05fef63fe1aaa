"""`python -m proofs.cross DIR` asks z3 and cvc5 about every question in a folder.

The files are those that `python -m proofs --dump DIR` writes: a claim each, with the
premises that it needs, in SMT-LIB2. `python -m proofs --cross` does both. Prints a
table, a line a theorem, and ends with status 1 if a solver does not say of a file what
the other one says, namely that it is proved; that one does not know is no agreement.
Needs the extra `cross`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Literal

import attrs

from proofs.jobs import in_order
from proofs.progress import watched
from proofs.second import ask_cvc5
from proofs.solver import Answer, Status, ask

Verdict = Literal["agree", "refuted", "unknown", "DISAGREE"]

SOLVERS: dict[str, Callable[[str, int], Answer]] = {"z3": ask, "cvc5": ask_cvc5}

_COUNTED: tuple[Verdict, ...] = ("agree", "unknown", "refuted", "DISAGREE")
_WIDTHS = (42, 6, 6, 8, 8, 9, 9, 9)


@attrs.frozen
class Opinions:
    """What the solvers say of one file. seconds: of each, over all seeds.

    claim: in words; said: by solver, "proved" only if it is with every seed.
    """

    name: str
    claim: str
    said: Mapping[str, Status]
    seconds: Mapping[str, float]

    @property
    def subject(self) -> str:
        """The theorem, or "lemma", that the file belongs to."""
        return self.name.partition(".")[0]

    @property
    def verdict(self) -> Verdict:
        """Whether all say that it is proved, or else why not."""
        said = set(self.said.values())
        if said == {"proved"}:
            return "agree"
        if said >= {"proved", "refuted"}:
            return "DISAGREE"
        return "unknown" if "unknown" in said else "refuted"


def opinions(path: Path, seeds: int = 1) -> Opinions:
    """Ask both solvers about one file."""
    text = path.read_text(encoding="utf-8")
    answers = {
        name: [solver(text, seed) for seed in range(seeds)]
        for name, solver in SOLVERS.items()
    }
    costs = {name: sum(a.seconds for a in found) for name, found in answers.items()}
    return Opinions(
        name=path.stem,
        claim=text.partition("\n")[0].removeprefix("; "),
        said={name: _worst(found) for name, found in answers.items()},
        seconds=costs,
    )


def _worst(answers: Iterable[Answer]) -> Status:
    statuses = {answer.status for answer in answers}
    found: Iterator[Status] = (s for s in ("refuted", "unknown") if s in statuses)
    return next(found, "proved")


def compare(
    folder: Path, seeds: int, jobs: int, say: Callable[[str], None]
) -> list[Opinions]:
    """Ask about every file of a folder; tell a line a theorem, and what is amiss."""
    files = sorted(folder.glob("*.smt2"), key=lambda path: path.stem.split("."))
    say(_row("both solvers", "files", *_COUNTED, *(f"{name} [s]" for name in SOLVERS)))
    found: list[Opinions] = []
    asked = in_order(partial(opinions, seeds=seeds), files, jobs)
    come = watched(asked, len(files), "files")
    for subject, group in groupby(come, key=lambda one: one.subject):
        some = list(group)
        say(_line(subject, some))
        for one in some:
            if one.verdict != "agree":
                told = ", ".join(f"{name}: {s}" for name, s in one.said.items())
                say(f"    {told}: {one.name}: {one.claim}")
        found += some
    say(_line("all", found))
    return found


def _line(subject: str, some: Sequence[Opinions]) -> str:
    counts = Counter(one.verdict for one in some)
    cost = (sum(one.seconds[name] for one in some) for name in SOLVERS)
    cells = (*(counts[verdict] for verdict in _COUNTED), *(f"{s:.1f}" for s in cost))
    return _row(subject, len(some), *cells)


def _row(*cells: object) -> str:
    name, *numbers = zip(map(str, cells), _WIDTHS, strict=True)
    return name[0].ljust(name[1]) + "".join(text.rjust(w) for text, w in numbers)


def all_agree(found: Sequence[Opinions]) -> bool:
    """Whether there are files, and both solvers call each of them proved."""
    return bool(found) and all(one.verdict == "agree" for one in found)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the status to exit with."""
    parser = argparse.ArgumentParser(prog="python -m proofs.cross")
    parser.add_argument("folder", type=Path, help="of SMT-LIB2 files")
    parser.add_argument("--seeds", type=int, default=1, help="random seeds (1)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")

    found = compare(options.folder, options.seeds, options.jobs, say)
    agree = all_agree(found)
    seconds = time.perf_counter() - begin
    say(f"{len(found)} files, {seconds:.1f} s: {'agreed' if agree else 'NOT AGREED'}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
