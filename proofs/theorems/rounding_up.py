"""The shipped ceiling rounds up: the least number of parts that hold everything.

Clause MAP-ACCEPT. The layout divides everything it has to house with `_ceil`, which
relies on Python's way to divide negative numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patton import layout
from proofs.lemmas import MONOTONE
from proofs.numbers import implies
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem

_LARGE = 2**70  # beyond all that a layout counts


def given(space: Space) -> tuple[Space, Any, Any]:
    """Any amount, and parts of any size."""
    space.rounds_down = True
    amount, size = space.number("amount", _LARGE), space.number("size", _LARGE)
    space.assume("parts hold something", size >= 1)
    return space, amount, size


def claim(space: Space, amount: Any, size: Any) -> Iterator[Claim]:
    """The parts hold the amount, one less would not."""
    parts = layout._ceil(amount, size)  # noqa: SLF001
    shown = {"parts": parts}
    space.remind(MONOTONE, a=parts, b=0, m=size)
    yield Claim("the parts hold the amount", amount <= parts * size, shown)
    yield Claim("one part less does not", (parts - 1) * size < amount, shown)
    says = "something needs a part"
    yield Claim(says, implies(amount >= 1, parts >= 1), shown)


THEOREMS = (
    Theorem(
        name="ceilings_are_least",
        clause="MAP-ACCEPT",
        kind="all integers",
        given=given,
        claim=claim,
        witness=Case(None, {"amount": 7, "size": 3}),
        planted=(
            Swap("layout._ceil", "-(-dividend // divisor)", "dividend // divisor"),
        ),
    ),
)
