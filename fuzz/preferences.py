"""Of the choices that the machine allows, the runtime makes the ones that are stated.

`Preferences` is a `Refinement` that says beforehand which pair, place and slot is taken
and in which order pairs are offered for eviction (layout 3), in the slowest and
plainest way: by looking at everything. The runtime finds the same by bitmaps and a
heap.
"""

from __future__ import annotations

from itertools import groupby

import attrs

from fuzz.machine_run import Changed
from fuzz.refinement import Refinement
from patton.commit_zone import NO_SLOT
from patton.steps import Request
from spec.state import adoptable, held, holds


@attrs.define(eq=False)
class Preferences(Refinement):
    """A refinement that knows what is preferred, from a runtime's first state on.

    claimed: pairs of each request, in the order in which it came to own them. released:
    when a last reference to a block of a pair last went, by a count of all of them.
    """

    claimed: dict[Request, list[int]] = attrs.field(factory=dict, init=False)
    released: dict[int, int] = attrs.field(factory=dict, init=False)
    clock: int = attrs.field(default=0, init=False)

    def changed(self, changes: Changed) -> None:
        """Keep the order of claims."""
        super().changed(changes)
        for (request, pair), now in dict(changes).get("owns", {}).items():
            pairs = self.claimed.setdefault(request, [])
            if now and pair not in pairs:
                pairs.append(pair)
            if not now:
                pairs.remove(pair)

    def _release(self, request: Request, block: int) -> None:
        if self.holders(block) == 1:
            self.clock += 1
            self.released[self.s.pair(block)] = self.clock
        super()._release(request, block)

    def _bind(self, request: Request, block: int) -> None:
        """Whether the choice is allowed comes first, then whether it is preferred."""
        found, _ = self.place_for(request, block)
        pair = self._preferred_pair(request)
        place = self._preferred_place(found)
        super()._bind(request, block)
        self.demand("LIFE-NEXT", f"pair of block {block}", found, pair)
        what = f"place of block {block} in pair {pair}"
        self.demand("LIFE-PLACE", what, self.s.place(block), place)

    def _write_block(
        self, request: Request, block: int, first: int, last: int, verified: int
    ) -> None:
        begins, lowest = not self.s.begun(block), self._lowest_slot(block)
        super()._write_block(request, block, first, last, verified)
        if begins and self.s.in_slot(block):
            what = f"slot of block {block}"
            self.demand("LIFE-LOWEST", what, self.s.slot(block), lowest)

    def _lowest_slot(self, block: int) -> int:
        index = self.s.pair(block), self.s.place(block)
        free = (
            slot
            for slot in self.lg.universe["z"]
            if self.lg.aligned(slot, *index) and not self.s.slot_used(slot)
        )
        return next(free, NO_SLOT)

    def _free_places(self, pair: int) -> list[int]:
        return [i for i in self.lg.universe["i"] if not self.s.occupied(pair, i)]

    def _preferred_pair(self, request: Request) -> int | None:
        for pair in reversed(self.claimed.get(request, [])):
            if self._free_places(pair):
                return pair
        tail = self.s.tail(request)
        near = self.s.pair(tail) if holds(self.lg, self.s, request, tail) else None
        if near is not None and adoptable(self.lg, self.s, request, near):
            return int(near)
        return self._preferred_free_pair(near)

    def _preferred_free_pair(self, near: int | None) -> int | None:
        set_of = self.runtime.layout.value_set_of_pair
        free = [pair for pair in self.lg.universe["p"] if not self.s.used(pair)]
        sets = [[*pairs] for _, pairs in groupby(free, key=set_of)]
        if self.runtime.placements.pool.choice == "packed":
            return min(sets, key=len)[0] if sets else None
        if near is not None and near + 1 in free and set_of(near) == set_of(near + 1):
            return near + 1
        return max(sets, key=len)[0] if sets else None

    def _preferred_place(self, pair: int) -> int:
        channels = self.runtime.layout.channels_per_head
        first = pair * self.runtime.layout.pair_blocks
        free = self._free_places(pair)
        on = [(first + i) % channels for i in self.lg.universe["i"] if i not in free]
        return min(
            free, default=-1, key=lambda i: (on.count((first + i) % channels), i)
        )

    def check(self) -> None:
        """Also: which pairs may be evicted, in which order. Raises RefinementError."""
        super().check()
        found = [*self.runtime.eviction_candidates()]
        blocks: dict[int, list[int]] = {}
        for (block,) in self.maps["bound"].cells:
            blocks.setdefault(self.s.pair(block), []).append(block)
        owned = {pair for _, pair in self.maps["owns"].cells}
        cached = [
            pair
            for pair, those in blocks.items()
            if pair not in owned and not any(held(self.lg, self.s, b) for b in those)
        ]
        expected = sorted(cached, key=lambda pair: self.released[pair])
        self.demand("LIFE-OLDEST", "pairs to evict", found, expected)
