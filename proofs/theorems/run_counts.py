"""Each run of SV sets up its accumulators once and reads them once.

Clause CMD-RUNS, for any number of blocks and any keys. Blocks are gone through in
ascending order of a key, which for SV says request, row set and stripe (`one_run` shows
that a block's first address tells the latter two). A run begins where the key is not
that of the block before, and ends where it is not that of the next one. By induction on
the blocks gone through: a key that is behind has had one set-up and one reading, or
none if no block has it; the present key has had its set-up; and those ahead nothing.

That generators sort blocks, and begin runs so, is tested stream by stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import z3

from proofs.numbers import Term, Work
from proofs.theorem import Claim, Without
from proofs.turns import Turns, by_induction, claimed_all, suppose_all


@attrs.frozen(eq=False)
class Runs:
    """Blocks in order, of which `done` are gone through; a command is a block.

    begins, ends: whether a run does at a block. set_up, read: how often, for a key,
    after so many blocks.
    """

    turns: Turns
    done: Term
    key: Callable[..., Term]
    begins: Callable[..., Term]
    ends: Callable[..., Term]
    set_up: Callable[..., Term]
    read: Callable[..., Term]

    def each_key(self, says: Callable[[Term], Term]) -> Term:
        """That something holds of the key of every block."""
        return self.turns.each_command(lambda j: says(self.key(j)))

    def counted(self, done: Term) -> Term:
        """How often the accumulators of each key were set up and read so far."""

        def of_one(key: Term) -> Term:
            last = self.key(done - 1)
            is_behind = z3.And(done >= 1, key <= last)
            goes_on = z3.And(done >= 1, key == last, z3.Not(self.ends(done - 1)))
            return z3.And(
                self.set_up(done, key) == z3.If(is_behind, 1, 0),
                self.read(done, key) == z3.If(z3.And(is_behind, z3.Not(goes_on)), 1, 0),
            )

        return self.each_key(of_one)


def given(space: Work, turns: Turns) -> tuple[Work, Runs]:
    """Blocks in order, some of which are gone through."""
    x = Runs(
        turns,
        z3.Int("blocks done"),
        turns.function("key", "command", "number"),
        turns.function("begins", "command", "truth"),
        turns.function("ends", "command", "truth"),
        turns.function("set up", "command", "number", "number"),
        turns.function("read", "command", "number", "number"),
    )
    k, commands = x.done, turns.commands

    def ascend(i: Term, j: Term) -> Term:
        return z3.Implies(i <= j, x.key(i) <= x.key(j))

    def is_counted(key: Term) -> Term:
        here = key == x.key(k)
        begun, ended = z3.And(here, x.begins(k)), z3.And(here, x.ends(k))
        return z3.And(
            x.set_up(k + 1, key) == x.set_up(k, key) + z3.If(begun, 1, 0),
            x.read(k + 1, key) == x.read(k, key) + z3.If(ended, 1, 0),
        )

    premises = {
        "blocks are in order": turns.each_command(
            lambda i: turns.each_command(lambda j: ascend(i, j)), "i"
        ),
        "a run begins where the key is another": turns.each_command(
            lambda j: x.begins(j) == z3.Or(j == 0, x.key(j - 1) != x.key(j))
        ),
        "a run ends where the key will be another": turns.each_command(
            lambda j: x.ends(j) == z3.Or(j == commands - 1, x.key(j + 1) != x.key(j))
        ),
        "nothing is set up or read at first": x.each_key(
            lambda key: z3.And(x.set_up(0, key) == 0, x.read(0, key) == 0)
        ),
        "the next one is counted": x.each_key(is_counted),
        "some are done": z3.And(0 <= k, k < commands),
        "so far it is right": x.counted(k),
    }
    suppose_all(space, premises)
    return space, x


def claim(space: Work, x: Runs) -> Iterator[Claim]:
    """Before the first, after one more, and once each after the last."""
    end = x.turns.commands
    once = x.each_key(
        lambda key: z3.And(x.set_up(end, key) == 1, x.read(end, key) == 1)
    )
    claims = {
        "before the first": x.counted(z3.IntVal(0)),
        "after one more": x.counted(x.done + 1),
        "after the last, once each": z3.Implies(x.counted(end), once),
    }
    yield from claimed_all(space, claims)


THEOREMS = (
    by_induction(
        "accumulators_are_set_up_and_read_once",
        "CMD-RUNS",
        given,
        claim,
        Without("blocks are in order"),
        Without("a run begins where the key is another"),
        Without("a run ends where the key will be another"),
        Without("the next one is counted"),
    ),
)
