"""Who holds which granule at a moment, taken from a runtime."""

from __future__ import annotations

from functools import cached_property

import attrs

from patton.layout import Layout
from patton.requests import RELEASED
from patton.runtime import Runtime
from patton.steps import Placement, Request


@attrs.frozen
class Held:
    """A granule that holds a block; requests: those that refer to it, oldest first."""

    placement: Placement
    requests: tuple[Request, ...]


@attrs.define(eq=False)
class Occupancy:
    """Blocks by granule, owners by pair, tokens by running request, steps so far."""

    layout: Layout
    steps: int
    held: dict[int, Held]
    owner: list[Request | None]
    tokens: dict[Request, int]

    @classmethod
    def of(cls, runtime: Runtime) -> Occupancy:
        """What a runtime holds now."""
        state = runtime.placements
        requests: dict[int, list[Request]] = {}
        for request in state.requests.values():
            for block in request.blocks:
                if block != RELEASED:
                    requests.setdefault(block, []).append(request.id)
        held = {}
        for block in state.bound_blocks():
            placement = runtime.placement(block)
            assert placement is not None
            held[placement.granule] = Held(placement, tuple(requests.get(block, ())))
        return cls(
            layout=runtime.layout,
            steps=runtime.step,
            held=held,
            owner=list(state.pool.owner),
            tokens={request.id: request.tokens for request in state.requests.values()},
        )

    @cached_property
    def used_pairs(self) -> frozenset[int]:
        """Pairs that hold a block."""
        return frozenset(self.layout.pair_of(granule) for granule in self.held)

    def owner_of(self, granule: int) -> Request | None:
        """The request that owns the pair of a granule, if one does."""
        pair: int = self.layout.pair_of(granule)
        return self.owner[pair]

    def words(self) -> tuple[str, str]:
        """The counts, in two lines: granules, then pairs and slots."""
        layout, held = self.layout, self.held.values()
        sharers = [len(item.requests) for item in held]
        in_slots = sum(item.placement.slot is not None for item in held)
        owned = sum(owner is not None for owner in self.owner)
        free = layout.pairs - len(self.used_pairs)
        unowned = layout.pairs - free - owned
        granules = (
            f"Running requests: {len(self.tokens):,}. Granules: {layout.granules:,}, "
            f"of which {sharers.count(1):,} held by one request, "
            f"{sum(n > 1 for n in sharers):,} by several, {sharers.count(0):,} cached, "
            f"{layout.granules - len(held):,} free."
        )
        pairs = (
            f"Pairs: {layout.pairs:,}, of which {owned:,} with an owner, {unowned:,} "
            f"with blocks and without one, {free:,} free. Commit Zone slots: "
            f"{layout.slots * layout.stripes:,}, of which {in_slots:,} hold a block."
        )
        return granules, pairs
