"""What the engine asks of a placement, and how it makes room in one (Paper 4.4).

A placement with pairs can be full while single blocks are still free: a pair belongs to
one request, so its empty places serve nobody else. The engine then evicts on purpose,
and this module decides what. `patton.runtime.Runtime` is such a placement.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, Literal, Protocol, TypeAlias, get_args

import attrs

from patton.arguments import is_one_of
from patton.errors import ConfigError

Eviction = Literal["pairs", "queue", "lru"]
EVICTIONS: tuple[Eviction, ...] = get_args(Eviction)

# When a block will be hit: place in the queue of the first waiting request that finds
# it in its prefix, and which block of that prefix it is.
Need: TypeAlias = tuple[int, int]
NEVER: Need = (sys.maxsize, 0)
Wanted: TypeAlias = Callable[[], Mapping[int, Need]]  # needs of blocks, by id


def nobody_waits() -> Mapping[int, Need]:
    """What an engine without a queue knows of future hits."""
    return {}


class Placement(Protocol):
    """The events a placement is told of, in order, and the questions it answers.

    A freed block that is not full is dropped by the placement itself; of a full one it
    keeps the content until `evict`. Requests are named as the engine names them.
    """

    def share(self, request: Any, block: int) -> None:
        """A request refers to a block that is bound already."""

    def bind(self, request: Any, block: int) -> None:
        """A request takes a new block."""

    def evict(self, block: int) -> None:
        """The content of an unreferenced block goes."""

    def finish(self, request: Any) -> None:
        """A request gives up all its blocks: it ended, or was preempted."""

    def bindable(self, request: Any, shares: Sequence[int] = ()) -> int:
        """How many blocks the request could bind now, after sharing `shares`."""

    def eviction_candidates(self) -> Iterator[int]:
        """Pairs without an owner or a reference, best to evict first."""

    def blocks_of_pair(self, pair: int) -> Sequence[int]:
        """Blocks bound in a pair, highest place first."""

    @property
    def evictable_pairs(self) -> int:
        """How many candidates there are."""


class References(Protocol):
    """References to blocks, by id."""

    def __getitem__(self, block: int, /) -> int: ...


class Cache(Protocol):
    """The cache from which content is evicted on purpose, such as `BlockPool`."""

    @property
    def references(self) -> References:
        """How many requests hold a block."""

    def surrender(self, blocks: Iterable[int]) -> None:
        """Evict cached blocks that nobody holds."""

    def placed_by_age(self) -> Iterator[int]:
        """Unreferenced blocks with content, least recently used first."""


@attrs.define(eq=False)
class PlacementGate:
    """Lets a request in only where its blocks can be placed, evicting if that helps.

    pair_blocks: blocks of a pair, which evicting a whole pair makes bindable. eviction:
    "pairs" evicts the candidates whole, in the placement's order, which is that of
    their last use; "queue" those first that no waiting request will hit, then those hit
    last, so that cache is not lost just before it is needed; "lru" evicts block by
    block in the order of the free queue until pairs happen to fall empty.
    """

    placement: Placement
    pool: Cache
    pair_blocks: int
    eviction: Eviction = "pairs"

    @classmethod
    def of(
        cls, placement: Placement, pool: Cache, pair_blocks: int, eviction: Eviction
    ) -> PlacementGate:
        """A gate before `placement`. Raises ConfigError."""
        if not is_one_of(eviction, EVICTIONS):
            accepted = " or ".join(EVICTIONS)
            raise ConfigError("engine", "eviction", eviction, accepted)
        if pair_blocks < 1:
            raise ConfigError("engine", "pair_blocks", pair_blocks, "at least 1")
        return cls(placement, pool, pair_blocks, eviction)

    def make_room(
        self,
        request: Any,
        need: int,
        whole: int,
        shares: Sequence[int] = (),
        wanted: Wanted = nobody_waits,
    ) -> bool:
        """Whether `request` can bind `need` blocks now and `whole` by and by.

        Evicts what `need` takes, and only if evicting on would yield `whole` blocks: a
        request that cannot be placed must not cost anybody's cache. wanted: the blocks
        that waiting requests would hit, and when; asked for only to evict by it.
        """
        room = self.placement.bindable(request, shares)
        if room >= whole:
            return True
        missing = -((room - whole) // self.pair_blocks)
        if missing > self.placement.evictable_pairs:
            return False
        pairs = self._evictable(missing, shares, wanted)
        if len(pairs) < missing:
            return False
        if room < need:
            if self.eviction == "lru":
                self._evict_by_age(request, need, shares)
            else:
                now = -((room - need) // self.pair_blocks)
                self.pool.surrender(chain.from_iterable(pairs[:now]))
        return True

    def capacity(self, request: Any) -> int:
        """Blocks that the request could bind if every candidate were evicted."""
        evictable = self.placement.evictable_pairs * self.pair_blocks
        return self.placement.bindable(request) + evictable

    def _evictable(
        self,
        count: int,
        shares: Sequence[int],
        wanted: Wanted,
    ) -> list[Sequence[int]]:
        """Blocks of up to `count` candidate pairs, in which none is hit or held.

        A hit keeps its pair: evicting around it would take cache and free no pair. The
        pool may know of holders before the placement is told of them.
        """
        hits, references = set(shares), self.pool.references
        pairs: list[Sequence[int]] = []
        for pair in self._in_order(wanted):
            blocks = self.placement.blocks_of_pair(pair)
            if hits.isdisjoint(blocks) and not any(references[b] for b in blocks):
                pairs.append(blocks)
                if len(pairs) == count:
                    break
        return pairs

    def _in_order(self, wanted: Wanted) -> Iterator[int]:
        """The candidates, best to evict first."""
        candidates = self.placement.eviction_candidates()
        if self.eviction != "queue":
            return candidates
        needs = wanted()

        def need(pair: int) -> Need:
            blocks = self.placement.blocks_of_pair(pair)
            return min((needs.get(block, NEVER) for block in blocks), default=NEVER)

        # Sorting is stable: among pairs that nobody waits for, the oldest stays first.
        return iter(sorted(candidates, key=need, reverse=True))

    def _evict_by_age(self, request: Any, need: int, shares: Sequence[int]) -> None:
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
