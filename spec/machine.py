"""The abstract machine: what the runtime may do, event by event (clauses: SPEC.md).

A state is a set of maps. A transition gives a `Move`: its guard, clause by clause, and
the maps that it changes. Which granule index or slot an event takes is an argument of
the transition: the guard says whether the choice is allowed, not which is best.

An argument's name says what it is: r a request, b a block, p a pair, i a place in it,
z a slot; n, first, last and verified are numbers of tokens (`spec.logic.SORTS`).

Not modelled: addresses and data, the order of blocks within a request's table, and the
preference among allowed choices.
"""

from __future__ import annotations

import inspect
from typing import Any

import attrs

from spec.logic import ANY, Bool, Logic, Map, Term
from spec.state import (
    PLANNING,
    READING,
    WRITING,
    State,
    adoptable,
    due,
    full,
    held,
    holds,
    packed,
)

Guard = dict[str, Bool]
Changes = dict[str, Map]


@attrs.define(eq=False)
class Move:
    """What a transition asks for, by clause, and the maps that it changes."""

    guard: Guard
    changes: Changes


# --- requests and their references --------------------------------------------------


def start(lg: Logic, s: State, r: Term) -> Move:
    """A request begins to run."""
    return Move({"LIFE-FINISH": lg.not_(s.active(r))}, {"active": s.active.add(r)})


def share(lg: Logic, s: State, r: Term, b: Term) -> Move:
    """A bound block, cached or of a running request, joins the request's prefix."""
    guard = {
        "INV-HELD": s.active(r),
        "LIFE-SHARE": lg.and_(s.bound(b), lg.not_(holds(lg, s, r, b))),
        "LIFE-PREFIX": lg.not_(s.grown(r)),
    }
    changes = {
        "sharer": s.sharer.add(r, b),
        "tail": s.tail.set((r,), b),
        "sealing": s.sealing.set((b,), lg.not_(s.sealed(b))),
    }
    return Move(guard, changes)


def leave(lg: Logic, s: State, r: Term, b: Term) -> Move:
    """A request gives up a block that others hold on to."""
    others, changes = _without(lg, s, r, b)
    return Move({"LIFE-RELEASE": lg.and_(holds(lg, s, r, b), others)}, changes)


def cache(lg: Logic, s: State, r: Term, b: Term) -> Move:
    """The last reference to a full, confirmed block goes; its content stays."""
    others, changes = _without(lg, s, r, b)
    guard = {
        "LIFE-RELEASE": lg.and_(holds(lg, s, r, b), lg.not_(others)),
        "LIFE-CACHE": lg.eq(s.confirmed(b), lg.tokens),
    }
    sealing = s.sealing.set((b,), lg.not_(s.sealed(b)))
    return Move(guard, changes | {"sealing": sealing})


def drop(lg: Logic, s: State, r: Term, b: Term) -> Move:
    """The last reference to a partial block goes, and slot and granule with it."""
    others, changes = _without(lg, s, r, b)
    guard = {
        "LIFE-RELEASE": lg.and_(holds(lg, s, r, b), lg.not_(others)),
        "LIFE-DROP": s.confirmed(b) < lg.tokens,
    }
    return Move(guard, changes | _unbound(lg, s, b))


def _without(lg: Logic, s: State, r: Term, b: Term) -> tuple[Bool, Changes]:
    """Whether others hold the block, and all references but the request's own."""
    binder, sharer = s.binder.remove(r, b), s.sharer.remove(r, b)
    others = lg.or_(binder.any(ANY, b), sharer.any(ANY, b))
    return others, {"binder": binder, "sharer": sharer, "grown": s.grown.add(r)}


def end(lg: Logic, s: State, r: Term) -> Move:
    """A request that has given up all its blocks ends, and its ownership with it."""
    empty = lg.not_(lg.or_(s.binder.any(r, ANY), s.sharer.any(r, ANY)))
    changes = {
        "active": s.active.remove(r),
        "grown": s.grown.remove(r),
        "owns": s.owns.where(lambda q, _: lg.not_(lg.eq(q, r))),
    }
    return Move({"LIFE-FINISH": s.active(r), "INV-HELD": empty}, changes)


def evict(lg: Logic, s: State, b: Term) -> Move:
    """The content of a cached block goes."""
    cached = lg.and_(s.bound(b), lg.not_(held(lg, s, b)))
    return Move({"LIFE-EVICT": cached}, _unbound(lg, s, b))


def _unbound(lg: Logic, s: State, b: Term) -> Changes:
    """Place and slot are free; with its last place a pair is free, and no one's."""
    p, i, z = s.pair(b), s.place(b), s.slot(b)
    empty = lg.forall("i", lambda j: lg.or_(lg.eq(j, i), lg.not_(s.occupied(p, j))))
    gone = ("bound", "in_o1v", "in_slot", "begun", "copied", "sealed", "sealing")
    return {name: getattr(s, name).remove(b) for name in gone} | {
        "written": s.written.set((b,), 0),
        "confirmed": s.confirmed.set((b,), 0),
        "used": s.used.set((p,), lg.not_(empty)),
        "occupied": s.occupied.remove(p, i),
        "owns": s.owns.where(lambda _, x: lg.not_(lg.and_(lg.eq(x, p), empty))),
        "slot_used": s.slot_used.set(
            (z,), lg.and_(s.slot_used(z), lg.not_(s.in_slot(b)))
        ),
    }


