"""The mutants that no test kills, and the file that argues why none has to.

The file is Markdown: a heading names a function, a `diff` block says what each of its
mutants changes, and the paragraph after it says why that cannot matter.  White space in
the blocks means nothing, so that long lines may be broken.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

ARGUED = Path(__file__).with_name("survivors.md")
HEADING = re.compile(r"### `(?P<function>[\w.]+)`")


def _plain(text: str) -> str:
    return "".join(text.split())


@attrs.frozen
class Survivor:
    """A mutant by what it changes: mutmut's numbers move with every edit."""

    function: str  # with its module and class
    was: str = attrs.field(eq=_plain)
    becomes: str = attrs.field(eq=_plain)

    @classmethod
    def of(cls, function: str, diff: Iterable[str]) -> Survivor:
        """From the lines of a diff; context and headers are left out."""
        lines = [line for line in diff if not line.startswith(("---", "+++"))]
        was, becomes = (
            "\n".join(line[1:].strip() for line in lines if line[:1] == sign)
            for sign in "-+"
        )
        return cls(function, was, becomes)

    def diff(self) -> str:
        """As it stands in the file."""
        signed = (("- ", self.was), ("+ ", self.becomes))
        return "\n".join(
            sign + line for sign, text in signed for line in text.splitlines()
        )


def argued(text: str) -> list[Survivor]:
    """The survivors of a file. Raises ValueError where an argument is missing."""
    found: list[Survivor] = []
    function = ""
    blocks = re.split(r"\n\s*\n", text)
    for block, after in zip(blocks, [*blocks[1:], ""], strict=True):
        if heading := HEADING.fullmatch(block.strip()):
            function = heading["function"]
        elif block.startswith("```diff"):
            if not after.strip() or after.startswith(("#", "```")):
                raise ValueError(f"{function}: no argument after\n{block}")
            found += [Survivor.of(function, part) for part in _changes(block)]
    return found


def _changes(block: str) -> Iterator[list[str]]:
    """The changes of a diff block: a removed line after an added one starts anew."""
    change: list[str] = []
    for line in block.splitlines()[1:-1]:
        if line.startswith("-") and change and change[-1].startswith("+"):
            yield change
            change = []
        change.append(line)
    yield change


def missing(wanted: Iterable[Survivor], given: Iterable[Survivor]) -> list[Survivor]:
    """Those of `wanted` that are not in `given`, each as often as it is not."""
    return [*(Counter(wanted) - Counter(given)).elements()]


def draft(survivors: Iterable[Survivor]) -> str:
    """The survivors as they stand in the file, the arguments left to write."""
    by_function: dict[str, list[Survivor]] = {}
    for survivor in survivors:
        by_function.setdefault(survivor.function, []).append(survivor)
    parts = []
    for function, those in sorted(by_function.items()):
        diffs = "\n".join(survivor.diff() for survivor in those)
        parts.append(f"### `{function}`\n\n```diff\n{diffs}\n```\n")
    return "\n".join(parts)
