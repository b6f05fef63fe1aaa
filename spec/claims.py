"""What a transition of the abstract machine leaves alone.

Claims about a state `s` and the next, `t`: which transitions may change a map at all
(`only`), where a transition may change it (`frame`), that nothing gets lost or comes
from nowhere (`conserved`), and what stays true of a block or a pair for as long as it
is in use (`steady`). What transitions do is in `spec.effects`.
"""

from __future__ import annotations

from collections.abc import Callable

from spec.logic import ANY, Bool, Logic, Map, Term
from spec.machine import SORTS_OF
from spec.state import SIGNATURE, State, full, held

Claims = dict[str, list[Bool]]

_BIND = {"bind_own", "bind_fresh", "bind_adopting"}
_WRITE = {"write_whole", "write_staged", "write_direct", "write_on"}
_RELEASE = {"leave", "cache", "drop"}
_UNBIND = {"drop", "evict"}

# Map: the clause, the transitions that may add a tuple to it or change a value, and
# those that may take a tuple away.
CHANGED_BY: dict[str, tuple[str, set[str], set[str]]] = {
    "active": ("LIFE-FINISH", {"start"}, {"end"}),
    "grown": ("LIFE-PREFIX", _BIND | _RELEASE, {"end"}),
    "tail": ("LIFE-PREFIX", _BIND | {"share"}, set()),
    "binder": ("LIFE-WRITER", _BIND, _RELEASE),
    "sharer": ("LIFE-SHARE", {"share"}, _RELEASE),
    "bound": ("LIFE-BIND", _BIND, _UNBIND),
    "pair": ("LIFE-FIXED", _BIND, set()),
    "place": ("LIFE-FIXED", _BIND, set()),
    "used": ("INV-PAIR", {"bind_fresh"}, _UNBIND),
    "occupied": ("INV-PLACE", _BIND, _UNBIND),
    "block_at": ("INV-PLACE", _BIND, set()),
    "owns": ("LIFE-OWNER", {"bind_fresh", "bind_adopting"}, _UNBIND | {"end"}),
    "in_o1v": ("LIFE-PUBLISH", _BIND | {"publish"}, _UNBIND | {"write_staged"}),
    "in_slot": ("LIFE-STAGE", {"write_staged"}, _UNBIND | {"publish"}),
    "slot": ("LIFE-STAGE", {"write_staged"}, set()),
    "slot_used": ("LIFE-STAGE", {"write_staged"}, _UNBIND | {"publish"}),
    "block_in": ("LIFE-STAGE", {"write_staged"}, set()),
    "begun": ("LIFE-STAY", _WRITE, _UNBIND),
    "written": ("LIFE-WRITER", _WRITE | _UNBIND | {"retract"}, set()),
    "confirmed": ("LIFE-CONFIRM", _WRITE | _UNBIND | {"retract", "confirm"}, set()),
    "copied": ("LIFE-COMMIT", {"copy"}, _WRITE | _UNBIND | {"retract", "publish"}),
    "sealed": ("LIFE-SEALED", {"end_step"}, _UNBIND),
    "sealing": ("LIFE-SEALED", {"share", "cache"}, _UNBIND | {"end_step"}),
    "phase": ("STEP-ORDER", {"begin_writes", "begin_reads", "end_step"}, set()),
}


def only(lg: Logic, s: State, t: State, name: str) -> Claims:
    """The transition `name` changes only the maps that it may change."""
    claims: Claims = {}
    for field, (clause, sets, clears) in CHANGED_BY.items():
        found = claims.setdefault(clause, [])
        domain, is_function, _ = SIGNATURE[field].partition(">")
        old, new = getattr(s, field), getattr(t, field)
        if is_function:
            if name not in sets:
                found.append(lg.forall(domain, _same(lg, old, new)))
            continue
        if name not in sets:
            found.append(new.all(old))
        if name not in clears:
            found.append(old.all(new))
    return claims


def _same(lg: Logic, old: Map, new: Map) -> Callable[..., Bool]:
    return lambda *key: lg.eq(old(*key), new(*key))


