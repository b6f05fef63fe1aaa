"""What is true of the blocks of a live scheduler, from its own state.

The pool knows tables and references but not how far a block is written: that follows
from the tokens that each request had computed when its step was scheduled. Objects are
watched, never classes.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from tests.vllm.comparison import PoolTruth
from tests.vllm.real.serving import BLOCK, Served


@attrs.define
class Truth:
    """Follows a live scheduler.

    levels: tokens written of each block; taken: ids that the pool gave out since the
    last step, even if the step dropped them.
    """

    served: Served
    levels: NDArray[np.int64]
    taken: list[int] = attrs.field(factory=list)

    @classmethod
    def of(cls, served: Served) -> Truth:
        """Watch the pool from now on."""
        truth = cls(served, np.zeros(len(served.pool.blocks), np.int64))
        take = served.pool.get_new_blocks

        def get_new_blocks(count: int) -> Any:
            blocks = take(count)
            truth.taken += [block.block_id for block in blocks]
            return blocks

        served.pool.get_new_blocks = get_new_blocks
        return truth

    def follow(self, output: Any) -> PoolTruth:
        """A step was scheduled: what is true now."""
        self.levels[self.taken] = 0
        self.taken.clear()
        requests, tables = self.served.scheduler.requests, self.served.tables
        for name, count in output.num_scheduled_tokens.items():
            end = requests[name].num_computed_tokens
            for index in range((end - count) // BLOCK, len(tables[name])):
                block = tables[name][index]
                if not block.is_null:
                    level = min(max(end - index * BLOCK, 0), BLOCK)
                    self.levels[block.block_id] = level
        blocks = self.served.pool.blocks
        return PoolTruth(
            {n: [b.block_id for b in held] for n, held in tables.items() if held},
            self._references(),
            np.array([block.block_hash is not None for block in blocks]),
            self.levels,
        )

    def _references(self) -> NDArray[np.int64]:
        """Two steps deep the pool keeps what ended until the step in flight has run."""
        references = np.array([block.ref_cnt for block in self.served.pool.blocks])
        references[0] = 0  # the null block's are not kept
        for _, blocks in self.served.scheduler.deferred_frees:
            for block in blocks:
                references[block.block_id] -= 1
        return references
