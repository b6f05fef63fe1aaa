"""What each transition of the abstract machine was allowed for, and what it did.

Claims about the states before and after a transition, `s` and `t`, in words as far from
those of the machine as the same facts allow. Without them, a machine that does nothing
would satisfy every invariant. What a transition leaves alone is in `spec.claims`.
"""

from __future__ import annotations

from collections.abc import Callable

from spec.claims import Claims
from spec.logic import ANY, Bool, Logic, Term
from spec.state import PLANNING, READING, WRITING, State, full, held, holds

Effect = Callable[..., Claims]


def effects(lg: Logic, s: State, t: State, name: str, *arguments: Term) -> Claims:
    """What the transition `name` from s to t was allowed for, and has achieved."""
    return EFFECTS[name](lg, s, t, *arguments)


# --- requests and references --------------------------------------------------------


def _start(lg: Logic, s: State, t: State, r: Term) -> Claims:
    return {"LIFE-FINISH": [lg.not_(s.active(r)), t.active(r)]}


def _end(lg: Logic, s: State, t: State, r: Term) -> Claims:
    gone = [lg.not_(t.active(r)), lg.not_(t.owns.any(r, ANY)), lg.not_(t.grown(r))]
    return {
        "LIFE-FINISH": [s.active(r), *gone],
        "INV-HELD": [lg.forall("b", lambda b: lg.not_(holds(lg, s, r, b)))],
    }


def _share(lg: Logic, s: State, t: State, r: Term, b: Term) -> Claims:
    return {
        "LIFE-SHARE": [
            *(s.active(r), s.bound(b), lg.not_(holds(lg, s, r, b))),
            *(t.sharer(r, b), lg.not_(t.binder(r, b))),
            lg.or_(s.sealed(b), t.sealing(b)),
        ],
        "LIFE-PREFIX": [lg.not_(s.grown(r)), lg.eq(t.tail(r), b)],
    }


def _given_up(lg: Logic, s: State, t: State, r: Term, b: Term) -> list[Bool]:
    return [holds(lg, s, r, b), lg.not_(holds(lg, t, r, b)), t.grown(r)]


def _leave(lg: Logic, s: State, t: State, r: Term, b: Term) -> Claims:
    stays = [t.bound(b), held(lg, t, b), lg.eq(t.written(b), s.written(b))]
    return {"LIFE-RELEASE": [*_given_up(lg, s, t, r, b), *stays]}


def _cache(lg: Logic, s: State, t: State, r: Term, b: Term) -> Claims:
    stays = [t.bound(b), lg.not_(held(lg, t, b)), full(lg, t, b)]
    sealed = lg.or_(s.sealed(b), t.sealing(b))
    return {
        "LIFE-RELEASE": _given_up(lg, s, t, r, b),
        "LIFE-CACHE": [*stays, lg.eq(t.confirmed(b), lg.tokens), sealed],
    }


def _gone(lg: Logic, s: State, t: State, b: Term) -> list[Bool]:
    """The block is unbound; its place, its slot and an empty pair are free."""
    p, i, z = s.pair(b), s.place(b), s.slot(b)
    emptied = lg.forall("i", lambda j: lg.not_(t.occupied(p, j)))
    return [
        *(s.bound(b), lg.not_(t.bound(b)), lg.not_(t.occupied(p, i))),
        *(lg.not_(t.in_o1v(b)), lg.not_(t.in_slot(b)), lg.not_(t.begun(b))),
        lg.implies(s.in_slot(b), lg.not_(t.slot_used(z))),
        lg.eq(t.used(p), lg.not_(emptied)),
        lg.implies(emptied, lg.not_(t.owns.any(ANY, p))),
    ]


def _drop(lg: Logic, s: State, t: State, r: Term, b: Term) -> Claims:
    return {
        "LIFE-RELEASE": [*_given_up(lg, s, t, r, b), lg.not_(held(lg, t, b))],
        "LIFE-DROP": [s.confirmed(b) < lg.tokens, *_gone(lg, s, t, b)],
    }


def _evict(lg: Logic, s: State, t: State, b: Term) -> Claims:
    return {"LIFE-EVICT": [lg.not_(held(lg, s, b)), *_gone(lg, s, t, b)]}


# --- binding ------------------------------------------------------------------------