def _moves(lg: Logic, s: State, t: State, field: str) -> Callable[..., Bool]:
    same = _same(lg, getattr(s, field), getattr(t, field))
    return lambda *key: lg.not_(same(*key))


def frame(lg: Logic, s: State, t: State, name: str, *arguments: Term) -> Claims:
    """Nothing changes of another block, request, pair, place or slot."""
    at = dict(zip(SORTS_OF[name], arguments, strict=True))
    if "b" in at:
        b = at["b"]
        at = {"p": s.pair(b), "i": s.place(b), "z": s.slot(b)} | at
    # The end of a step seals all blocks that were shared in it.
    skipped = {"phase"} | ({"sealed", "sealing"} if name == "end_step" else set())
    elsewhere = [
        lg.forall(kind.partition(">")[0], _same_elsewhere(lg, s, t, field, at))
        for field, kind in SIGNATURE.items()
        if field not in skipped
    ]
    return {"LIFE-FRAME": elsewhere}


def _same_elsewhere(
    lg: Logic, s: State, t: State, field: str, at: dict[str, Term]
) -> Callable[..., Bool]:
    moves, kind = _moves(lg, s, t, field), SIGNATURE[field]

    def claim(*key: Term) -> Bool:
        parts = zip(kind[: len(key)], key, strict=True)
        near = [lg.eq(at[sort], part) for sort, part in parts if sort in at]
        here = lg.and_(*near) if len(near) == len(key) else False
        if field == "owns":  # all pairs of a request that ends; a pair that empties
            here = lg.or_(*near)
        return lg.implies(moves(*key), here)

    return claim


def conserved(lg: Logic, s: State, t: State) -> Claims:
    """At most one block, pair, place and slot becomes free or used: place with block.

    So what is free and what is in use add up to all there is, in every state.
    """
    place_moves = _moves(lg, s, t, "occupied")

    def together(b: Term) -> Bool:
        before = lg.implies(s.bound(b), place_moves(s.pair(b), s.place(b)))
        now = lg.implies(t.bound(b), place_moves(t.pair(b), t.place(b)))
        return lg.implies(_moves(lg, s, t, "bound")(b), lg.and_(before, now))

    once = [
        lg.at_most_one(SIGNATURE[field], _moves(lg, s, t, field))
        for field in ("bound", "used", "occupied", "slot_used")
    ]
    return {"INV-CONSERVE": [*once, lg.forall("b", together)]}


def steady(lg: Logic, s: State, t: State) -> Claims:
    """What holds from one state to the next, whatever happened in between."""

    def kept(r: Term, p: Term) -> Bool:
        return lg.or_(t.owns(r, p), lg.not_(t.active(r)), lg.not_(t.used(p)))

    def unowned_before(r: Term, p: Term) -> Bool:
        return lg.or_(s.owns(r, p), lg.not_(s.owns.any(ANY, p)))

    return {
        "LIFE-FIXED": [
            s.bound.all(lambda b: lg.implies(t.bound(b), lg.eq(s.pair(b), t.pair(b)))),
            s.bound.all(
                lambda b: lg.implies(t.bound(b), lg.eq(s.place(b), t.place(b)))
            ),
        ],
        "LIFE-SEALED": [
            s.sealed.all(lambda b: lg.implies(t.bound(b), t.sealed(b))),
            s.sealed.all(lambda b: lg.implies(t.bound(b), full(lg, t, b))),
        ],
        "LIFE-OWNER": [s.owns.all(kept), t.owns.all(unowned_before)],
        "LIFE-PUBLISH": [s.in_slot.all(lambda b: lg.implies(t.in_o1v(b), s.copied(b)))],
        "LIFE-STAY": [
            s.in_o1v.all(lambda b: lg.implies(t.in_slot(b), lg.not_(s.begun(b))))
        ],
        "LIFE-RELEASE": [
            s.bound.all(lambda b: lg.or_(t.bound(b), lg.not_(held(lg, t, b))))
        ],
    }
