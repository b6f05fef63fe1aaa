"""Writes that the scheduler's runtime is told of when somebody asks for levels.

Nobody on the scheduler's side does, step by step: levels decide what a hit may read and
what a block is worth when it is given up. So writes that go on where the last ones
ended are kept as one position per request, and told as one. Workers, which place every
token, are told step by step.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from patton.runtime import Runtime
from patton.step_checks import check_writes
from patton.step_writes import carry_out
from patton.steps import Request, Step


@attrs.define(eq=False)
class Pending:
    """What a runtime has not been told yet.

    ends: running request -> position after its last token.
    """

    runtime: Runtime
    ends: dict[Request, int] = attrs.field(factory=dict)

    def put_off(self, step: Step) -> bool:
        """Keep the writes of a step for later, unless it matters now.

        It does where more happens in it, or tokens may be withdrawn; where a write does
        not just go on, or has no room; and where it fills a block that others hit.
        """
        if step.has_events or step.drafts or step.reads or step.readbacks:
            return False
        if self._fills_what_was_hit():
            return False
        late: dict[Request, int] = {}
        told, size = self.ends.get, self.runtime.layout.block_tokens
        for request, first, count in step.writes:
            if told(request) != first and not self._begins(request, first):
                return False
            # Mostly the token goes into the block of the one before.
            within = 0 < count <= -first % size
            if not within and not self._has_room(request, first, count):
                return False
            late[request] = first + count
        if len(late) != len(step.writes):
            return False
        self.ends.update(late)
        return True

    def _fills_what_was_hit(self) -> bool:
        state, size = self.runtime.placements, self.runtime.layout.block_tokens
        hit = (block for block in state.sealing if state.sealed[block] == state.step)
        return any(state.written[block] < size for block in hit)

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
