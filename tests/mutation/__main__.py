"""`python -m tests.mutation`: mutate the core, run its tests, report, judge.

It fails when fewer than 95 % of the mutants are noticed, when survivors.md does not
argue a survivor, and when it argues a mutant that is none.  What is killed stays killed
until its function changes; `--report` only judges what was found before.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.mutation.results import LEAST_SCORE, Results, report
from tests.mutation.runner import collected_runner
from tests.mutation.survivors import ARGUED, Judgement, argued, draft

REPORT = Path(__file__).with_name("REPORT.md")
HEAD = """# How much the tests of the core notice

Written by `python -m tests.mutation`. A mutant is one small change of one function; it
is noticed when a test fails, or when a test takes eight times as long as it should.
What is alive is argued in [survivors.md](survivors.md).

"""


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def judge(results: Results) -> bool:
    """Whether the run is good enough; says what is missing."""
    found = Judgement.of(results.survivors, argued(ARGUED.read_text()))
    for those, what in ((found.unargued, "survivors"), (found.idle, "idle arguments")):
        if those:
            say(f"{len(those)} {what}, see {ARGUED.name}:\n\n{draft(those)}")
    core = results.core
    if core.unjudged:
        say(f"{core.unjudged} mutants are not judged yet: run it again")
    say(f"{100 * core.score:.2f} % noticed, {100 * LEAST_SCORE:.0f} % asked for")
    complete = not (found.unargued or found.idle or core.unjudged)
    return complete and core.score >= LEAST_SCORE


def main() -> int:
    """Run mutmut as asked, and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("names", nargs="*", help="mutants to run again; may have *")
    asked = parser.parse_args()
    if not asked.report:
        os.environ["HYPOTHESIS_PROFILE"] = "mutation"
        command: Any = import_module("mutmut.__main__")  # which is not typed
        command.get_mutant_runner = collected_runner
        command._run(tuple(asked.names), asked.jobs)
    results = Results.read()
    REPORT.write_text(HEAD + report(results))
    say(report(results))
    return 0 if judge(results) else 1


if __name__ == "__main__":
    sys.exit(main())
