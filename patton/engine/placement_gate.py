"""What the engine asks of a placement, and how it makes room in one (Paper 4.4).

A placement with pairs can be full while single blocks are still free: a pair belongs to
one request, so its empty places serve nobody else. The engine then evicts on purpose,
and this module decides what. `patton.runtime.Runtime` is such a placement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import attrs

from patton.errors import ConfigError

if TYPE_CHECKING:
    from patton.engine.block_pool import BlockPool

Eviction = Literal["pairs", "lru"]
EVICTIONS: tuple[Eviction, ...] = get_args(Eviction)


class Placement(Protocol):
    """The events a placement is told of, in order, and the questions it answers.

    A freed block that is not full is dropped by the placement itself; of a full one it
    keeps the content until `evict`.
    """

    def share(self, request: int, block: int) -> None:
        """A request refers to a block that is bound already."""

    def bind(self, request: int, block: int) -> None:
        """A request takes a new block."""

    def evict(self, block: int) -> None:
        """The content of an unreferenced block goes."""

    def finish(self, request: int) -> None:
        """A request gives up all its blocks: it ended, or was preempted."""

    def bindable(self, request: int, shares: Sequence[int] = ()) -> int:
        """How many blocks the request could bind now, after sharing `shares`."""

    def eviction_candidates(self) -> Iterator[int]:
        """Pairs without an owner or a reference, best to evict first."""

    def blocks_of_pair(self, pair: int) -> Sequence[int]:
        """Blocks bound in a pair, highest place first."""

    @property
    def evictable_pairs(self) -> int:
        """How many candidates there are."""


@attrs.define(eq=False)
class PlacementGate:
    """Lets a request in only where its blocks can be placed, evicting if that helps.

    pair_blocks: blocks of a pair, which evicting a whole pair makes bindable. eviction:
    "pairs" evicts the candidates whole, in the placement's order; "lru" evicts block by
    block in the order of the free queue until pairs happen to fall empty.
    """

    placement: Placement
    pool: BlockPool
    pair_blocks: int
    eviction: Eviction = "pairs"

    @classmethod
    def of(
        cls, placement: Placement, pool: BlockPool, pair_blocks: int, eviction: Eviction
    ) -> PlacementGate:
        """A gate before `placement`. Raises ConfigError."""
        if eviction not in EVICTIONS:
            accepted = " or ".join(EVICTIONS)
            raise ConfigError("engine", "eviction", eviction, accepted)
        if pair_blocks < 1:
            raise ConfigError("engine", "pair_blocks", pair_blocks, "at least 1")
        return cls(placement, pool, pair_blocks, eviction)

    def make_room(
        self, request: int, need: int, whole: int, shares: Sequence[int] = ()
    ) -> bool:
        """Whether `request` can bind `need` blocks now and `whole` by and by.

        Evicts what `need` takes, and only if evicting on would yield `whole` blocks: a
        request that cannot be placed must not cost anybody's cache.
        """
        room = self.placement.bindable(request, shares)
        if room >= whole:
            return True
        missing = -((room - whole) // self.pair_blocks)
        if missing > self.placement.evictable_pairs:
            return False
        pairs = self._evictable(missing, shares)
        if len(pairs) < missing:
            return False
        if room < need:
            if self.eviction == "pairs":
                wanted = -((room - need) // self.pair_blocks)
                self.pool.surrender(chain.from_iterable(pairs[:wanted]))
            else:
                self._evict_by_age(request, need, shares)
        return True

    def capacity(self, request: int) -> int:
        """Blocks that the request could bind if every candidate were evicted."""
        evictable = self.placement.evictable_pairs * self.pair_blocks
        return self.placement.bindable(request) + evictable

    def _evictable(self, count: int, shares: Sequence[int]) -> list[Sequence[int]]:
        """Blocks of up to `count` candidate pairs that hold none of the hits.

        A hit keeps its pair: evicting around it would take cache and free no pair.
        """
        hits = {block for block in shares if not self.pool.references[block]}
        pairs: list[Sequence[int]] = []
        for pair in self.placement.eviction_candidates():
            blocks = self.placement.blocks_of_pair(pair)
            if hits.isdisjoint(blocks):
                pairs.append(blocks)
                if len(pairs) == count:
                    break
        return pairs

    def _evict_by_age(self, request: int, need: int, shares: Sequence[int]) -> None:
        """Evict the least recently used blocks until `need` can be bound."""
        hits = set(shares)
        while True:
            cold = (block for block in self.pool.placed_by_age() if block not in hits)
            oldest = list(islice(cold, self.pair_blocks))
            assert oldest  # `make_room` has seen that there is enough
            for block in oldest:
                self.pool.surrender((block,))
                if self.placement.bindable(request, shares) >= need:
                    return
