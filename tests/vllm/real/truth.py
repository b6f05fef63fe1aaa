"""What is true of the blocks of a live scheduler, from its own state.

The pool knows tables and references but not how far a block is written: that follows
from the tokens that each request had computed when its step was scheduled. Objects are
watched, never classes.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs

from tests.vllm.real.serving import BLOCK, Served


@attrs.define
class Truth:
    """Levels of blocks, and the pool's tables and references.

    levels: block -> tokens written, of blocks in use or cached; taken: ids that the
    pool gave out since the last step, even if the step dropped them.
    """

    served: Served
    levels: dict[int, int] = attrs.field(factory=dict)
    taken: list[int] = attrs.field(factory=list)

    @classmethod
    def of(cls, served: Served) -> Truth:
        """Watch the pool from now on."""
        truth = cls(served)
        take = served.pool.get_new_blocks

        def get_new_blocks(count: int) -> Any:
            blocks = take(count)
            truth.taken += [block.block_id for block in blocks]
            return blocks

        served.pool.get_new_blocks = get_new_blocks
        return truth

    def follow(self, output: Any) -> list[int]:
        """A step was scheduled: raise levels; the ids that were taken for it."""
        taken, self.taken = self.taken, []
        for block in taken:
            self.levels[block] = 0
        requests, tables = self.served.scheduler.requests, self.served.tables
        for name, count in output.num_scheduled_tokens.items():
            end = requests[name].num_computed_tokens
            for index in range((end - count) // BLOCK, len(tables[name])):
                block = tables[name][index]
                if not block.is_null:
                    level = min(max(end - index * BLOCK, 0), BLOCK)
                    self.levels[block.block_id] = level
        return taken

    def tables(self) -> dict[str, list[int]]:
        """Request -> its block ids, 0 where it gave one up."""
        return {
            name: [block.block_id for block in blocks]
            for name, blocks in self.served.tables.items()
            if blocks
        }

    def references(self) -> dict[int, int]:
        """Block -> requests that hold it, where any does.

        Two steps deep the pool keeps what ended until the step in flight has run.
        """
        kept = Counter(
            block.block_id
            for _, blocks in self.served.scheduler.deferred_frees
            for block in blocks
        )
        held = {b.block_id: b.ref_cnt for b in self.served.pool.blocks[1:]}
        return {b: n - kept[b] for b, n in held.items() if n - kept[b]}

    def cached(self) -> set[int]:
        """Blocks that a lookup can hit."""
        blocks = self.served.pool.blocks
        return {b.block_id for b in blocks if b.block_hash is not None}