# --- binding: a new block gets its granule index ------------------------------------


def bind_own(lg: Logic, s: State, r: Term, b: Term, p: Term, i: Term) -> Move:
    """A new block takes a place of a pair that the request owns."""
    guard, changes = _bound(lg, s, r, b, p, i)
    return Move(guard | {"LIFE-OWNER": s.owns(r, p)}, changes)


def bind_fresh(lg: Logic, s: State, r: Term, b: Term, p: Term, i: Term) -> Move:
    """A new block takes a free pair, for want of a place to fill on."""
    guard, changes = _bound(lg, s, r, b, p, i)
    guard |= {
        "LIFE-OWNER": lg.not_(s.used(p)),
        "LIFE-FILL": packed(lg, s, r),
        "LIFE-ADOPT": lg.not_(adoptable(lg, s, r, s.pair(s.tail(r)))),
    }
    return Move(guard, changes)


def bind_adopting(lg: Logic, s: State, r: Term, b: Term, p: Term, i: Term) -> Move:
    """A new block fills on the pair in which the request's prefix hit ends."""
    guard, changes = _bound(lg, s, r, b, p, i)
    guard |= {"LIFE-FILL": packed(lg, s, r), "LIFE-ADOPT": adoptable(lg, s, r, p)}
    return Move(guard, changes)


def _bound(
    lg: Logic, s: State, r: Term, b: Term, p: Term, i: Term
) -> tuple[Guard, Changes]:
    """The block has the place, and is written to its O1V unless it takes a slot."""
    guard = {
        "INV-HELD": s.active(r),
        "LIFE-BIND": lg.not_(s.bound(b)),
        "INV-DISTINCT": lg.not_(s.occupied(p, i)),
    }
    changes = {
        "grown": s.grown.add(r),
        "tail": s.tail.set((r,), b),
        "binder": s.binder.add(r, b),
        "bound": s.bound.add(b),
        "pair": s.pair.set((b,), p),
        "place": s.place.set((b,), i),
        "used": s.used.add(p),
        "occupied": s.occupied.add(p, i),
        "block_at": s.block_at.set((p, i), b),
        "owns": s.owns.add(r, p),
        "in_o1v": s.in_o1v.add(b),
    }
    return guard, changes


# --- writes: levels, and the Commit Zone --------------------------------------------


def confirm(lg: Logic, s: State, r: Term, b: Term, n: Term) -> Move:
    """The first n tokens that a request wrote into its block are verified."""
    rises = lg.and_(s.confirmed(b) < n, n <= s.written(b))
    guard = {"LIFE-CONFIRM": lg.and_(s.binder(r, b), rises)}
    return Move(guard, {"confirmed": s.confirmed.set((b,), n)})


def write_whole(lg: Logic, s: State, r: Term, b: Term) -> Move:
    """A block written full and confirmed in one go bypasses the Commit Zone."""
    guard, changes = _written(lg, s, r, b, 0, lg.tokens, lg.tokens)
    return Move(guard | {"LIFE-STAY": lg.not_(s.begun(b))}, changes)


def write_staged(
    lg: Logic, s: State, r: Term, b: Term, last: Term, verified: Term, z: Term
) -> Move:
    """The first write leaves the block partial: it takes a free slot of its stripe."""
    guard, changes = _written(lg, s, r, b, 0, last, verified)
    guard |= {
        "LIFE-STAY": lg.not_(s.begun(b)),
        "LIFE-STAGE": lg.and_(lg.staging, verified < lg.tokens),
        "INV-SLOT": lg.not_(s.slot_used(z)),
        "INV-RESERVED": lg.aligned(z, s.pair(b), s.place(b)),
    }
    changes |= {
        "in_o1v": s.in_o1v.remove(b),
        "in_slot": s.in_slot.add(b),
        "slot": s.slot.set((b,), z),
        "slot_used": s.slot_used.add(z),
        "block_in": s.block_in.set((z,), b),
    }
    return Move(guard, changes)


def write_direct(
    lg: Logic, s: State, r: Term, b: Term, last: Term, verified: Term
) -> Move:
    """The first write leaves the block partial, and no slot of its stripe is free."""
    guard, changes = _written(lg, s, r, b, 0, last, verified)
    p, i = s.pair(b), s.place(b)
    none = lg.forall("z", lambda z: lg.implies(lg.aligned(z, p, i), s.slot_used(z)))
    guard |= {
        "LIFE-STAY": lg.not_(s.begun(b)),
        "LIFE-STAGE": verified < lg.tokens,
        "LIFE-DIRECT": lg.or_(lg.not_(lg.staging), none),
    }
    return Move(guard, changes)


