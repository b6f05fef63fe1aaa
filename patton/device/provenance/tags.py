"""Tags: what a lane holds in place of a number, and who its token is.

A lane holds nothing that was ever written, a zero that was filled in, or one element of
the Key or Value of a token. A token that is written again is another token: its number
in the `Ledger` is new, so that what an overwritten or evicted token left behind is told
apart from what replaced it.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.device.cells import Ints

Identities = NDArray[np.uint64]

# Numbers that are no token of the ledger.
UNWRITTEN, FILLED, NOBODY = 0, 1, 2
_FIRST_TOKEN = 3

NOT_WRITTEN = -1  # step of a token that a stream sends without being asked to

# A tag is token << 24 | kind << 23 | element.
_ELEMENT_BITS = 23
_TOKEN_SHIFT = _ELEMENT_BITS + 1
ZERO = FILLED << _TOKEN_SHIFT


class Kind(IntEnum):
    """Which vector of a token an element belongs to."""

    KEY = 0
    VALUE = 1


class Fault(StrEnum):
    """What can be wrong with a stream, in the order in which it is looked for."""

    PLACEMENT = "wrong placement"  # the step asks for what cannot be right
    TABLE = "wrong table"  # the stream says of its data what the step does not
    PLACE = "write to a foreign place"
    UNWRITTEN = "unwritten lane"
    ZERO = "zero fill in place of a token"
    OPERAND = "wrong operand"
    FOREIGN = "foreign term"
    DOUBLED = "doubled term"
    MISSING = "missing term"
    ORDER = "wrong order"


def tags_of(tokens: Ints, kind: Kind, elements: Any, head_dim: int) -> Ints:
    """Tags of elements of tokens; the arguments broadcast.

    Elements from head_dim on are padding, which is filled with zero whenever a token is
    written.
    """
    named = tokens << _TOKEN_SHIFT | kind << _ELEMENT_BITS | elements
    others = np.minimum(tokens, FILLED) << _TOKEN_SHIFT
    is_named = (tokens > FILLED) & (np.asarray(elements) < head_dim)
    return np.where(is_named, named, others)


def token_of(tag: int) -> int:
    """The token of a tag, or UNWRITTEN, FILLED, NOBODY."""
    return tag >> _TOKEN_SHIFT


@attrs.define(eq=False)
class Ledger:
    """All tokens ever written: the request, the position in it, the step, who it is.

    names: requests; a token refers to them by index. identity: as the engine gave it,
    0 if it did not.
    """

    names: list[object] = attrs.field(factory=list)
    size: int = _FIRST_TOKEN
    _index: dict[object, int] = attrs.field(factory=dict)
    _rows: Ints = attrs.field(factory=lambda: np.zeros((4, 64), np.int64))

    @property
    def identity(self) -> Identities:
        """Identity of every token."""
        column: Identities = self._rows[3].view(np.uint64)
        return column

    def add(
        self,
        step: int,
        names: Sequence[object],
        request: Ints,
        position: Ints,
        identity: Identities | None,
    ) -> Ints:
        """Numbers of new tokens [n]; request: indices into `names`."""
        first, end = self.size, self.size + len(request)
        if end > self._rows.shape[1]:
            grown = np.zeros((4, max(end, 2 * self.size)), np.int64)
            grown[:, :first] = self._rows[:, :first]
            self._rows = grown
        known = np.array([self._number(name) for name in names], np.int64)
        new = self._rows[:, first:end]
        new[0], new[1], new[2] = known[request], position, step
        if identity is not None:
            new[3] = identity.view(np.int64)
        self.size = end
        return np.arange(first, end)

    def _number(self, name: object) -> int:
        number = self._index.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def describe(self, tag: int) -> str:
        """A tag in words."""
        token = token_of(tag)
        if token == UNWRITTEN:
            return "a lane that was never written"
        if token == FILLED:
            return "a zero that was filled in"
        kind = Kind(tag >> _ELEMENT_BITS & 1).name.title()
        element = tag & ((1 << _ELEMENT_BITS) - 1)
        return f"{kind} element {element} of {self.describe_token(token)}"

    def describe_token(self, token: int) -> str:
        """A token in words."""
        if token == UNWRITTEN:
            return "no token (never written)"
        if token == FILLED:
            return "no token (filled with zero)"
        if token == NOBODY:
            return "no token of the stream's table"
        request, position, step, _ = self._rows[:, token].tolist()
        name = self.names[request]
        if step == NOT_WRITTEN:
            return f"position {position} of request {name!r}, not written by this step"
        return f"position {position} of request {name!r} as written in step {step}"
