"""QK and SV sum exactly their products: each once, and none foreign.

Clauses CMD-BUFFER, CMD-SCORES and CMD-SUMS, for all contents, any number of commands
and any set of blocks. Two inductions, one after the other:

* Operands that are loaded at columns of the Global Buffer stay there until the last
  load is done, if no column is asked for two different operands;
* MACABs that then read one burst each, with the column's operand, leave the sum of the
  products in the accumulator. A product is in it once if its burst is one of those
  that are read, and not at all otherwise, if no burst is read twice.

Where a product is: its burst is the place that the address map gives to the element
or token, and its lane meets the operand's lane (MAP-ALIGN, proved for all geometries).
That operands of a row differ in their columns is MAP-COLUMNS, that one run has one row
is MAP-RUN. So premises of these inductions are theorems about the shipped address
functions, but for one: that the generators issue one load per operand and one read per
burst. They work on whole arrays, and every stream that tests and campaigns make is
validated for it command by command (`patton.device.provenance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import z3

from proofs.numbers import Term, Work
from proofs.theorem import Claim, Without
from proofs.turns import Turns, by_induction, claimed_all, suppose_all


@attrs.frozen(eq=False)
class Loads:
    """Loads of the Global Buffer, of which `done` are made."""

    turns: Turns
    done: Term
    column: Callable[..., Term]
    operand: Callable[..., Term]
    buffer: Callable[..., Term]

    def so_far(self, done: Term) -> Term:
        """What has been loaded is there."""

        def is_there(j: Term) -> Term:
            found = self.buffer(done, self.column(j)) == self.operand(j)
            return z3.Implies(j < done, found)

        return self.turns.each_command(is_there)


def given_loads(space: Work, turns: Turns) -> tuple[Work, Loads]:
    """Loads, of which some are made and are where they should be."""
    x = Loads(
        turns,
        z3.Int("loads done"),
        turns.function("column", "command", "thing"),
        turns.function("operand", "command", "value"),
        turns.function("buffer", "command", "thing", "value"),
    )

    def one_operand(i: Term, j: Term) -> Term:
        meet = x.column(i) == x.column(j)
        return z3.Implies(meet, x.operand(i) == x.operand(j))

    def loaded(c: Term) -> Term:
        kept = x.buffer(x.done, c)
        now = z3.If(c == x.column(x.done), x.operand(x.done), kept)
        return x.buffer(x.done + 1, c) == now

    premises = {
        "a column has one operand": turns.each_command(
            lambda i: turns.each_command(lambda j: one_operand(i, j)), "i"
        ),
        "the next one is loaded": turns.each("thing", loaded),
        "some are done": z3.And(0 <= x.done, x.done < turns.commands),
        "so far they are there": x.so_far(x.done),
    }
    suppose_all(space, premises)
    return space, x


def claim_loads(space: Work, x: Loads) -> Iterator[Claim]:
    """Before the first, and after one more."""
    claims = {
        "before the first": x.so_far(z3.IntVal(0)),
        "after one more": x.so_far(x.done + 1),
    }
    yield from claimed_all(space, claims)


@attrs.frozen(eq=False)
class Reads:
    """MACABs of one accumulator, of which `done` are carried out.

    Things are bursts. place: the burst in which a product's datum lies. taken: how
    often a product has been added.
    """

    turns: Turns
    done: Term
    burst: Callable[..., Term]
    product: Callable[..., Term]
    total: Callable[..., Term]
    accumulator: Callable[..., Term]
    place: Callable[..., Term]
    wanted: Callable[..., Term]
    read_at: Callable[..., Term]
    taken: Callable[..., Term]

    def each_product(self, says: Callable[[Term], Term]) -> Term:
        """That something holds of every product."""
        return self.turns.each("thing", says)

    def once(self, done: Term) -> Term:
        """So far each wanted product has been added once or is yet to come."""

        def is_once(x: Term) -> Term:
            added = z3.And(self.wanted(x), self.read_at(x) < done)
            return self.taken(done, x) == z3.If(added, 1, 0)

        return self.each_product(is_once)


def given_reads(space: Work, turns: Turns) -> tuple[Work, Reads]:
    """MACABs, some of which are carried out and did what was to be done."""
    x = Reads(
        turns,
        z3.Int("reads done"),
        turns.function("burst", "command", "thing"),
        turns.function("product", "command", "real"),
        turns.function("total", "command", "real"),
        turns.function("accumulator", "command", "real"),
        turns.function("place", "thing", "thing"),
        turns.function("wanted", "thing", "truth"),
        turns.function("read at", "thing", "number"),
        turns.function("taken", "command", "thing", "number"),
    )
    suppose_all(space, _device(x) | _stream(x))
    return space, x


def _device(x: Reads) -> dict[str, Term]:
    """What is counted, and what the next MACAB does."""
    k = x.done

    def counted(p: Term) -> Term:
        adds = x.place(p) == x.burst(k)
        return x.taken(k + 1, p) == x.taken(k, p) + z3.If(adds, 1, 0)

    return {
        "the accumulator is set up": x.accumulator(0) == x.total(0),
        "nothing is taken at first": x.each_product(lambda p: x.taken(0, p) == 0),
        "the total goes on": x.total(k + 1) == x.total(k) + x.product(k),
        "the next one adds": x.accumulator(k + 1) == x.accumulator(k) + x.product(k),
        "the next one is counted": x.each_product(counted),
        "some are done": z3.And(0 <= k, k < x.turns.commands),
        "so far it is the total": x.accumulator(k) == x.total(k),
        "so far each once": x.once(k),
    }


def _stream(x: Reads) -> dict[str, Term]:
    """What the stream is made of."""

    def differ(i: Term, j: Term) -> Term:
        return z3.Implies(x.burst(i) == x.burst(j), i == j)

    def is_read(p: Term) -> Term:
        at = x.read_at(p)
        inside = z3.And(0 <= at, at < x.turns.commands)
        return z3.Implies(x.wanted(p), z3.And(inside, x.burst(at) == x.place(p)))

    def own(p: Term) -> Term:
        return x.turns.each_command(
            lambda j: z3.Implies(x.burst(j) == x.place(p), x.wanted(p)), "i"
        )

    commands = x.turns.each_command
    return {
        "no burst is read twice": commands(
            lambda i: commands(lambda j: differ(i, j)), "i"
        ),
        "all that is wanted is read": x.each_product(is_read),
        "what is read is wanted": x.each_product(own),
    }


def claim_reads(space: Work, x: Reads) -> Iterator[Claim]:
    """Before the first, after one more, and after the last."""
    claims = {
        "the sum, before the first": x.accumulator(0) == x.total(0),
        "the sum, after one more": x.accumulator(x.done + 1) == x.total(x.done + 1),
        "each once, before the first": x.once(z3.IntVal(0)),
        "each once, after one more": x.once(x.done + 1),
    }
    yield from claimed_all(space, claims)


def given_end(space: Work, turns: Turns) -> tuple[Work, Reads]:
    """All MACABs carried out."""
    space_again, x = given_reads(space, turns)
    suppose_all(space, {"all are done": x.once(turns.commands)})
    return space_again, x


def claim_end(space: Work, x: Reads) -> Iterator[Claim]:
    """Each wanted product is in the sum once, and no other one at all."""
    end = x.turns.commands

    def exactly(p: Term) -> Term:
        return x.taken(end, p) == z3.If(x.wanted(p), 1, 0)

    yield from claimed_all(space, {"exactly the wanted ones": x.each_product(exactly)})


THEOREMS = (
    by_induction(
        "operands_stay_loaded",
        "CMD-BUFFER",
        given_loads,
        claim_loads,
        Without("a column has one operand"),
        Without("the next one is loaded"),
    ),
    by_induction(
        "products_are_summed_once_each",
        "CMD-SCORES",
        given_reads,
        claim_reads,
        Without("no burst is read twice"),
        Without("what is read is wanted"),
        Without("the next one adds"),
    ),
    by_induction(
        "sums_are_complete",
        "CMD-SUMS",
        given_end,
        claim_end,
        Without("all that is wanted is read"),
        Without("all are done"),
    ),
)
