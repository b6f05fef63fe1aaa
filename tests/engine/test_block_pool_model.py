"""The pool against a slow model of it, over random events, a placement or none.

The model is one list for the free queue and one list of cached (key, block) in order of
registration. Not covered here: refused events (test_block_pool).
"""

from __future__ import annotations

from random import Random

import attrs
import pytest

from patton.engine.block_pool import BlockPool

Key = tuple[int, ...]


@attrs.define
class Model:
    """Obvious, and linear in everything."""

    queue: list[int]
    held: dict[int, int] = attrs.field(factory=dict)
    cached: list[tuple[Key, int]] = attrs.field(factory=list)

    def lookup(self, chain: list[Key]) -> list[int]:
        hits: list[int] = []
        for key in chain:
            found = [block for cached, block in self.cached if cached == key]
            if not found:
                break
            hits.append(found[0])
        return hits

    def touch(self, blocks: list[int]) -> None:
        for block in blocks:
            if block in self.queue:
                self.queue.remove(block)
            self.held[block] = self.held.get(block, 0) + 1

    def take(self, count: int) -> list[int]:
        taken, self.queue = self.queue[:count], self.queue[count:]
        self.forget(taken)
        self.held.update(dict.fromkeys(taken, 1))
        return taken

    def forget(self, blocks: list[int]) -> None:
        self.cached = [
            (key, block) for key, block in self.cached if block not in blocks
        ]

    def release(self, table: list[int]) -> None:
        freed = []
        for block in reversed(table):
            self.held[block] -= 1
            if not self.held[block]:
                del self.held[block]
                freed.append(block)
        hashed = {block for _, block in self.cached}
        front = [block for block in freed if block not in hashed]
        self.queue = front + self.queue + [block for block in freed if block in hashed]


@attrs.define
class Placed:
    """Which blocks hold content: told by the pool, and kept by the test's own rules."""

    blocks: set[int] = attrs.field(factory=set)

    def evict(self, block: int) -> None:
        self.blocks.remove(block)  # KeyError: the pool evicted what is not placed


@attrs.define
class Driver:
    """Random requests on short texts over two letters, so that prefixes repeat."""

    random: Random
    pool: BlockPool
    model: Model
    placed: Placed | None
    tables: list[list[int]] = attrs.field(factory=list)
    seen: dict[str, int] = attrs.field(factory=dict)

    def step(self) -> None:
        event = self.random.choice(
            (self.start, self.start, self.start, self.end, self.end, self.evict)
        )
        event()
        if self.random.random() < 0.05:
            self.reset()
        self.compare()

    def count(self, name: str, times: int = 1) -> None:
        self.seen[name] = self.seen.get(name, 0) + times

    def start(self) -> None:
        text = tuple(self.random.choices((0, 1), k=self.random.randint(1, 4)))
        chain = [text[:end] for end in range(1, len(text) + 1)]
        partial = self.random.random() < 0.5
        hits = self.pool.lookup(chain[: len(chain) - (not partial)])
        assert self.model.lookup(chain[: len(chain) - (not partial)]) == hits
        revived = sum(block not in self.model.held for block in hits)
        need = len(chain) + partial - len(hits)
        if need + revived > self.pool.free_count:
            self.count("refused")
            return
        self.pool.touch(hits)
        self.model.touch(hits)
        new = self.pool.take(need)
        assert self.model.take(need) == new
        if self.placed is not None:
            assert self.placed.blocks.isdisjoint(new)
            self.placed.blocks.update(new)
        for key, block in zip(chain[len(hits) :], new, strict=False):
            self.pool.register(block, key)
            self.model.cached.append((key, block))
        self.tables.append(hits + new)
        self.count("hits", len(hits))
        self.count("copies", len(self.pool.copies))

    def end(self) -> None:
        if self.tables:
            table = self.tables.pop(self.random.randrange(len(self.tables)))
            last_partial = table[-1:] if self.pool.key[table[-1]] is None else []
            if self.placed is not None:
                for block in last_partial:
                    # A partial block is dropped by the placement; a full one that
                    # lost its key must be evicted by the pool.
                    if block not in self.pool.orphans:
                        self.placed.blocks.discard(block)
            self.pool.release(table)
            self.model.release(table)

    def evict(self) -> None:
        blocks = self.random.sample(range(1, self.pool.blocks + 1), 2)
        if self.placed is not None and self.random.random() < 0.5:
            # What a placement gate does: only content that nobody holds.
            free = [b for b in blocks if b in set(self.pool.placed_by_age())]
            self.pool.surrender(free)
            self.model.forget(free)
            for block in free:
                self.model.queue.remove(block)
                self.model.queue.insert(0, block)
            self.count("surrendered", len(free))
        else:
            self.pool.evict_blocks(blocks)
            self.model.forget(blocks)

    def reset(self) -> None:
        if self.random.random() < 0.5:
            while self.tables:
                self.end()
        assert self.pool.reset() == (not self.model.held)
        if not self.model.held:
            self.model.cached = []
            self.count("reset")

    def compare(self) -> None:
        assert self.model.queue == self.pool.free_queue()
        references = {b: n for b, n in enumerate(self.pool.references) if n}
        assert self.model.held == references
        hashed = {block: key for key, block in self.model.cached}
        assert hashed == {b: k for b, k in enumerate(self.pool.key) if k is not None}
        assert [] == self.pool.check()
        if self.placed is not None:
            # Content is exactly what is hashed, orphaned, or held.
            assert {*hashed, *self.pool.orphans, *self.model.held} == self.placed.blocks


@pytest.mark.parametrize("placement", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_pool_equals_its_model(seed: int, placement: bool) -> None:
    """Queue, references, keys and hits are those of the model after every event."""
    blocks = 6 + 3 * seed
    placed = Placed() if placement else None
    driver = Driver(
        Random(seed),
        BlockPool.of(blocks, first_id=1, placement=placed),  # type: ignore[arg-type]
        Model(list(range(1, blocks + 1))),
        placed,
    )
    for _ in range(1500):
        driver.step()

    wanted = {"hits", "copies", "refused", "reset"}
    if placement:
        wanted.add("surrendered")
    assert wanted <= {name for name, times in driver.seen.items() if times > 5}
