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

    ends: request -> position after its last token.
    """

    runtime: Runtime
    ends: dict[Request, int] = attrs.field(factory=dict)

    def put_off(self, step: Step) -> bool:
        """Keep the writes of a step for later, unless they matter now.

        They do where tokens may be withdrawn, where any is written anew, and where a
        block was hit that this step must fill.
        """
        if step.confirms or step.drafts or self.runtime.placements.owed:
            return False
        late: dict[Request, int] = {}
        told = self.ends.get
        for request, first, count in step.writes:
            if told(request) != first and not self._begins(request, first):
                return False
            late[request] = first + count
        self.ends.update(late)
        return True

    def _begins(self, request: Request, first: int) -> bool:
        """Whether a request of which nothing was put off has written so far."""
        running = self.runtime.placements.requests.get(request)
        return (
            running is not None and request not in self.ends and running.tokens == first
        )

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
