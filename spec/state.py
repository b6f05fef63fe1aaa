"""The abstract state, and the words that several clauses use.

A variable's name says what it is: r a request, b a block, p a pair, i a place in it,
z a slot, n a number of tokens (`spec.logic.SORTS`).
"""

from __future__ import annotations

import attrs

from spec.logic import ANY, Bool, Logic, Map, Table, Term


@attrs.frozen(eq=False)
class State:
    """Who runs, who holds what, where every block lies and how far it is written.

    A function means something only where the relation beside it holds: `pair`, `place`
    of bound blocks, `block_at` of occupied places, `slot` and `block_in` of slots in
    use, `tail` of requests that hold it. `SIGNATURE` has the sorts.
    """

    # Requests. `grown`: its table is more than a bare prefix. `tail`: its last block.
    active: Map
    grown: Map
    tail: Map
    # References: of the one request that bound the block, and of all others.
    binder: Map
    sharer: Map
    # One granule index per block, for Key and Value alike.
    bound: Map
    pair: Map
    place: Map
    # Pairs: in use at all, which places are taken and by whom, and who fills them.
    used: Map
    occupied: Map
    block_at: Map
    owns: Map
    # Where a block's Value is visible: in the O1V of its index, or in a slot.
    in_o1v: Map
    in_slot: Map
    slot: Map
    slot_used: Map
    block_in: Map
    # Levels in tokens. `begun`: written once. `copied`: the copy of its commit is made.
    begun: Map
    written: Map
    confirmed: Map
    copied: Map
    # Shared or cached, and full: before this step began; since it began.
    sealed: Map
    sealing: Map
    # Of the engine step: PLANNING, WRITING or READING.
    phase: Map


# The sorts of relations, and those of functions with what they give.
_KINDS = {
    "r": "active grown",
    "rb": "binder sharer",
    "rp": "owns",
    "p": "used",
    "b": "bound in_o1v in_slot begun copied sealed sealing",
    "z": "slot_used",
    "pi": "occupied",
    "pi>b": "block_at",
    "r>b": "tail",
    "z>b": "block_in",
    "b>p": "pair",
    "b>i": "place",
    "b>z": "slot",
    "b>n": "written confirmed",
    ">n": "phase",
}
SIGNATURE = {name: kind for kind, names in _KINDS.items() for name in names.split()}
PLANNING, WRITING, READING = range(3)


def empty() -> State:
    """The first state in the Python reading: nothing runs, nothing is bound."""
    defaults = {"": False, "n": 0}
    ranges = {name: kind.partition(">")[2] for name, kind in SIGNATURE.items()}
    return State(**{name: Table(defaults.get(to)) for name, to in ranges.items()})


def holds(lg: Logic, s: State, r: Term, b: Term) -> Bool:
    """The request has a reference to the block."""
    return lg.or_(s.binder(r, b), s.sharer(r, b))


def held(lg: Logic, s: State, b: Term) -> Bool:
    """Some request has a reference to the block."""
    return lg.or_(s.binder.any(ANY, b), s.sharer.any(ANY, b))


def full(lg: Logic, s: State, b: Term) -> Bool:
    """All positions of the block are written."""
    return lg.eq(s.written(b), lg.tokens)


def due(lg: Logic, s: State, b: Term) -> Bool:
    """The block is to be committed."""
    return lg.and_(s.in_slot(b), lg.eq(s.confirmed(b), lg.tokens))


def room(lg: Logic, s: State, p: Term) -> Bool:
    """The pair has a free place."""
    return lg.exists("i", lambda i: lg.not_(s.occupied(p, i)))


def packed(lg: Logic, s: State, r: Term) -> Bool:
    """No pair that the request owns has a free place."""
    return s.owns.all(
        lambda q, p: lg.implies(lg.eq(q, r), lg.not_(room(lg, s, p))),
    )


def adoptable(lg: Logic, s: State, r: Term, p: Term) -> Bool:
    """The request's prefix hit ends in the pair, and no one fills that on."""
    hit = lg.and_(s.sharer(r, s.tail(r)), lg.eq(s.pair(s.tail(r)), p))
    return lg.and_(lg.adoption, hit, lg.not_(s.owns.any(ANY, p)), room(lg, s, p))
