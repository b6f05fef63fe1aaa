"""The clauses of `SPEC.md`, and where the repository speaks of them.

Ids in other folders are read as text: naming a clause must not need an import.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

ROOT = Path(__file__).resolve().parents[1]
SPEC = Path(__file__).with_name("SPEC.md")

# Where a clause may be named, and what that says of it.
COLUMNS = {
    "stated": "spec/*.py",
    "proved": "proofs/**/*.py",
    "tested": "tests/**/*.py",
    "planted": "fuzz/planted_*.py",
    "watched": "fuzz/[!p]*.py",
    "cited": "patton/**/*.py",
}
FOLDERS = ("spec", "proofs", "tests", "fuzz", "patton")

# What every clause has, and the columns of which one is enough for it.
NEEDS = {
    "statement": ("stated", "proved"),
    "test": ("tested",),
    "bug": ("planted",),
}

_ID = re.compile(r"\b(?:INV|LIFE|STEP|MAP|CMD|DEV)-[A-Z]+\b")
_ROW = re.compile(rf"^\| ({_ID.pattern}) \| (.+) \| (.+) \|", re.MULTILINE)
_REASON = re.compile(rf"^\| ({'|'.join(NEEDS)}) \| (.+) \| (.+) \|", re.MULTILINE)


@attrs.frozen
class Clause:
    """One numbered sentence, and the section of the paper that it follows from."""

    id: str
    sentence: str
    paper: str


def clauses(text: str) -> list[Clause]:
    """The clauses of a specification, in its order. Raises ValueError on a twin."""
    found = [Clause(*row.groups()) for row in _ROW.finditer(text)]
    ids = [clause.id for clause in found]
    if twins := sorted({name for name in ids if ids.count(name) > 1}):
        raise ValueError(f"defined more than once: {', '.join(twins)}")
    return found


def reasons(text: str) -> dict[tuple[str, str], str]:
    """Why a clause lacks what every clause has: by clause and need."""
    return {
        (clause, row[1]): row[3]
        for row in _REASON.finditer(text)
        for clause in _ID.findall(row[2])
    }


def python_files(folder: str) -> Iterator[Path]:
    """The Python files of a folder of the repository."""
    yield from sorted((ROOT / folder).rglob("*.py"))


def mentions(folder: str) -> dict[str, list[str]]:
    """Ids named in a folder, with the files that name them."""
    return _named_in(python_files(folder))


def column(name: str) -> dict[str, list[str]]:
    """Ids named in the files of a column, with the files that name them."""
    return _named_in(sorted(ROOT.glob(COLUMNS[name])))


def _named_in(paths: Iterator[Path] | list[Path]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in paths:
        for name in sorted({*_ID.findall(path.read_text(encoding="utf-8"))}):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    return found
