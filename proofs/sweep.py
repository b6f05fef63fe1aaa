"""`python -m proofs.sweep` proves the theorems on many concrete layouts, one by one.

In one layout every divisor is a number, so a solver decides the statements with the
true operators; no lemma and no unknown function is involved. That makes it a second
proof by other means, on the geometries that are used: published model shapes on all
devices, odd sizes, padding. It also proves that nothing overflows the words of arrays.

Left out are statements that follow from others within a layout, and those whose code
branches or that are not about a layout. Ends with status 1 if anything is not proved.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from functools import cache, partial

import attrs

from patton.layout import Layout
from proofs import finite
from proofs.jobs import in_order
from proofs.layouts import many_layouts
from proofs.positions import KINDS
from proofs.progress import watched
from proofs.solver import ask
from proofs.spaces import OneLayout
from proofs.theorem import Theorem, readings
from proofs.theorems import THEOREMS

# Places that come back from their address have no address in common. The statements
# that say so of two places of a kind cost as much as all others together.
_LEFT_OUT = frozenset(f"{kind.word}_and_{kind.word}_share_no_address" for kind in KINDS)


@attrs.frozen
class Outcome:
    """What was proved of one layout. failures: in words."""

    statements: int
    obligations: int
    failures: tuple[str, ...]


def swept() -> list[Theorem]:
    """The theorems that are proved on each layout."""
    return [
        theorem
        for theorem in THEOREMS
        if theorem.is_about_layouts and not theorem.branches
        if theorem.name not in _LEFT_OUT
    ]


def prove_on(layout: Layout) -> Outcome:
    """Prove all swept theorems on one layout."""
    statements = obligations = 0
    failures: list[str] = []
    for theorem in swept():
        statements += 1
        for reading in readings(theorem, partial(OneLayout, layout)):
            obligations += len(reading.claims) + len(reading.owed)
            for goal in reading.goals():
                status = ask(goal.question).status
                if status != "proved":
                    where = finite.layout_in_words(layout)
                    failures.append(f"{theorem.name}: {goal.name} {status} on {where}")
    return Outcome(statements, obligations, tuple(failures))


def sample(layouts: Sequence[Layout], count: int) -> list[Layout]:
    """So many layouts, evenly over all kinds."""
    if count >= len(layouts):
        return list(layouts)
    return [layouts[i * len(layouts) // count] for i in range(count)]


@cache
def _sampled(count: int) -> list[Layout]:
    return sample(many_layouts(), count)


def _outcome(number: int, count: int) -> Outcome:
    return prove_on(_sampled(count)[number])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the status to exit with."""
    parser = argparse.ArgumentParser(prog="python -m proofs.sweep")
    parser.add_argument("--count", type=int, default=1000, help="layouts (1000)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    options = parser.parse_args(arguments)
    begin = time.perf_counter()
    count = len(_sampled(options.count))
    outcomes = []
    proved = partial(_outcome, count=options.count)
    found = in_order(proved, range(count), options.jobs)
    for outcome in watched(found, count, "layouts"):
        outcomes.append(outcome)
        for failure in outcome.failures:
            sys.stdout.write(f"{failure}\n")
    failures = [failure for outcome in outcomes for failure in outcome.failures]
    statements = sum(outcome.statements for outcome in outcomes)
    obligations = sum(outcome.obligations for outcome in outcomes)
    sys.stdout.write(
        f"{count} layouts, {statements} statements, {obligations} obligations, "
        f"{len(failures)} not proved ({time.perf_counter() - begin:.0f} s)\n"
    )
    return 1 if failures or not count else 0


if __name__ == "__main__":
    sys.exit(main())
