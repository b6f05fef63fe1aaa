"""What the runtime answers when it is asked is what the machine holds.

Engines plan by these answers: where a block is, how much room there is, what to evict.
Each is found here anew from the machine, in the plainest way. They are judged after
the state that they come from: what is wrong there makes them wrong too.
"""

from __future__ import annotations

import attrs

from fuzz.refinement import Refinement
from patton.commit_zone import NO_SLOT
from patton.steps import Placement, Request
from spec.logic import Finite
from spec.state import State, adoptable


def room_for(lg: Finite, s: State, request: Request) -> int:
    """Blocks that a request could bind, one after the other, without any eviction."""
    pairs, places = lg.universe["p"], lg.universe["i"]
    fills = [p for p in pairs if s.owns(request, p)]
    own = sum(not s.occupied(p, i) for p in fills for i in places)
    hit = s.pair(s.tail(request))
    if not own and adoptable(lg, s, request, hit):
        own = sum(not s.occupied(hit, i) for i in places)
    return own + len(places) * sum(not s.used(p) for p in pairs)


def blocks_in(lg: Finite, s: State, pair: int) -> list[int]:
    """The blocks of a pair, highest place first."""
    places = reversed(lg.universe["i"])
    return [s.block_at(pair, i) for i in places if s.occupied(pair, i)]


def check_answers(refinement: Refinement) -> None:
    """All answers, of a runtime whose state is the machine's. Raises RefinementError.

    The pairs to evict, and their order, are the refinement's own matter.
    """
    runtime, lg, s = refinement.runtime, refinement.lg, refinement.s
    demand = refinement.demand
    free = sum(not s.used(pair) for pair in lg.universe["p"])
    demand("INV-CONSERVE", "free pairs told", runtime.free_pairs, free)
    told, evictable = runtime.evictable_pairs, len([*runtime.eviction_candidates()])
    demand("LIFE-OLDEST", "number of pairs to evict told", told, evictable)
    for pair in lg.universe["p"]:
        blocks, what = runtime.blocks_of_pair(pair), f"blocks told of pair {pair}"
        demand("LIFE-OLDEST", what, blocks, blocks_in(lg, s, pair))
    for request in refinement.tables:
        _check_room(refinement, request)
    for block in lg.universe["b"]:
        told_of, what = runtime.placement(block), f"placement told of block {block}"
        demand("INV-VISIBLE", what, told_of, _placement(refinement, block))


def _check_room(refinement: Refinement, request: Request) -> None:
    """Room as it were with adoption switched the other way is adoption gone wrong."""
    lg, s = refinement.lg, refinement.s
    told, room = refinement.runtime.bindable(request), room_for(lg, s, request)
    if told != room:
        other = attrs.evolve(lg, adoption=not lg.adoption)
        adopts = told == room_for(other, s, request)
        clause = "LIFE-ADOPT" if adopts else "LIFE-BIND"
        refinement.demand(clause, f"room told of {request!r}", told, room)


def _placement(refinement: Refinement, block: int) -> Placement | None:
    s = refinement.s
    if not s.bound(block):
        return None
    epoch, granule, slot = refinement.where(block)
    levels = s.written(block), s.confirmed(block)
    where = block, epoch, granule, None if slot == NO_SLOT else slot
    return Placement(*where, *levels, refinement.holders(block))
