"""From the scheduler's output to the runtime's step.

The output says which tokens are computed; the adapter makes that the writes and reads
of a step. Where nobody has told of blocks as they were taken, it also derives from the
tables what must have happened to them: releases first, then request by request in the
scheduler's order, so that a block may be hit in the step that fills it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile

import attrs

from patton.errors import SchedulerOutputError
from patton.steps import Request, Step
from patton.vllm.lifecycle import Event, Lifecycle
from patton.vllm.outputs import NULL_BLOCK, Observed
from patton.vllm.watch import Unsaid

Ranges = list[tuple[Request, int, int]]


@attrs.define(eq=False)
class Adapter:
    """Turns observed steps into steps of the runtime.

    told: whether a cache manager tells the lifecycle of blocks as it takes them;
    window: tokens that a query sees, None for all before it. speculating: requests
    whose last span ended in draft tokens.
    """

    lifecycle: Lifecycle
    told: bool = False
    window: int | None = None
    speculating: set[str] = attrs.field(factory=set)

    def step(self, observed: Observed, unsaid: Unsaid) -> list[Event]:
        """Apply one step of the scheduler; all events since the last, in order.

        unsaid: empty where blocks are told of. Raises SchedulerOutputError,
        UnwrittenHitError and OutOfPairsError.
        """
        ended = {*observed.finished, *observed.preempted}
        if not self.told:
            for request, tokens in unsaid.verified.items():
                self.lifecycle.verify(request, tokens)
            self._end(ended)
            self._give_up(unsaid.given_up)
            self.lifecycle.forget(unsaid.taken)
            self._grant(observed)
        self.speculating -= ended
        return self.lifecycle.apply(self._tokens(observed))

    # --- blocks -------------------------------------------------------------------

    def _end(self, ended: Collection[str]) -> None:
        """Finish what ended, in order of admission; the output only has a set."""
        if ended:
            running = [*self.lifecycle.runtime.placements.requests]
            for request in running:
                if request in ended:
                    self.lifecycle.finish(str(request))

    def _give_up(self, given_up: Mapping[str, int]) -> None:
        for request, count in given_up.items():
            if self.lifecycle.runs(request):
                held = count - self.lifecycle.leading.get(request, 0)
                blocks = self.lifecycle.table(request)[: max(held, 0)]
                self.lifecycle.release(request, [b for b in blocks if b >= 0])

    def _grant(self, observed: Observed) -> None:
        for request, first, _ in observed.spans:
            table = observed.admitted.get(request)
            if table is not None:
                self._admit(request, table, first)
            elif fresh := observed.grown.get(request):
                self._bind(request, fresh)

    def _admit(self, request: str, table: Sequence[int], first: int) -> None:
        """A request starts at position `first`: blocks before it are prefix hits."""
        if self.lifecycle.runs(request):
            known = list(self.lifecycle.table(request))
            if known == list(table[: len(known)]):
                # The next turn of a session that kept its blocks.
                self._bind(request, table[len(known) :])
                return
            self.lifecycle.finish(request)
        hits, rest = divmod(first, self.lifecycle.runtime.layout.block_tokens)
        if rest:
            value = f"{first} of request {request}, which ends inside a block"
            raise SchedulerOutputError("num_computed_tokens", value, "whole blocks")
        leading = sum(1 for _ in takewhile(lambda b: b == NULL_BLOCK, table[:hits]))
        self.lifecycle.share(request, table[leading:hits], leading)
        self._bind(request, table[hits:])

    def _bind(self, request: str, fresh: Sequence[int]) -> None:
        """Blocks that vLLM has given out already; evict for them if need be."""
        if fresh:
            self.lifecycle.make_room(request, len(fresh), len(fresh))
            self.lifecycle.bind(request, fresh)

    # --- tokens -------------------------------------------------------------------

    def _tokens(self, observed: Observed) -> Step:
        """Writes and reads of the step; positions as the runtime's tables have them.

        A span of one token and its drafts attends on the device, token by token; a
        longer one on the host, which reads the cached part back for it.
        """
        spans = observed.spans
        if leading := self.lifecycle.leading:
            size = self.lifecycle.runtime.layout.block_tokens
            spans = [(r, p - leading.get(r, 0) * size, n) for r, p, n in spans]
        if self.speculating or observed.drafts or self.window is not None:
            return self._unusual_tokens(observed, spans)
        return Step(
            writes=spans,
            reads=[(r, 0, p + 1) for r, p, n in spans if n == 1],
            readbacks=[(r, 0, p) for r, p, n in spans if p and n != 1],
        )

    def _unusual_tokens(
        self, observed: Observed, spans: Sequence[tuple[str, int, int]]
    ) -> Step:
        """With draft tokens, or with a window."""
        drafts = observed.drafts
        reads: Ranges = []
        readbacks: Ranges = []
        confirms: list[tuple[Request, int]] = []
        for request, first, count in spans:
            if count == 1 + drafts.get(request, 0):
                ends = range(first + 1, first + count + 1)
                reads += [(request, self._seen_from(end), end) for end in ends]
            elif first:
                readbacks.append((request, self._seen_from(first + 1), first))
            if request in self.speculating:
                # It starts where the accepted ones of the last drafts end.
                confirms.append((request, first))
                self.speculating.discard(request)
        self.speculating |= drafts.keys()
        return Step(
            confirms=confirms,
            writes=spans,
            drafts=drafts,
            reads=reads,
            readbacks=[r for r in readbacks if r[1] < r[2]],
        )

    def _seen_from(self, end: int) -> int:
        """The first position that a query at `end - 1` sees."""
        return 0 if self.window is None else max(0, end - self.window)
