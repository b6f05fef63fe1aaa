"""What holds in every state of the abstract machine, by clause.

The first state has all of it, and every transition keeps all of it together; so it
holds in every state that the machine can reach. Some claims follow from the others
(no two blocks in one place, say) and stand here because they are what is promised.
"""

from __future__ import annotations

from spec.logic import Bool, Logic
from spec.state import PLANNING, SIGNATURE, State, full, held


def initial(lg: Logic, s: State) -> Bool:
    """The machine's first state: all relations empty, nothing written."""
    relations = [name for name, kind in SIGNATURE.items() if ">" not in kind]
    empty = [getattr(s, name).all(lambda *_: False) for name in relations]
    levels = lg.forall(
        "b", lambda b: lg.and_(lg.eq(s.written(b), 0), lg.eq(s.confirmed(b), 0))
    )
    return lg.and_(*empty, levels, lg.eq(s.phase(), PLANNING))


def invariants(lg: Logic, s: State) -> dict[str, list[Bool]]:
    """Claims about one state, by clause."""
    return _placement(lg, s) | _pairs(lg, s) | _slots(lg, s) | _references(lg, s)


def _placement(lg: Logic, s: State) -> dict[str, list[Bool]]:
    return {
        "INV-GRANULE": [
            s.bound.all(lambda b: s.occupied(s.pair(b), s.place(b))),
            s.bound.all(lambda b: lg.eq(s.block_at(s.pair(b), s.place(b)), b)),
        ],
        "INV-PLACE": [
            s.occupied.all(lambda p, i: s.bound(s.block_at(p, i))),
            s.occupied.all(lambda p, i: lg.eq(s.pair(s.block_at(p, i)), p)),
            s.occupied.all(lambda p, i: lg.eq(s.place(s.block_at(p, i)), i)),
        ],
        "INV-DISTINCT": [lg.distinct(s.bound, lambda b: (s.pair(b), s.place(b)))],
        "INV-VISIBLE": [
            s.bound.all(lambda b: lg.or_(s.in_o1v(b), s.in_slot(b))),
            s.in_o1v.all(lambda b: lg.and_(s.bound(b), lg.not_(s.in_slot(b)))),
            s.in_slot.all(s.bound),
        ],
    }


def _pairs(lg: Logic, s: State) -> dict[str, list[Bool]]:
    return {
        "INV-PAIR": [
            s.used.all(lambda p: lg.exists("i", lambda i: s.occupied(p, i))),
            s.occupied.all(lambda p, _: s.used(p)),
        ],
        "INV-OWNER": [
            lg.distinct(s.owns, lambda _, p: (p,)),
            s.owns.all(lambda r, p: lg.and_(s.active(r), s.used(p))),
            s.binder.all(lambda r, b: s.owns(r, s.pair(b))),
        ],
    }


def _slots(lg: Logic, s: State) -> dict[str, list[Bool]]:
    return {
        "INV-SLOT": [
            lg.distinct(s.in_slot, lambda b: (s.slot(b),)),
            s.in_slot.all(lambda b: s.slot_used(s.slot(b))),
            s.in_slot.all(lambda b: lg.eq(s.block_in(s.slot(b)), b)),
            s.slot_used.all(lambda z: s.in_slot(s.block_in(z))),
            s.slot_used.all(lambda z: lg.eq(s.slot(s.block_in(z)), z)),
        ],
        "INV-RESERVED": [
            s.in_slot.all(lambda b: lg.aligned(s.slot(b), s.pair(b), s.place(b))),
            s.in_slot.all(lambda b: lg.and_(s.begun(b), lg.staging)),
        ],
        "INV-LEVELS": [
            lg.forall("b", lambda b: 0 <= s.confirmed(b)),
            lg.forall("b", lambda b: s.confirmed(b) <= s.written(b)),
            lg.forall("b", lambda b: s.written(b) <= lg.tokens),
            lg.forall("b", lambda b: lg.or_(s.begun(b), lg.eq(s.written(b), 0))),
            s.begun.all(s.bound),
        ],
        "LIFE-COMMIT": [
            s.copied.all(s.in_slot),
            s.copied.all(lambda b: lg.eq(s.confirmed(b), lg.tokens)),
        ],
    }


def _references(lg: Logic, s: State) -> dict[str, list[Bool]]:
    return {
        "INV-HELD": [
            s.binder.all(lambda r, b: lg.and_(s.active(r), s.bound(b), s.grown(r))),
            s.sharer.all(lambda r, b: lg.and_(s.active(r), s.bound(b))),
            s.grown.all(s.active),
        ],
        "INV-BINDER": [
            lg.distinct(s.binder, lambda _, b: (b,)),
            s.binder.all(lambda r, b: lg.not_(s.sharer(r, b))),
        ],
        "INV-CACHED": [
            s.bound.all(
                lambda b: lg.or_(held(lg, s, b), lg.eq(s.confirmed(b), lg.tokens))
            ),
            s.bound.all(lambda b: lg.or_(held(lg, s, b), s.sealed(b), s.sealing(b))),
        ],
        "INV-SEALED": [
            s.sealed.all(lambda b: lg.and_(s.bound(b), full(lg, s, b))),
            s.sealing.all(lambda b: lg.and_(s.bound(b), lg.not_(s.sealed(b)))),
        ],
        "INV-SHARED": [s.sharer.all(lambda _, b: lg.or_(s.sealed(b), s.sealing(b)))],
    }
