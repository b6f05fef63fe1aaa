"""A result is a function of the request's own blocks, whatever lies beside them.

Clause DEV-ALONE, for all contents, any number of commands and any set of blocks. Take
two devices that hold the same in the bursts of a request's blocks, and anything else
elsewhere. The same commands, if each reads a burst of the request's and the same
operand, leave the same in the accumulator and return the same, whatever a MACAB does
with what it reads: also its rounding is a function of that.

By induction on commands. That a burst is of one block is `own_bursts`, that what a
block holds is its own, from its first write on, is `first_writes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import z3

from proofs.numbers import Term, Work
from proofs.theorem import Claim, Without
from proofs.turns import Turns, by_induction, claimed_all, suppose_all


@attrs.frozen(eq=False)
class Devices:
    """Commands, of which `done` are carried out in each of two devices.

    own: which bursts are of the request's blocks. one, other: what a burst holds in
    the two; one_sum, other_sum: their accumulators. step: what a MACAB makes of the
    accumulator, a burst and an operand.
    """

    turns: Turns
    done: Term
    burst: Callable[..., Term]
    operand: Callable[..., Term]
    own: Callable[..., Term]
    one: Callable[..., Term]
    other: Callable[..., Term]
    one_sum: Callable[..., Term]
    other_sum: Callable[..., Term]
    step: Callable[..., Term]

    def alike(self, done: Term) -> Term:
        """The accumulators hold the same."""
        return self.one_sum(done) == self.other_sum(done)


def given(space: Work, turns: Turns) -> tuple[Work, Devices]:
    """Two devices in which some of the same commands are carried out."""
    x = Devices(
        turns,
        z3.Int("commands done"),
        turns.function("burst", "command", "thing"),
        turns.function("operand", "command", "value"),
        turns.function("own", "thing", "truth"),
        turns.function("one", "thing", "value"),
        turns.function("other", "thing", "value"),
        turns.function("one sum", "command", "value"),
        turns.function("other sum", "command", "value"),
        turns.function("step", "value", "value", "value", "value"),
    )
    k = x.done
    read, operand = x.burst(k), x.operand(k)
    after_one = x.step(x.one_sum(k), x.one(read), operand)
    after_other = x.step(x.other_sum(k), x.other(read), operand)
    next_ones = x.one_sum(k + 1) == after_one, x.other_sum(k + 1) == after_other
    premises = {
        "own bursts hold the same": turns.each(
            "thing", lambda b: z3.Implies(x.own(b), x.one(b) == x.other(b))
        ),
        "only own bursts are read": turns.each_command(lambda j: x.own(x.burst(j))),
        "accumulators are set up alike": x.alike(z3.IntVal(0)),
        "the next one is carried out": z3.And(*next_ones),
        "some are done": z3.And(0 <= k, k < turns.commands),
        "so far they are alike": x.alike(k),
    }
    suppose_all(space, premises)
    return space, x


def claim(space: Work, x: Devices) -> Iterator[Claim]:
    """Before the first, and after one more."""
    claims = {
        "before the first": x.alike(z3.IntVal(0)),
        "after one more": x.alike(x.done + 1),
    }
    yield from claimed_all(space, claims)


THEOREMS = (
    by_induction(
        "results_are_of_own_blocks",
        "DEV-ALONE",
        given,
        claim,
        Without("own bursts hold the same"),
        Without("only own bursts are read"),
        Without("accumulators are set up alike"),
        Without("the next one is carried out"),
    ),
)
