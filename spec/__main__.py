"""`python -m spec` prints every clause and where it is stated, proved and attacked.

The exit status is 1 if some file names a clause that `SPEC.md` does not have.
"""

from __future__ import annotations

import sys

from spec.clauses import FOLDERS, SPEC, clauses, mentions


def table() -> tuple[str, list[str]]:
    """The table as text, and the ids that are named somewhere but not defined."""
    known = clauses(SPEC.read_text(encoding="utf-8"))
    found = {folder: mentions(folder) for folder in FOLDERS}
    head = [
        "clause".ljust(15),
        "paper".ljust(10),
        *(f"{w:>8}" for w in FOLDERS.values()),
    ]
    lines = ["  ".join(head)]
    for clause in known:
        counts = [len(found[folder].get(clause.id, [])) for folder in FOLDERS]
        cells = [f"{count or '-':>8}" for count in counts]
        lines.append("  ".join([clause.id.ljust(15), clause.paper.ljust(10), *cells]))
        lines.append(f"    {clause.sentence}")
    ids = {clause.id for clause in known}
    unknown = [
        f"{name} in {', '.join(files)}"
        for folder in FOLDERS
        for name, files in found[folder].items()
        if name not in ids
    ]
    lines += ["", f"{len(known)} clauses; the columns count files that name one"]
    return "\n".join(lines), unknown


def main() -> int:
    """Print the table. Returns the exit status."""
    text, unknown = table()
    sys.stdout.write(f"{text}\n")
    for name in unknown:
        sys.stderr.write(f"no such clause: {name}\n")
    return 1 if unknown else 0


if __name__ == "__main__":
    sys.exit(main())
