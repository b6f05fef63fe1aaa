"""Writes that the scheduler's runtime is told of when somebody asks for levels.

Nobody on the scheduler's side does, step by step: levels decide what a hit may read and
what a block is worth when it is given up. So writes that go on where the last ones
ended are kept as one position per request, and told as one. Workers, which place every
token, are told step by step.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from patton.runtime import Runtime
from patton.step_checks import check_writes
from patton.step_writes import carry_out
from patton.steps import Request, Step


@attrs.define(eq=False)
class Pending:
    """What a runtime has not been told yet.

    ends: running request -> position after its last token. filling: in this step some
    block is hit that is not full yet.
    """

    runtime: Runtime
    ends: dict[Request, int] = attrs.field(factory=dict)
    filling: bool = False

    def hit(self, blocks: Iterable[int]) -> None:
        """Blocks will be hit: tell how far they are written."""
        if partial := self._partial(blocks):
            binder = self.runtime.placements.binder
            writers = {w.id for b in partial if (w := binder[b]) is not None}
            self.settle(writers)
            self.filling = self.filling or bool(self._partial(partial))

    def _partial(self, blocks: Iterable[int]) -> list[int]:
        written, size = (
            self.runtime.placements.written,
            self.runtime.layout.block_tokens,
        )
        return [b for b in blocks if b < len(written) and written[b] < size]

    def put_off(self, writes: Sequence[tuple[Request, int, int]]) -> bool:
        """Keep the writes of a step for later, unless they matter now.

        They do where one does not just go on, or has no room, and where they fill a
        block that others hit.
        """
        if self.filling:
            return False
        late: dict[Request, int] = {}
        told, size = self.ends.get, self.runtime.layout.block_tokens
        for request, first, count in writes:
            if told(request) != first and not self._begins(request, first):
                return False
            # Mostly one token goes into the block of the one before.
            inside = count == 1 and first % size
            if not inside and not self._has_room(request, first, count):
                return False
            late[request] = first + count
        if len(late) != len(writes):
            return False
        self.ends.update(late)
        return True

    def _begins(self, request: Request, first: int) -> bool:
        """Whether a request of which nothing was put off has come so far, surely."""
        running = self.runtime.placements.requests.get(request)
        if running is None or request in self.ends:
            return False
        return first == running.tokens == running.confirmed

    def _has_room(self, request: Request, first: int, count: int) -> bool:
        table = self.runtime.placements.requests[request].blocks
        room = len(table) * self.runtime.layout.block_tokens
        return count > 0 and first + count <= room

    def settle(self, requests: Iterable[Request]) -> None:
        """Tell what was kept of these requests. Raises what `apply_step` raises."""
        state, ends = self.runtime.placements, self.ends
        behind = [request for request in requests if request in ends]
        if behind:
            known = [(request, state.requests[request].tokens) for request in behind]
            step = Step(writes=[(r, tokens, ends[r] - tokens) for r, tokens in known])
            carry_out(state, check_writes(state, step, {}), {}, planned=False)
            for request in behind:
                del ends[request]
