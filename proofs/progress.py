"""How far a command is, on standard error, so that results stay alone on the other."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def watched(items: Iterable[T], total: int, things: str) -> Iterator[T]:
    """The items as they come; how many of `total` is told after each.

    On a terminal in one line that the next one overwrites, else ten times in all.
    """
    on_terminal = sys.stderr.isatty()
    for number, item in enumerate(items, 1):
        if on_terminal:
            sys.stderr.write("\r\x1b[K")
        yield item
        is_tenth = 10 * number // total > 10 * (number - 1) // total
        if on_terminal or is_tenth:
            end = "" if on_terminal else "\n"
            sys.stderr.write(f"{number} of {total} {things}{end}")
            sys.stderr.flush()
    if on_terminal:
        sys.stderr.write("\r\x1b[K")
