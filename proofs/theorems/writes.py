"""A write puts each element where the map has it and changes no other written lane.

Clause CMD-WRITE, for all contents, any number of commands and any tokens. Elements are
carried to lanes; a command that opens a burst fills its other lanes with zeros. By
induction on the commands carried out: what was carried so far is in its place, and a
lane that held data, of which no element is written, holds what it held.

Elements have places of their own: that is MAP-INVERSE. That the lanes of a rectangle
are the places of its tokens and elements is MAP-ALIGN, and that a fill finds no data is
what `first_writes` is about. That generators carry every element, and to its place, is
validated stream by stream (`patton.device.provenance`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import z3

from proofs.numbers import Term, Work
from proofs.theorem import Claim, Without
from proofs.turns import Turns, by_induction, claimed_all, suppose_all


@attrs.frozen(eq=False)
class Writes:
    """Commands, of which `done` are carried out, over elements and lanes.

    place: the lane of an element; content: what is to be written. carries, fills: what
    a command does to a lane; given: with what. owner: the element that is carried to a
    lane; carried_at: the command that does it for an element. written: whether a lane
    held data before; held: what it holds after so many commands.
    """

    turns: Turns
    done: Term
    wanted: Callable[..., Term]
    place: Callable[..., Term]
    content: Callable[..., Term]
    carries: Callable[..., Term]
    fills: Callable[..., Term]
    given: Callable[..., Term]
    owner: Callable[..., Term]
    carried_at: Callable[..., Term]
    written: Callable[..., Term]
    held: Callable[..., Term]
    zero: Term

    def is_there(self, done: Term, x: Term) -> Term:
        """The element is in its place."""
        return self.held(done, self.place(x)) == self.content(x)

    def so_far(self, done: Term) -> Term:
        """What was carried is there, and what holds other data is as it was."""

        def arrived(x: Term) -> Term:
            carried = z3.And(self.wanted(x), self.carried_at(x) < done)
            return z3.Implies(carried, self.is_there(done, x))

        def kept(lane: Term) -> Term:
            foreign = self.turns.each(
                "thing",
                lambda x: z3.Implies(self.wanted(x), self.place(x) != lane),
                "element",
            )
            same = self.held(done, lane) == self.held(0, lane)
            return z3.Implies(z3.And(self.written(lane), foreign), same)

        each = self.turns.each
        return z3.And(each("thing", arrived, "element"), each("thing", kept, "lane"))


def given(space: Work, turns: Turns) -> tuple[Work, Writes]:
    """Commands, some of which are carried out and did what was to be done."""
    x = Writes(
        turns,
        z3.Int("writes done"),
        turns.function("wanted", "thing", "truth"),
        turns.function("place", "thing", "thing"),
        turns.function("content", "thing", "value"),
        turns.function("carries", "command", "thing", "truth"),
        turns.function("fills", "command", "thing", "truth"),
        turns.function("given", "command", "thing", "value"),
        turns.function("owner", "thing", "thing"),
        turns.function("carried at", "thing", "number"),
        turns.function("written", "thing", "truth"),
        turns.function("held", "command", "thing", "value"),
        z3.Const("zero", turns.sorts["value"]),
    )
    suppose_all(space, _stream(x) | _progress(x))
    return space, x


def _stream(x: Writes) -> dict[str, Term]:
    """What the stream is made of."""
    each, commands = x.turns.each, x.turns.each_command

    def own(a: Term, b: Term) -> Term:
        return z3.Implies(x.place(a) == x.place(b), a == b)

    def carried(j: Term, lane: Term) -> Term:
        element = x.owner(lane)
        right = x.given(j, lane) == x.content(element)
        fits = z3.And(x.wanted(element), x.place(element) == lane, right)
        return z3.Implies(x.carries(j, lane), fits)

    def filled(j: Term, lane: Term) -> Term:
        earlier = commands(lambda i: z3.Implies(i < j, z3.Not(x.carries(i, lane))), "i")
        holds_nothing = z3.And(z3.Not(x.written(lane)), earlier)
        return z3.Implies(x.fills(j, lane), holds_nothing)

    def all_of(a: Term) -> Term:
        at = x.carried_at(a)
        inside = z3.And(0 <= at, at < x.turns.commands)
        return z3.Implies(x.wanted(a), z3.And(inside, x.carries(at, x.place(a))))

    return {
        "elements have places of their own": each(
            "thing", lambda a: each("thing", lambda b: own(a, b), "b"), "a"
        ),
        "what is carried is an element for its place": commands(
            lambda j: each("thing", lambda lane: carried(j, lane), "lane")
        ),
        "what is filled holds nothing": commands(
            lambda j: each("thing", lambda lane: filled(j, lane), "lane")
        ),
        "every element is carried": each("thing", all_of, "element"),
    }


def _progress(x: Writes) -> dict[str, Term]:
    """What the next command does, and what was done so far."""
    k = x.done

    def after(lane: Term) -> Term:
        kept = z3.If(x.fills(k, lane), x.zero, x.held(k, lane))
        now = z3.If(x.carries(k, lane), x.given(k, lane), kept)
        return x.held(k + 1, lane) == now

    return {
        "the next one is carried out": x.turns.each("thing", after, "lane"),
        "some are done": z3.And(0 <= k, k < x.turns.commands),
        "so far all is well": x.so_far(k),
    }


def claim(space: Work, x: Writes) -> Iterator[Claim]:
    """Before the first, after one more, and after the last."""
    end = x.turns.commands

    def arrived(a: Term) -> Term:
        return z3.Implies(x.wanted(a), x.is_there(end, a))

    everything = x.turns.each("thing", arrived, "element")
    claims = {
        "before the first": x.so_far(z3.IntVal(0)),
        "after one more": x.so_far(x.done + 1),
        "after the last, every element is there": z3.Implies(x.so_far(end), everything),
    }
    yield from claimed_all(space, claims)


THEOREMS = (
    by_induction(
        "elements_are_written_to_their_places",
        "CMD-WRITE",
        given,
        claim,
        Without("elements have places of their own"),
        Without("what is carried is an element for its place"),
        Without("what is filled holds nothing"),
        Without("every element is carried"),
        Without("the next one is carried out"),
    ),
)