def write_on(
    lg: Logic, s: State, r: Term, b: Term, first: Term, last: Term, verified: Term
) -> Move:
    """A further write, or a rewrite, goes where the block was begun or committed."""
    guard, changes = _written(lg, s, r, b, first, last, verified)
    return Move(guard | {"LIFE-STAY": s.begun(b)}, changes)


def _written(
    lg: Logic, s: State, r: Term, b: Term, first: Term, last: Term, verified: Term
) -> tuple[Guard, Changes]:
    """Tokens [first, last) are written anew; what lay beyond them is no more."""
    inside = (0 <= first, first <= s.written(b), first < last, last <= lg.tokens)
    guard = {
        "LIFE-WRITER": s.binder(r, b),
        "LIFE-SEALED": lg.not_(s.sealed(b)),
        "LIFE-GAPLESS": lg.and_(*inside),
        "LIFE-LEVELS": lg.if_(
            first <= s.confirmed(b),
            lg.and_(first <= verified, verified <= last),
            lg.eq(verified, s.confirmed(b)),
        ),
    }
    changes = {
        "begun": s.begun.add(b),
        "written": s.written.set((b,), last),
        "confirmed": s.confirmed.set((b,), verified),
        "copied": s.copied.remove(b),
    }
    return guard, changes


def retract(lg: Logic, s: State, r: Term, b: Term) -> Move:
    """A rewrite that ends before this block leaves nothing in it."""
    guard = {"LIFE-WRITER": s.binder(r, b), "LIFE-SEALED": lg.not_(s.sealed(b))}
    levels = {name: getattr(s, name).set((b,), 0) for name in ("written", "confirmed")}
    return Move(guard, levels | {"copied": s.copied.remove(b)})


# --- reads, commits, and the engine step --------------------------------------------


def read(lg: Logic, s: State, r: Term, b: Term, n: Term) -> Move:
    """A request reads the first n tokens of a block, or some of them."""
    seen = lg.and_(holds(lg, s, r, b), n <= s.written(b))
    return Move({"LIFE-READ": seen}, {})


def copy(lg: Logic, s: State, b: Term) -> Move:
    """A full block is copied to its O1V; may be repeated, and shows nowhere yet."""
    return Move({"LIFE-COMMIT": due(lg, s, b)}, {"copied": s.copied.add(b)})


def publish(_: Logic, s: State, b: Term) -> Move:
    """The O1V of a copied block becomes visible, and its slot is free."""
    changes = {
        "in_o1v": s.in_o1v.add(b),
        "in_slot": s.in_slot.remove(b),
        "slot_used": s.slot_used.remove(s.slot(b)),
        "copied": s.copied.remove(b),
    }
    return Move({"LIFE-PUBLISH": s.copied(b)}, changes)


def begin_writes(_: Logic, s: State) -> Move:
    """Planning is over: one placement serves all layers of the step."""
    return Move({}, {"phase": s.phase.set((), WRITING)})


def begin_reads(_: Logic, s: State) -> Move:
    """All of the step is written, so that its reads see it."""
    return Move({}, {"phase": s.phase.set((), READING)})


def end_step(lg: Logic, s: State) -> Move:
    """What was shared in this step is full; full, it stays as it is from now on."""
    filled = s.sealing.all(
        lambda b: lg.or_(full(lg, s, b), lg.not_(s.sharer.any(ANY, b)))
    )
    changes = {
        "sealed": s.sealed.union(s.sealing.where(lambda b: full(lg, s, b))),
        "sealing": s.sealing.where(lambda _: False),
        "phase": s.phase.set((), PLANNING),
    }
    return Move({"STEP-SHARED": filled}, changes)


# --- all transitions, by the phase of the step in which they come -------------------

PHASES: dict[int, list[Any]] = {
    PLANNING: [
        *(start, share, leave, cache, drop, end, evict, confirm),
        *(bind_own, bind_fresh, bind_adopting, publish, begin_writes),
    ],
    WRITING: [write_whole, write_staged, write_direct, write_on, retract, begin_reads],
    READING: [read, copy, end_step],
}
PHASE_OF = {move.__name__: phase for phase, moves in PHASES.items() for move in moves}
TRANSITIONS = {move.__name__: move for moves in PHASES.values() for move in moves}


def _sorts(transition: Any) -> str:
    """A letter is the sort itself; every longer name is a number."""
    names = [*inspect.signature(transition).parameters][2:]
    return "".join(name if len(name) == 1 else "n" for name in names)


SORTS_OF = {name: _sorts(transition) for name, transition in TRANSITIONS.items()}


def move_of(lg: Logic, s: State, name: str, *arguments: Term) -> Move:
    """A transition by name, allowed in its phase of the step only."""
    move: Move = TRANSITIONS[name](lg, s, *arguments)
    move.guard["STEP-ORDER"] = lg.eq(s.phase(), PHASE_OF[name])
    return move


def after(s: State, move: Move) -> State:
    """The next state."""
    return attrs.evolve(s, **move.changes)
