"""`python -m spec` prints every clause and where it is stated, proved and attacked.

The exit status is 1 if a clause lacks something for no stated reason, or some file
names a clause that `SPEC.md` does not have.
"""

from __future__ import annotations

import argparse
import sys

from spec.trace import Trace


def main() -> int:
    """Print the table. Returns the exit status."""
    trace = Trace.read()
    sys.stdout.write(f"{trace.table()}\n")
    faults = [*trace.faults()]
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    argparse.ArgumentParser(prog="python -m spec", description=__doc__).parse_args()
    sys.exit(main())