def _bound(lg: Logic, s: State, t: State, r: Term, b: Term, p: Term, i: Term) -> Claims:
    return {
        "LIFE-BIND": [
            *(s.active(r), lg.not_(s.bound(b)), t.bound(b), t.binder(r, b)),
            *(t.in_o1v(b), lg.not_(t.in_slot(b)), lg.eq(t.written(b), 0)),
            *(lg.not_(t.begun(b)), lg.not_(t.sealed(b)), lg.not_(t.sealing(b))),
        ],
        "INV-GRANULE": [
            *(lg.eq(t.pair(b), p), lg.eq(t.place(b), i), t.occupied(p, i)),
            *(lg.eq(t.block_at(p, i), b), t.used(p), lg.not_(s.occupied(p, i))),
        ],
        "LIFE-PREFIX": [t.grown(r), lg.eq(t.tail(r), b)],
        "LIFE-OWNER": [t.owns(r, p)],
    }


def _bind_own(lg: Logic, s: State, t: State, *a: Term) -> Claims:
    r, _, p, _ = a
    return _bound(lg, s, t, *a) | {"LIFE-OWNER": [s.owns(r, p), t.owns(r, p)]}


def _no_own_place(lg: Logic, s: State, r: Term) -> Bool:
    return lg.forall("pi", lambda p, i: lg.implies(s.owns(r, p), s.occupied(p, i)))


def _bind_fresh(lg: Logic, s: State, t: State, *a: Term) -> Claims:
    r, _, p, _ = a
    hit = s.tail(r)
    orphan = lg.and_(s.sharer(r, hit), lg.not_(s.owns.any(ANY, s.pair(hit))))
    fillable = lg.exists("i", lambda i: lg.not_(s.occupied(s.pair(hit), i)))
    return _bound(lg, s, t, *a) | {
        "LIFE-FILL": [_no_own_place(lg, s, r), lg.not_(s.used(p)), t.used(p)],
        "LIFE-ADOPT": [lg.not_(lg.and_(lg.adoption, orphan, fillable))],
    }


def _bind_adopting(lg: Logic, s: State, t: State, *a: Term) -> Claims:
    r, _, p, _ = a
    hit = s.tail(r)
    return _bound(lg, s, t, *a) | {
        "LIFE-FILL": [_no_own_place(lg, s, r)],
        "LIFE-ADOPT": [
            *(lg.adoption, s.sharer(r, hit), lg.eq(s.pair(hit), p), s.used(p)),
            lg.forall("r", lambda q: lg.not_(s.owns(q, p))),
        ],
    }


# --- writes, reads, commits, steps --------------------------------------------------


def _stays_visible(lg: Logic, s: State, t: State, b: Term) -> list[Bool]:
    return [lg.eq(s.in_o1v(b), t.in_o1v(b)), lg.eq(s.in_slot(b), t.in_slot(b))]


def _levels(
    lg: Logic, s: State, t: State, r: Term, b: Term, first: Term, last: Term
) -> Claims:
    known, now = s.confirmed(b), t.confirmed(b)
    gap = lg.and_(known < first, lg.not_(lg.eq(now, known)))
    return {
        "LIFE-WRITER": [s.binder(r, b)],
        "LIFE-SEALED": [lg.not_(s.sealed(b))],
        "LIFE-GAPLESS": [0 <= first, first <= s.written(b), first < last],
        "LIFE-LEVELS": [
            *(lg.eq(t.written(b), last), now <= last, last <= lg.tokens),
            *(lg.not_(gap), lg.or_(first <= now, lg.eq(now, known)), t.begun(b)),
        ],
        "LIFE-COMMIT": [lg.not_(t.copied(b))],
    }


def _write_whole(lg: Logic, s: State, t: State, r: Term, b: Term) -> Claims:
    return _levels(lg, s, t, r, b, 0, lg.tokens) | {
        "LIFE-STAGE": [*_stays_visible(lg, s, t, b), lg.eq(t.confirmed(b), lg.tokens)],
        "LIFE-STAY": [lg.not_(s.begun(b))],
    }


def _write_staged(
    lg: Logic, s: State, t: State, r: Term, b: Term, last: Term, n: Term, z: Term
) -> Claims:
    kept = t.occupied(t.pair(b), t.place(b))
    return _levels(lg, s, t, r, b, 0, last) | {
        "LIFE-STAGE": [
            *(lg.staging, lg.eq(t.confirmed(b), n), n < lg.tokens),
            *(t.in_slot(b), lg.not_(t.in_o1v(b)), lg.eq(t.slot(b), z)),
            *(lg.not_(s.slot_used(z)), t.slot_used(z), lg.eq(t.block_in(z), b)),
        ],
        "INV-RESERVED": [kept, lg.aligned(z, t.pair(b), t.place(b))],
        "LIFE-STAY": [lg.not_(s.begun(b))],
    }


