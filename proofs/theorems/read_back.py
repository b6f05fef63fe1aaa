"""A read-back returns what was asked for, in the order of the positions.

Clause CMD-READBACK, for all contents, any number of commands and any ranges. Two
inductions:

* after so many reads, what they returned is what the bursts hold, and no burst has
  changed. So each element that is asked for is in the result of the read that has its
  place;
* the table in which the host collects tokens is made of segments, one a block, each
  behind the one before. As the positions of a range ascend from segment to segment,
  the place in the table ascends with the position.

Which lane of a result is which token and element is MAP-ALIGN. That there is a read for
each element is validated stream by stream (`patton.device.provenance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import z3

from proofs.numbers import Term, Work
from proofs.theorem import Claim, Without
from proofs.turns import Turns, by_induction, claimed_all, suppose_all


@attrs.frozen(eq=False)
class Reads:
    """Reads of bursts, of which `done` are carried out.

    held: what a burst holds after so many; returned: the result of a read, as it is
    after so many. place: the burst of an element; read_at: the read that has it.
    """

    turns: Turns
    done: Term
    burst: Callable[..., Term]
    held: Callable[..., Term]
    returned: Callable[..., Term]
    asked: Callable[..., Term]
    place: Callable[..., Term]
    read_at: Callable[..., Term]

    def so_far(self, done: Term) -> Term:
        """Reads returned what bursts held, which they still do."""

        def is_returned(j: Term) -> Term:
            right = self.returned(done, j) == self.held(0, self.burst(j))
            return z3.Implies(j < done, right)

        kept = self.turns.each("thing", lambda b: self.held(done, b) == self.held(0, b))
        return z3.And(self.turns.each_command(is_returned), kept)


def given_reads(space: Work, turns: Turns) -> tuple[Work, Reads]:
    """Reads, some of which are carried out, and elements that are asked for."""
    x = Reads(
        turns,
        z3.Int("reads done"),
        turns.function("burst", "command", "thing"),
        turns.function("held", "command", "thing", "value"),
        turns.function("returned", "command", "command", "value"),
        turns.function("asked", "thing", "truth"),
        turns.function("place", "thing", "thing"),
        turns.function("read at", "thing", "number"),
    )
    k = x.done

    def result(j: Term) -> Term:
        now = z3.If(j == k, x.held(k, x.burst(k)), x.returned(k, j))
        return x.returned(k + 1, j) == now

    def is_read(a: Term) -> Term:
        at = x.read_at(a)
        inside = z3.And(0 <= at, at < turns.commands)
        return z3.Implies(x.asked(a), z3.And(inside, x.burst(at) == x.place(a)))

    premises = {
        "the next one returns its burst": turns.each_command(result),
        "a read changes nothing": turns.each(
            "thing", lambda b: x.held(k + 1, b) == x.held(k, b)
        ),
        "every element is read": turns.each("thing", is_read),
        "some are done": z3.And(0 <= k, k < turns.commands),
        "so far all is well": x.so_far(k),
    }
    suppose_all(space, premises)
    return space, x


def claim_reads(space: Work, x: Reads) -> Iterator[Claim]:
    """Before the first, after one more, and after the last."""
    end = x.turns.commands

    def is_right(a: Term) -> Term:
        right = x.returned(end, x.read_at(a)) == x.held(0, x.place(a))
        return z3.Implies(x.asked(a), right)

    all_right = x.turns.each("thing", is_right)
    claims = {
        "before the first": x.so_far(z3.IntVal(0)),
        "after one more": x.so_far(x.done + 1),
        "after the last, all is returned": z3.Implies(x.so_far(end), all_right),
    }
    yield from claimed_all(space, claims)


@attrs.frozen(eq=False)
class Table:
    """Segments of a table, of which `done` are entered; a command is a segment.

    first, count: positions of a segment; row: of the table, where it begins.
    """

    turns: Turns
    done: Term
    first: Callable[..., Term]
    count: Callable[..., Term]
    row: Callable[..., Term]

    def in_order(self, done: Term) -> Term:
        """What was entered lies before, in the table as in the request."""

        def before(j: Term) -> Term:
            positions = self.first(j) + self.count(j) <= self.first(done)
            rows = self.row(j) + self.count(j) <= self.row(done)
            return z3.Implies(j < done, z3.And(positions, rows))

        return self.turns.each_command(before)


def given_table(space: Work, turns: Turns) -> tuple[Work, Table]:
    """Segments of one range, some of which are entered in their order."""
    x = Table(
        turns,
        z3.Int("segments done"),
        turns.function("first", "command", "number"),
        turns.function("count", "command", "number"),
        turns.function("row", "command", "number"),
    )
    k = x.done
    premises = {
        "a segment is not empty": turns.each_command(lambda j: x.count(j) >= 1),
        "the next one goes on": x.first(k) + x.count(k) <= x.first(k + 1),
        "the next one is behind": x.row(k + 1) == x.row(k) + x.count(k),
        "some are done": z3.And(0 <= k, k + 1 < turns.commands),
        "so far they are in order": x.in_order(k),
    }
    suppose_all(space, premises)
    return space, x


def claim_table(space: Work, x: Table) -> Iterator[Claim]:
    """In order, and therefore two tokens are in the table as in the request."""
    after = x.done + 1
    one, other = z3.Ints("offset offset_2")

    def ascend(j: Term) -> Term:
        inside = z3.And(0 <= one, one < x.count(j), 0 <= other, other < x.count(after))
        positions = x.first(j) + one < x.first(after) + other
        rows = x.row(j) + one < x.row(after) + other
        return z3.Implies(z3.And(j < after, inside), z3.And(positions, rows))

    claims = {
        "in order before the first": x.in_order(z3.IntVal(0)),
        "in order after one more": x.in_order(after),
        "a later row is a later position": x.turns.each_command(ascend),
    }
    yield from claimed_all(space, claims)


THEOREMS = (
    by_induction(
        "what_is_asked_for_is_returned",
        "CMD-READBACK",
        given_reads,
        claim_reads,
        Without("the next one returns its burst"),
        Without("a read changes nothing"),
        Without("every element is read"),
    ),
    by_induction(
        "positions_come_back_in_order",
        "CMD-READBACK",
        given_table,
        claim_table,
        Without("the next one goes on"),
        Without("the next one is behind"),
    ),
)
