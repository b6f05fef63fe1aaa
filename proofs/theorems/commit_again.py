"""A commit may stop after any command and be made again from its first one.

Clause CMD-COMMIT, for all contents, any number of bursts and every way to copy: a
command either reads a slot's burst into a buffer or writes a buffered one to its O1V,
in any order in which a burst is read before it is written. (What the host still has is
buffered from the start.) By induction on the commands of one run, which begins where
another one stopped: slots hold what they held before the first run, and so does
every burst that is no target; what is buffered is what its slot holds, and what was
written in this run is right. The first two are all that the next run relies on. So a
run that reaches its end has copied all, and one that does not has lost nothing.

That targets differ from one another and from all sources is `commit_copies`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import z3

from proofs.numbers import Term, Work
from proofs.theorem import Claim, Without
from proofs.turns import Turns, by_induction, claimed_all, suppose_all


@attrs.frozen(eq=False)
class Run:
    """Commands, of which `done` are carried out. Things are bursts and their copies.

    is_copy: which copies there are; copy: the one that a command is about; writes:
    whether it writes or reads; written_at: the command that writes a copy. original:
    content before the first run. held, buffer, buffered, written: what is where, after
    so many commands of this run.
    """

    turns: Turns
    done: Term
    is_copy: Callable[..., Term]
    source: Callable[..., Term]
    target: Callable[..., Term]
    copy: Callable[..., Term]
    writes: Callable[..., Term]
    written_at: Callable[..., Term]
    original: Callable[..., Term]
    held: Callable[..., Term]
    buffer: Callable[..., Term]
    buffered: Callable[..., Term]
    written: Callable[..., Term]

    def each_copy(self, says: Callable[[Term], Term], name: str = "one") -> Term:
        """That something holds of every copy."""

        def of_one(i: Term) -> Term:
            return z3.Implies(self.is_copy(i), says(i))

        return self.turns.each("thing", of_one, name)

    def content(self, i: Term) -> Term:
        """What is to be copied."""
        return self.original(self.source(i))

    def nothing_lost(self, done: Term) -> dict[str, Term]:
        """What the next run relies on, if this one stops here."""

        def aside(b: Term) -> Term:
            no_target = self.each_copy(lambda i: b != self.target(i))
            return z3.Implies(no_target, self.held(done, b) == self.original(b))

        def kept(i: Term) -> Term:
            return self.held(done, self.source(i)) == self.content(i)

        return {
            "slots are as they were": self.each_copy(kept),
            "all else is as it was": self.turns.each("thing", aside, "burst"),
        }

    def copied(self, done: Term) -> dict[str, Term]:
        """What this run has done."""

        def in_buffer(i: Term) -> Term:
            right = self.buffer(done, i) == self.content(i)
            return z3.Implies(self.buffered(done, i), right)

        def in_place(i: Term) -> Term:
            right = self.held(done, self.target(i)) == self.content(i)
            return z3.Implies(self.written(done, i), right)

        def is_done(i: Term) -> Term:
            return z3.Implies(self.written_at(i) < done, self.written(done, i))

        return {
            "buffers are right": self.each_copy(in_buffer),
            "what was written is right": self.each_copy(in_place),
            "what was due is written": self.each_copy(is_done),
        }


def given(space: Work, turns: Turns) -> tuple[Work, Run]:
    """A run that begins where one stopped; some of its commands are carried out."""
    x = Run(
        turns,
        z3.Int("commands done"),
        turns.function("is copy", "thing", "truth"),
        turns.function("source", "thing", "thing"),
        turns.function("target", "thing", "thing"),
        turns.function("copy", "command", "thing"),
        turns.function("writes", "command", "truth"),
        turns.function("written at", "thing", "number"),
        turns.function("original", "thing", "value"),
        turns.function("held", "command", "thing", "value"),
        turns.function("buffer", "command", "thing", "value"),
        turns.function("buffered", "command", "thing", "truth"),
        turns.function("written", "command", "thing", "truth"),
    )
    first = z3.IntVal(0)
    begin = {f"where it stopped, {s}": t for s, t in x.nothing_lost(first).items()}
    begin["what the host has is right"] = x.copied(first)["buffers are right"]
    begin["nothing is written yet"] = x.each_copy(lambda i: z3.Not(x.written(0, i)))
    now = x.nothing_lost(x.done) | x.copied(x.done)
    so_far = {f"so far, {says}": term for says, term in now.items()}
    suppose_all(space, _stream(x) | begin | _next(x) | so_far)
    return space, x


def _stream(x: Run) -> dict[str, Term]:
    """What the stream is made of."""

    def any_two(says: Callable[[Term, Term], Term]) -> Term:
        return x.each_copy(lambda i: x.each_copy(lambda j: says(i, j), "j"), "i")

    def distinct(i: Term, j: Term) -> Term:
        return z3.Implies(x.target(i) == x.target(j), i == j)

    def is_written(i: Term) -> Term:
        at = x.written_at(i)
        inside = z3.And(0 <= at, at < x.turns.commands)
        return z3.And(inside, x.writes(at), x.copy(at) == i)

    commands = x.turns.each_command
    return {
        "targets differ": any_two(distinct),
        "no target is a source": any_two(lambda i, j: x.source(i) != x.target(j)),
        "a command is about a copy": commands(lambda k: x.is_copy(x.copy(k))),
        "what is written was read": commands(
            lambda k: z3.Implies(x.writes(k), x.buffered(k, x.copy(k)))
        ),
        "every copy is written": x.each_copy(is_written),
    }


def _next(x: Run) -> dict[str, Term]:
    """What the next command does."""
    k = x.done
    writes, i = x.writes(k), x.copy(k)

    def burst(b: Term) -> Term:
        is_written = z3.And(writes, b == x.target(i))
        now = z3.If(is_written, x.buffer(k, i), x.held(k, b))
        return x.held(k + 1, b) == now

    def each(j: Term) -> Term:
        is_read = z3.And(z3.Not(writes), j == i)
        bits = z3.If(is_read, x.held(k, x.source(j)), x.buffer(k, j))
        is_written = z3.And(writes, j == i)
        return z3.And(
            x.buffer(k + 1, j) == bits,
            x.buffered(k + 1, j) == z3.Or(is_read, x.buffered(k, j)),
            x.written(k + 1, j) == z3.Or(is_written, x.written(k, j)),
        )

    return {
        "the next one changes a burst": x.turns.each("thing", burst, "burst"),
        "the next one is noted": x.each_copy(each),
        "some are done": z3.And(0 <= k, k < x.turns.commands),
    }


def claim(space: Work, x: Run) -> Iterator[Claim]:
    """Before the first, after one more, and after the last."""
    for when, done in {
        "before the first": z3.IntVal(0),
        "after one more": x.done + 1,
    }.items():
        claims = x.nothing_lost(done) | x.copied(done)
        yield from claimed_all(space, {f"{when}, {s}": t for s, t in claims.items()})
    end = x.turns.commands
    all_right = x.each_copy(lambda i: x.held(end, x.target(i)) == x.content(i))
    copied = z3.Implies(z3.And(*x.copied(end).values()), all_right)
    yield from claimed_all(space, {"after the last, all is copied": copied})


THEOREMS = (
    by_induction(
        "a_commit_can_be_made_again",
        "CMD-COMMIT",
        given,
        claim,
        Without("targets differ"),
        Without("no target is a source"),
        Without("what is written was read"),
        Without("every copy is written"),
        Without("where it stopped, all else is as it was"),
    ),
)
