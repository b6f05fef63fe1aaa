"""The block pool of a paged prefix cache, with the semantics of vLLM v1.

Kept from vLLM: blocks are taken from the head of one free queue; the cached content of
an id goes at the moment the id is taken and at no other; a request's blocks are freed
tail first, those without a hash to the head (they can never be hit), hashed ones to the
end (least recently used first); a hit takes its block out of the queue. Nothing is
de-duplicated: one key may lie in several ids, and a lookup names the first.

Different: there is no null block, ids are first_id .. first_id + blocks - 1 and all of
them are usable (vLLM never hands out its id 0; `first_id=1` makes the ids comparable).

The queue is kept in two parts: `fresh`, a stack of ids that hold nothing, and `recent`,
the hashed ones in order of use. What is prepended goes to the first, what is appended
to the second, so that together they are the queue, head first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import chain, islice

import attrs

from patton.arguments import is_count
from patton.engine.placement_gate import Placement
from patton.errors import BlockPoolError, ConfigError
from patton.runtime import MOST_BLOCKS

UNHASHED = None


@attrs.define(eq=False)
class BlockPool:
    """Ids, their references, the free queue and the cache (vLLM `BlockPool`).

    references, key: by block id. first: key -> the id that a lookup names; copies:
    key -> all its ids in order, where there are several. orphans: ids whose content is
    still placed but has lost its key. evicted: ids whose content went, since the caller
    last took the list; placement: told of every eviction, None for a plain cache.
    """

    blocks: int
    first_id: int
    placement: Placement | None
    references: list[int]
    key: list[Hashable | None]
    fresh: list[int]
    recent: OrderedDict[int, None] = attrs.field(factory=OrderedDict)
    first: dict[Hashable, int] = attrs.field(factory=dict)
    copies: dict[Hashable, dict[int, None]] = attrs.field(factory=dict)
    orphans: set[int] = attrs.field(factory=set)
    evicted: list[int] = attrs.field(factory=list)

    @classmethod
    def of(
        cls, blocks: int, *, first_id: int = 0, placement: Placement | None = None
    ) -> BlockPool:
        """A pool with all ids free, in ascending order. Raises ConfigError."""
        if not is_count(blocks, MOST_BLOCKS):
            accepted = f"a whole number from 1 to {MOST_BLOCKS}"
            raise ConfigError("block pool", "blocks", blocks, accepted)
        if first_id < 0:
            raise ConfigError("block pool", "first_id", first_id, "0 or more")
        end = first_id + blocks
        return cls(
            blocks=blocks,
            first_id=first_id,
            placement=placement,
            references=[0] * end,
            key=[UNHASHED] * end,
            fresh=list(range(end - 1, first_id - 1, -1)),
        )

    @property
    def free_count(self) -> int:
        """Blocks without a reference, cached or not."""
        return len(self.fresh) + len(self.recent)

    def free_queue(self) -> list[int]:
        """Ids without a reference, the one to be taken next first."""
        return [*reversed(self.fresh), *self.recent]

    # --- taking and freeing -------------------------------------------------------

    def take(self, count: int) -> list[int]:
        """Take `count` blocks from the head of the queue; each has one reference.

        Content that an id still caches is evicted as the id is taken. Raises
        BlockPoolError if fewer are free, and takes none.
        """
        if not 0 <= count <= self.free_count:
            accepted = f"at most {self.free_count}"
            raise BlockPoolError("take", f"{count} blocks", accepted)
        fresh = self.fresh
        reused = max(0, count - len(fresh))
        kept = len(fresh) - (count - reused)
        taken = fresh[kept:]
        taken.reverse()
        del fresh[kept:]
        for block in list(islice(self.recent, reused)):
            del self.recent[block]
            self._evict(block)
            taken.append(block)
        references = self.references
        for block in taken:
            references[block] = 1
        return taken

    def touch(self, blocks: Sequence[int]) -> None:
        """One more reference to each block of a hit. Raises BlockPoolError.

        A block that nobody referenced leaves the free queue.
        """
        references, key = self.references, self.key
        for block in blocks:
            known = self._exists(block)
            if not known or (key[block] is UNHASHED and not references[block]):
                raise BlockPoolError("touch", f"block {block}", "a cached or held one")
        for block in blocks:
            if not references[block]:
                del self.recent[block]
            references[block] += 1

    def release(self, table: Sequence[int]) -> None:
        """Give up one reference to each block of a request's table, tail first.

        Raises BlockPoolError if a block has no reference left to give up, or stands in
        the table twice; then nothing is changed.
        """
        references = self.references
        if len(set(table)) != len(table):
            raise BlockPoolError("release", f"table {table}", "each block once")
        for block in table:
            if not self._exists(block) or references[block] < 1:
                raise BlockPoolError("release", f"block {block}", "a held block")
        unhashed: list[int] = []
        for block in reversed(table):
            references[block] -= 1
            if references[block]:
                continue
            if self.key[block] is UNHASHED:
                unhashed.append(block)
            else:
                self.recent[block] = None
        for block in reversed(unhashed):
            # A placement drops a partial block by itself, a full one it would keep.
            if block in self.orphans:
                self._evict(block)
            self.fresh.append(block)

    # --- the cache ----------------------------------------------------------------

    def lookup(self, keys: Iterable[Hashable]) -> list[int]:
        """Ids of the longest cached chain of `keys`; changes nothing."""
        hits = []
        first = self.first.get
        for key in keys:
            block = first(key)
            if block is None:
                break
            hits.append(block)
        return hits

    def register(self, block: int, key: Hashable) -> None:
        """Cache a held block under its key, even if another id has the same key."""
        assert self.references[block] > 0
        assert self.key[block] is UNHASHED
        self.key[block] = key
        first = self.first.setdefault(key, block)
        if first != block:
            self.copies.setdefault(key, {first: None})[block] = None

    def evict_blocks(self, blocks: Iterable[int]) -> None:
        """Forget the keys of blocks; they keep their references or places in the queue.

        Raises BlockPoolError for an id that does not exist, and forgets none.
        """
        named = list(blocks)
        for block in named:
            if not self._exists(block):
                raise BlockPoolError("evict", f"block {block}", self._range())
        for block in named:
            if self.key[block] is not UNHASHED:
                self._forget(block)
                if self.placement is not None:
                    self.orphans.add(block)

    def reset(self) -> bool:
        """Forget all cached content, unless a block is held (then False).

        The ids keep their places in the queue, as in vLLM.
        """
        if self.free_count != self.blocks:
            return False
        for block in self.recent:
            self._evict(block)
        assert not self.first
        assert not self.orphans
        return True

    # --- eviction on behalf of a placement ----------------------------------------

    def surrender(self, blocks: Iterable[int]) -> None:
        """Evict cached blocks and put their ids to the head of the queue.

        They hold nothing any more and are taken next, the last one named first.
        """
        for block in blocks:
            assert not self.references[block]
            del self.recent[block]
            self._evict(block)
            self.fresh.append(block)

    def placed_by_age(self) -> Iterator[int]:
        """Unreferenced blocks with content, least recently used first."""
        key, orphans = self.key, self.orphans
        return (b for b in self.recent if key[b] is not UNHASHED or b in orphans)

    # --- internal -----------------------------------------------------------------

    def _exists(self, block: int) -> bool:
        return self.first_id <= block < len(self.references)

    def _range(self) -> str:
        return f"{self.first_id} to {len(self.references) - 1}"

    def _evict(self, block: int) -> None:
        """The content of an unreferenced block goes, from cache and placement."""
        if self.key[block] is not UNHASHED:
            self._forget(block)
        elif block in self.orphans:
            self.orphans.discard(block)
        else:
            return  # emptied by a reset
        self.evicted.append(block)
        if self.placement is not None:
            self.placement.evict(block)

    def _forget(self, block: int) -> None:
        """Drop a block's key; the next copy, if any, is the one that lookups name."""
        key = self.key[block]
        assert key is not UNHASHED
        self.key[block] = UNHASHED
        copies = self.copies.get(key)
        if copies is None:
            del self.first[key]
            return
        del copies[block]
        self.first[key] = next(iter(copies))
        if len(copies) == 1:
            del self.copies[key]

    def check(self) -> list[str]:
        """What contradicts itself, in words; empty if nothing does."""
        queue = self.free_queue()
        ids = range(self.first_id, len(self.references))
        held = [block for block in ids if self.references[block]]
        cached = {block for block in ids if self.key[block] is not UNHASHED}
        listed = {*self.first.values(), *chain.from_iterable(self.copies.values())}
        facts = {
            "every block is either free or held": sorted(queue + held) == list(ids),
            "what holds nothing is not hashed": cached.isdisjoint(self.fresh),
            "the cache lists exactly the hashed blocks": listed == cached,
            "a lookup names a block of that key": all(
                self.key[block] == key for key, block in self.first.items()
            ),
        }
        return [fact for fact, holds in facts.items() if not holds]
