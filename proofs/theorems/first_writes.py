"""The first write into a burst leaves nothing in it that another request wrote.

Clauses CMD-FIRST and DEV-ALONE, for bursts of any width, any block, and any number of
writes. A burst of a block is given up with the block and taken again without being
cleared. Let two devices differ in what was left there, and carry out the same writes of
the new block on both: from its first write on the burst is alike in both, lane by lane.
Hence what is read of it, and every result, is a function of the block's own tokens.

By induction on writes, for one lane among all. Three rules make it true: a write begins
at or before the first token that is not written yet (LIFE-GAPLESS); so the first write
into a burst begins at or before its first lane; and a write that has the first lane
writes all others, zero where it has no token. That each stream keeps the last rule is
validated command by command (`patton.device.provenance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import z3

from proofs.numbers import Term, Truth, Work
from proofs.theorem import Claim, Theorem, Without
from proofs.turns import suppose_all


@attrs.frozen(eq=False)
class Write:
    """Tokens [first, last) of a block are written, some of them to a burst.

    The burst has tokens [start, start + lanes). one, other: what `lane` holds in the
    two devices. written, opened: how far the block is written, and whether its burst
    was ever written.
    """

    first: Term
    last: Term
    start: Term
    lanes: Term
    lane: Term
    fills: Term
    written: Term
    opened: Term
    one: Term
    other: Term
    token_data: Callable[[Term], Term]

    @property
    def touches(self) -> Term:
        """Whether the burst has one of the tokens."""
        return z3.And(self.first < self.start + self.lanes, self.start < self.last)

    def after(self, held: Term) -> Term:
        """What the lane holds after the write, if it held that before."""
        token = self.start + self.lane
        is_given = z3.And(self.first <= token, token < self.last)
        kept = z3.If(self.fills, 0, held)
        return z3.If(is_given, self.token_data(token), kept)


def alike(opened: Term, one: Term, other: Term) -> Term:
    """Once the burst is opened, the lane is the same in both devices."""
    return z3.Implies(opened, one == other)


def known(written: Term, start: Term, opened: Term) -> Term:
    """As far as the block is written, its bursts are opened."""
    return z3.Implies(written > start, opened)


def given(space: Work) -> tuple[Work, Write]:
    """Any write that leaves no gap, to a burst of which the claims hold so far."""
    names = "first last start lanes lane written one other"
    numbers = {name: z3.Int(name) for name in names.split()}
    token_data = z3.Function("token data", z3.IntSort(), z3.IntSort())
    fills, opened = z3.Bools("fills opened")
    w = Write(**numbers, fills=fills, opened=opened, token_data=token_data)
    premises = {
        "a burst has lanes": z3.And(w.start >= 0, 0 <= w.lane, w.lane < w.lanes),
        "a write begins before it ends": z3.And(0 <= w.first, w.first < w.last),
        "no gap": w.first <= w.written,
        "the first lane fills": fills == z3.And(w.touches, w.first <= w.start),
        "so far opened": known(w.written, w.start, w.opened),
        "so far alike": alike(w.opened, w.one, w.other),
    }
    suppose_all(space, premises)
    return space, w


def claim(space: Work, w: Write) -> Iterator[Claim]:
    """At first, after a write, and after a rewrite that leaves nothing."""
    opened = z3.Or(w.opened, w.touches)
    one, other = w.after(w.one), w.after(w.other)
    false, zero = z3.BoolVal(False), z3.IntVal(0)
    claims = {
        "alike before the first write": alike(false, w.one, w.other),
        "alike after one more write": alike(opened, one, other),
        "opened before the first write": known(zero, w.start, false),
        "opened after one more write": known(w.last, w.start, opened),
        "opened when nothing is left": known(zero, w.start, w.opened),
        "a first write fills": z3.Implies(z3.And(w.touches, z3.Not(w.opened)), w.fills),
    }
    for says, term in claims.items():
        yield Claim(says, Truth(space, term))


THEOREMS = (
    Theorem(
        name="nothing_foreign_in_an_opened_burst",
        clause="CMD-FIRST",
        kind="induction",
        given=given,
        claim=claim,
        witness=None,
        few=given,
        planted=(
            Without("the first lane fills"),
            Without("no gap"),
            Without("so far opened"),
        ),
    ),
)