def _write_direct(
    lg: Logic, s: State, t: State, r: Term, b: Term, last: Term, n: Term
) -> Claims:
    def usable(z: Term) -> Bool:
        return lg.and_(lg.aligned(z, s.pair(b), s.place(b)), lg.not_(s.slot_used(z)))

    free = lg.exists("z", usable)
    return _levels(lg, s, t, r, b, 0, last) | {
        "LIFE-DIRECT": [
            *_stays_visible(lg, s, t, b),
            *(lg.eq(t.confirmed(b), n), n < lg.tokens),
            lg.not_(lg.and_(lg.staging, free)),
        ],
        "LIFE-STAY": [lg.not_(s.begun(b))],
    }


def _write_on(
    lg: Logic, s: State, t: State, r: Term, b: Term, first: Term, last: Term, n: Term
) -> Claims:
    place = [*_stays_visible(lg, s, t, b), s.begun(b)]
    exact = [lg.eq(t.confirmed(b), n)]
    return _levels(lg, s, t, r, b, first, last) | {"LIFE-STAY": [*place, *exact]}


def _retract(lg: Logic, s: State, t: State, r: Term, b: Term) -> Claims:
    nothing = [lg.eq(t.written(b), 0), lg.eq(t.confirmed(b), 0), lg.not_(t.copied(b))]
    return {
        "LIFE-WRITER": [s.binder(r, b)],
        "LIFE-SEALED": [lg.not_(s.sealed(b))],
        "LIFE-REWRITE": [*nothing, *_stays_visible(lg, s, t, b)],
    }


def _confirm(lg: Logic, s: State, t: State, r: Term, b: Term, n: Term) -> Claims:
    exact = [lg.eq(t.confirmed(b), n), s.confirmed(b) < n, n <= s.written(b)]
    return {"LIFE-CONFIRM": [s.binder(r, b), *exact]}


def _read(lg: Logic, s: State, _: State, r: Term, b: Term, n: Term) -> Claims:
    return {"LIFE-READ": [s.bound(b), holds(lg, s, r, b), n <= s.written(b)]}


def _copy(lg: Logic, s: State, t: State, b: Term) -> Claims:
    whole = [s.in_slot(b), lg.eq(s.confirmed(b), lg.tokens), full(lg, s, b)]
    return {"LIFE-COMMIT": [*whole, t.copied(b), *_stays_visible(lg, s, t, b)]}


def _publish(lg: Logic, s: State, t: State, b: Term) -> Claims:
    moved = [s.in_slot(b), t.in_o1v(b), lg.not_(t.in_slot(b))]
    freed = [lg.not_(t.slot_used(s.slot(b))), t.occupied(t.pair(b), t.place(b))]
    return {"LIFE-PUBLISH": [s.copied(b), *moved, *freed, lg.not_(t.copied(b))]}


def _begin_writes(lg: Logic, s: State, t: State) -> Claims:
    return {"STEP-ORDER": [lg.eq(s.phase(), PLANNING), lg.eq(t.phase(), WRITING)]}


def _begin_reads(lg: Logic, s: State, t: State) -> Claims:
    return {"STEP-ORDER": [lg.eq(s.phase(), WRITING), lg.eq(t.phase(), READING)]}


def _end_step(lg: Logic, s: State, t: State) -> Claims:
    def settled(b: Term) -> Bool:
        return lg.eq(
            t.sealed(b), lg.or_(s.sealed(b), lg.and_(s.sealing(b), full(lg, s, b)))
        )

    return {
        "STEP-ORDER": [lg.eq(s.phase(), READING), lg.eq(t.phase(), PLANNING)],
        "STEP-SHARED": [
            t.sharer.all(lambda _, b: lg.and_(t.sealed(b), full(lg, t, b))),
            t.sealing.all(lambda _: False),
            lg.forall("b", settled),
        ],
    }


EFFECTS: dict[str, Effect] = {
    effect.__name__.removeprefix("_"): effect
    for effect in (
        *(_start, _end, _share, _leave, _cache, _drop, _evict, _confirm, _publish),
        *(_bind_own, _bind_fresh, _bind_adopting, _begin_writes, _begin_reads),
        *(_write_whole, _write_staged, _write_direct, _write_on, _retract),
        *(_read, _copy, _end_step),
    )
}
