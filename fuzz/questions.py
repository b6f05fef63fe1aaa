"""What the runtime answers when it is asked is what the machine holds.

Engines plan by these answers: where a block is, how much room there is, what to evict.
Each is found here anew from the machine, in the plainest way.
"""

from __future__ import annotations

from patton.steps import Request
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
