"""Order-2 pairs: the unit in which requests own PIM memory (Paper 4.2, layout 3).

A pair is the aligned run of `pair_blocks` granule indices, valid for Key and Value at
once, so that neither cache can run out first. A pair is free (no block in it), owned by
one running request, or unowned but holding cached blocks. This module keeps places,
owners, the choice of a new pair, and the order in which unowned pairs may be evicted;
it knows nothing of tokens, slots or addresses.

Nothing here scans all pairs: free pairs are bitmaps, one small integer per Value Row
Set, and the sets are grouped by their number of free pairs; candidates for eviction lie
in a heap whose stale entries are dropped when they surface.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal

import attrs

from patton.arguments import is_one_of
from patton.errors import ConfigError
from patton.layout import Layout
from patton.steps import Request

Choice = Literal["spread", "packed"]
CHOICES: tuple[Choice, ...] = ("spread", "packed")

_REMEMBERED_PLACES = 1 << 16


def lowest_bit(mask: int) -> int:
    """Index of the lowest set bit."""
    return (mask & -mask).bit_length() - 1


@attrs.define(eq=False)
class PairPool:
    """Which places are free, who owns which pair, and what to take or evict next."""

    blocks_per_pair: int
    channels_per_head: int
    choice: Choice
    set_of: list[int]  # Value Row Set of each pair's first place
    first_of_set: dict[int, int]  # lowest pair of a Value Row Set
    free_places: list[int]  # bit i: place i of the pair holds no block
    owner: list[Request | None]
    referenced: list[int]  # blocks of the pair with a reference
    last_release: list[int]  # when a block of the pair last lost its last reference
    free_pairs: int
    evictable_pairs: int
    _free_in_set: dict[int, int]  # bit i: pair first_of_set + i is free
    _sets_with: dict[int, int]  # number of free pairs -> bitmap of sets that have it
    _counts: int  # bit n: some set has n free pairs (n > 0)
    _candidate: bytearray
    _heap: list[tuple[int, int]]  # last release and pair; may hold stale ones
    _named: list[tuple[int, int]]  # taken from the heap while candidates are listed
    _all_free: int
    _next_place: dict[int, int]  # free places of a pair -> place to take

    @classmethod
    def of(cls, layout: Layout, choice: Choice) -> PairPool:
        """All pairs of a layout, free."""
        if not is_one_of(choice, CHOICES):
            raise ConfigError("pair pool", "choice", choice, " or ".join(CHOICES))
        count = layout.pairs
        set_of = [layout.value_set_of_pair(pair) for pair in range(count)]
        first_of_set: dict[int, int] = {}
        free_in_set: dict[int, int] = {}
        for pair, value_set in enumerate(set_of):
            first = first_of_set.setdefault(value_set, pair)
            free_in_set[value_set] = free_in_set.get(value_set, 0) | 1 << pair - first
        pool = cls(
            blocks_per_pair=layout.pair_blocks,
            channels_per_head=layout.channels_per_head,
            choice=choice,
            set_of=set_of,
            first_of_set=first_of_set,
            free_places=[(1 << layout.pair_blocks) - 1] * count,
            owner=[None] * count,
            referenced=[0] * count,
            last_release=[0] * count,
            free_pairs=count,
            evictable_pairs=0,
            free_in_set=free_in_set,
            sets_with={},
            counts=0,
            candidate=bytearray(count),
            heap=[],
            named=[],
            all_free=(1 << layout.pair_blocks) - 1,
            next_place={},
        )
        for value_set, free in free_in_set.items():
            pool._count_set(value_set, free.bit_count())
        return pool

    @classmethod
    def holding(
        cls,
        layout: Layout,
        choice: Choice,
        blocks: Iterable[tuple[int, bool]],
        owners: Mapping[int, Request],
        last_release: Sequence[int],
    ) -> PairPool:
        """The pool that follows from what it holds.

        blocks: (granule index, has a reference) of every bound block; owners: pair ->
        request; last_release [pairs].
        """
        pool = cls.of(layout, choice)
        pool.last_release = list(last_release)
        for pair, request in owners.items():
            pool.owner[pair] = request
            pool.take(pair)
        for granule, referenced in blocks:
            pair, place = divmod(granule, pool.blocks_per_pair)
            pool.occupy(pair, place, referenced)
        for pair in range(layout.pairs):
            pool.reconsider(pair)
        return pool

    # --- free pairs ---------------------------------------------------------------

    def is_free(self, pair: int) -> bool:
        """No block lies in the pair."""
        return self.free_places[pair] == self._all_free

    def choose(self, after: int | None) -> int | None:
        """The free pair that a request takes next, None if no pair is free.

        after: the pair of the request's last block. `spread` takes its neighbour in
        the same Value Row Set, else goes where most pairs are free, so that the next
        neighbours are likely free too; `packed` fills the fullest set (layout 3).
        """
        if not self._counts:
            return None
        if self.choice == "spread":
            if after is not None and self._is_free_neighbour(after):
                return after + 1
            count = self._counts.bit_length() - 1
        else:
            count = lowest_bit(self._counts)
        value_set = lowest_bit(self._sets_with[count])
        return self.first_of_set[value_set] + lowest_bit(self._free_in_set[value_set])

    def _is_free_neighbour(self, pair: int) -> bool:
        neighbour = pair + 1
        if neighbour >= len(self.set_of):
            return False
        value_set = self.set_of[pair]
        if self.set_of[neighbour] != value_set:
            return False
        offset = neighbour - self.first_of_set[value_set]
        return bool(self._free_in_set[value_set] >> offset & 1)

    def take(self, pair: int) -> None:
        """A free pair leaves the free pool."""
        self._toggle(pair)
        self.free_pairs -= 1

    def _toggle(self, pair: int) -> None:
        """Move the pair into or out of the free bitmaps."""
        value_set = self.set_of[pair]
        before = self._free_in_set[value_set]
        after = before ^ 1 << pair - self.first_of_set[value_set]
        self._free_in_set[value_set] = after
        self._uncount_set(value_set, before.bit_count())
        self._count_set(value_set, after.bit_count())

    def _count_set(self, value_set: int, count: int) -> None:
        if count:
            self._sets_with[count] = self._sets_with.get(count, 0) | 1 << value_set
            self._counts |= 1 << count

    def _uncount_set(self, value_set: int, count: int) -> None:
        if count:
            self._sets_with[count] ^= 1 << value_set
            if not self._sets_with[count]:
                self._counts ^= 1 << count

    # --- owners and places --------------------------------------------------------

    def own(self, pair: int, request: Request) -> None:
        """Give the pair to a request that fills it; a free one leaves the free pool."""
        assert self.owner[pair] is None
        if self.is_free(pair):
            self.take(pair)
        self.owner[pair] = request
        self.reconsider(pair)

    def disown(self, pair: int) -> None:
        """The owner ended; the pair keeps its blocks."""
        self.owner[pair] = None
        self.reconsider(pair)

    def occupy_next(self, pair: int) -> int:
        """Put a new, referenced block into an owned pair; the place it goes to.

        Of the free places, one whose Key channel holds fewest of the pair's blocks,
        ties to the lowest, so that a fresh pair fills in order (layout 3).
        """
        free = self.free_places[pair]
        place = self._next_place.get(free)
        if place is None:
            place = self._least_occupied(free)
        self.free_places[pair] = free ^ 1 << place
        self.referenced[pair] += 1
        return place

    def _least_occupied(self, free: int) -> int:
        """Find the next place, and remember it.

        It is the same in every pair: two places are on one channel if they are a
        multiple of the channels apart, wherever the pair begins.
        """
        channels = self.channels_per_head
        held = [0] * channels
        for place in range(self.blocks_per_pair):
            held[place % channels] += not free >> place & 1
        places = [i for i in range(self.blocks_per_pair) if free >> i & 1]
        best = min(places, key=lambda place: (held[place % channels], place))
        known = self._next_place
        if len(known) >= _REMEMBERED_PLACES:
            known.clear()
        known[free] = best
        return best

    def occupy(self, pair: int, place: int, referenced: bool) -> None:
        """Put a block into a given place (when state is rebuilt)."""
        if self.is_free(pair) and self.owner[pair] is None:
            self.take(pair)
        self.free_places[pair] ^= 1 << place
        self.referenced[pair] += referenced

    def vacate(self, pair: int, place: int) -> None:
        """The place is empty again; the last one returns the pair to the free pool."""
        free = self.free_places[pair] = self.free_places[pair] | 1 << place
        if free == self._all_free:
            self._toggle(pair)
            self.free_pairs += 1
            self.reconsider(pair)

    # --- references and eviction --------------------------------------------------

    def reference(self, pair: int) -> None:
        """A block of the pair gained its first reference."""
        self.referenced[pair] += 1
        if self._candidate[pair]:
            self.reconsider(pair)

    def unreference(self, pair: int, time: int) -> None:
        """A block of the pair lost its last reference, at a time of its own."""
        self.referenced[pair] -= 1
        self.last_release[pair] = time
        if not self.referenced[pair]:
            self.reconsider(pair)

    def is_evictable(self, pair: int) -> bool:
        """Unowned, holding blocks, none of them referenced."""
        return (
            self.owner[pair] is None
            and not self.referenced[pair]
            and not self.is_free(pair)
        )

    def reconsider(self, pair: int) -> None:
        """Bring the candidates up to date after a change of the pair."""
        evictable = self.is_evictable(pair)
        if evictable == self._candidate[pair]:
            return
        self.evictable_pairs += 1 if evictable else -1
        self._candidate[pair] = evictable
        if evictable:
            if len(self._heap) > 4 * len(self.owner) + 64:
                self._drop_stale_ranks()
            heapq.heappush(self._heap, (self.last_release[pair], pair))

    def _drop_stale_ranks(self) -> None:
        """Keep the heap within a constant factor of the pairs; amortised O(1)."""
        due = (pair for pair, evictable in enumerate(self._candidate) if evictable)
        self._heap = [(self.last_release[pair], pair) for pair in due]
        heapq.heapify(self._heap)

    def eviction_candidates(self) -> Iterator[int]:
        """Pairs to evict, oldest first by the last release of their latest block.

        A request releases its blocks tail first, so its last pair goes before the ones
        that its prefix begins in. While iterating it is fine to evict the pair just
        named, to stop early, and to ask again: an iterator puts back what others have
        taken, and passes over what it has named.
        """
        latest = (0, -1)
        self._put_back()
        try:
            while self._heap:
                rank = heapq.heappop(self._heap)
                time, pair = rank
                if self._candidate[pair] and self.last_release[pair] == time:
                    self._named.append(rank)
                    if rank > latest:
                        latest = rank
                        yield pair
        finally:
            self._put_back()

    def _put_back(self) -> None:
        while self._named:
            heapq.heappush(self._heap, self._named.pop())

    def facts(self) -> dict[str, object]:
        """Everything but the caches, for comparison."""
        return {
            "free places": self.free_places,
            "owners": self.owner,
            "referenced blocks": self.referenced,
            "free pairs": self.free_pairs,
            "evictable pairs": self.evictable_pairs,
            "free pairs by set": self._free_in_set,
            "sets by free pairs": {n: s for n, s in self._sets_with.items() if s},
            "numbers of free pairs": self._counts,
            "candidates": bytes(self._candidate),
        }
