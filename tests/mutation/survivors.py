"""The mutants that no test kills, and the file that argues why none has to.

The file is Markdown: a heading names a function, a `diff` block says what each of its
mutants changes, and the paragraph after it says why that cannot matter.  White space in
the blocks means nothing, so that long lines may be broken.  Under the heading `*` stand
rules for every function: parts of lines, and what they become.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

ARGUED = Path(__file__).with_name("survivors.md")
HEADING = re.compile(r"### `(?P<function>[\w.]+|\*)`")
EVERY = "*"


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

    def is_case_of(self, rule: Survivor) -> bool:
        """Whether a rule turns what was into what it becomes, at one place of it."""
        was, becomes, part = map(_plain, (self.was, self.becomes, rule.was))
        places = (match.start() for match in re.finditer(re.escape(part), was))
        return any(
            becomes == was[:at] + _plain(rule.becomes) + was[at + len(part) :]
            for at in places
        )

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


@attrs.frozen
class Judgement:
    """unargued: survivors without an argument; idle: arguments without a survivor."""

    unargued: list[Survivor]
    idle: list[Survivor]

    @classmethod
    def of(cls, survivors: Iterable[Survivor], lines: Iterable[Survivor]) -> Judgement:
        """Each line of the file argues one mutant, and a rule any number."""
        own, lines = Counter(survivors), list(lines)
        rules = [line for line in lines if line.function == EVERY]
        single = Counter(line for line in lines if line.function != EVERY)
        left = [*(own - single).elements()]
        used = {rule for rule in rules for each in left if each.is_case_of(rule)}
        return cls(
            [each for each in left if not any(map(each.is_case_of, rules))],
            [*(single - own).elements(), *(rule for rule in rules if rule not in used)],
        )


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
