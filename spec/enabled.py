"""What the abstract machine must not refuse.

`enabled` are claims about one state that has the invariants: what a clause promises can
be carried out in it. Without them, a machine that refuses everything would satisfy all
other claims.
"""

from __future__ import annotations

from spec.claims import Claims
from spec.logic import ANY, Bool, Logic, Term
from spec.machine import move_of
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


def possible(lg: Logic, s: State, name: str, *arguments: Term) -> Bool:
    """The guard of a transition."""
    return lg.and_(*move_of(lg, s, name, *arguments).guard.values())


def enabled(lg: Logic, s: State) -> Claims:
    """What must be possible in a state, by clause."""
    phases = {
        PLANNING: _while_planning(lg, s),
        WRITING: _while_writing(lg, s),
        READING: _while_reading(lg, s),
    }
    claims: Claims = {}
    for phase, those in phases.items():
        for clause, claim in those.items():
            now = lg.implies(lg.eq(s.phase(), phase), claim)
            claims.setdefault(clause, []).append(now)
    return claims


def _while_planning(lg: Logic, s: State) -> dict[str, Bool]:
    def shares(r: Term, b: Term) -> Bool:
        free = lg.and_(s.active(r), lg.not_(s.grown(r)), lg.not_(s.binder(r, b)))
        new = lg.and_(s.bound(b), lg.not_(s.sharer(r, b)))
        return lg.implies(lg.and_(free, new), possible(lg, s, "share", r, b))

    def releases(r: Term, b: Term) -> Bool:
        ways = [possible(lg, s, name, r, b) for name in ("leave", "cache", "drop")]
        return lg.eq(holds(lg, s, r, b), lg.or_(*ways))

    def ends(r: Term) -> Bool:
        empty = lg.forall("b", lambda b: lg.not_(holds(lg, s, r, b)))
        ending = lg.implies(lg.and_(s.active(r), empty), possible(lg, s, "end", r))
        return lg.and_(ending, lg.or_(s.active(r), possible(lg, s, "start", r)))

    return {
        "LIFE-BIND": lg.forall("rb", lambda r, b: _binds(lg, s, r, b)),
        "LIFE-SHARE": lg.forall("rb", shares),
        "LIFE-RELEASE": lg.forall("rb", releases),
        "LIFE-EVICT": s.bound.all(
            lambda b: lg.or_(held(lg, s, b), possible(lg, s, "evict", b))
        ),
        "LIFE-FINISH": lg.forall("r", ends),
        "LIFE-CONFIRM": s.binder.all(lambda r, b: _confirms(lg, s, r, b)),
        "LIFE-PUBLISH": s.copied.all(lambda b: possible(lg, s, "publish", b)),
        "STEP-ORDER": possible(lg, s, "begin_writes"),
    }


def _binds(lg: Logic, s: State, r: Term, b: Term) -> Bool:
    """A new block is refused only if no pair has a place for it."""
    names = ("bind_own", "bind_fresh", "bind_adopting")
    bound = lg.exists(
        "pi",
        lambda p, i: lg.or_(*(possible(lg, s, name, r, b, p, i) for name in names)),
    )
    place = lg.or_(
        lg.not_(packed(lg, s, r)),
        adoptable(lg, s, r, s.pair(s.tail(r))),
        lg.exists("p", lambda p: lg.not_(s.used(p))),
    )
    return lg.implies(lg.and_(s.active(r), lg.not_(s.bound(b)), place), bound)


def _confirms(lg: Logic, s: State, r: Term, b: Term) -> Bool:
    more = s.confirmed(b) < s.written(b)
    return lg.implies(more, possible(lg, s, "confirm", r, b, s.written(b)))


def _while_writing(lg: Logic, s: State) -> dict[str, Bool]:
    def unsealed(r: Term, b: Term) -> Bool:
        return lg.and_(s.binder(r, b), lg.not_(s.sealed(b)))

    def begins(r: Term, b: Term, last: Term, n: Term) -> Bool:
        """The first write never fails for want of a slot."""
        ranges = (0 < last, last <= lg.tokens, 0 <= n, n <= last)
        whole = lg.and_(lg.eq(n, lg.tokens), possible(lg, s, "write_whole", r, b))
        direct = possible(lg, s, "write_direct", r, b, last, n)
        staged = lg.exists(
            "z", lambda z: possible(lg, s, "write_staged", r, b, last, n, z)
        )
        new = lg.and_(unsealed(r, b), lg.not_(s.begun(b)), *ranges)
        return lg.implies(new, lg.or_(whole, direct, staged))

    def goes_on(r: Term, b: Term, last: Term) -> Bool:
        first = s.confirmed(b)
        more = lg.and_(unsealed(r, b), s.begun(b), first < last, last <= lg.tokens)
        return lg.implies(more, possible(lg, s, "write_on", r, b, first, last, last))

    def drafts(r: Term, b: Term, last: Term) -> Bool:
        first, n = s.written(b), s.confirmed(b)
        more = lg.and_(unsealed(r, b), s.begun(b), first < last, last <= lg.tokens)
        return lg.implies(more, possible(lg, s, "write_on", r, b, first, last, n))

    def retracts(r: Term, b: Term) -> Bool:
        return lg.implies(unsealed(r, b), possible(lg, s, "retract", r, b))

    return {
        "LIFE-DIRECT": lg.forall("rbnn", begins),
        "LIFE-STAY": lg.forall("rbn", goes_on),
        "LIFE-GAPLESS": lg.forall("rbn", drafts),
        "LIFE-REWRITE": lg.forall("rb", retracts),
        "STEP-ORDER": possible(lg, s, "begin_reads"),
    }


def _while_reading(lg: Logic, s: State) -> dict[str, Bool]:
    def reads(r: Term, b: Term) -> Bool:
        seen = possible(lg, s, "read", r, b, s.written(b))
        return lg.implies(holds(lg, s, r, b), seen)

    def settled(b: Term) -> Bool:
        return lg.or_(full(lg, s, b), lg.not_(s.sharer.any(ANY, b)))

    filled = s.bound.all(settled)
    return {
        "LIFE-READ": lg.forall("rb", reads),
        "LIFE-COMMIT": s.in_slot.all(
            lambda b: lg.implies(due(lg, s, b), possible(lg, s, "copy", b))
        ),
        "STEP-SHARED": lg.implies(filled, possible(lg, s, "end_step")),
    }
