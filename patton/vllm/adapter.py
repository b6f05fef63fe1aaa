"""From the scheduler's output to the runtime's step.

The output says which tokens are computed; the adapter makes that the writes of a step
(what they attend to follows from them, and only the worker needs it). Where nobody has
told of blocks as they were taken, it also derives from the tables what must have
happened to them: releases first, then request by request in the scheduler's order, so
that a block may be hit in the step that fills it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

import attrs

from patton.errors import OutOfPairsError, SchedulerOutputError
from patton.steps import Request
from patton.vllm.lifecycle import Confirms, Drafts, Event, Lifecycle, Writes
from patton.vllm.outputs import NULL_BLOCK, Granted, Observed, granted, observe
from patton.vllm.watch import Unsaid


@attrs.define(eq=False)
class Adapter:
    """Turns observed steps into steps of the runtime.

    told: whether a cache manager tells the lifecycle of blocks as it takes them.
    speculating: requests whose last span ended in draft tokens.
    """

    lifecycle: Lifecycle
    told: bool = False
    speculating: set[Request] = attrs.field(factory=set)

    def step(self, output: Any, unsaid: Unsaid) -> list[Event]:
        """Apply one step of the scheduler; all events since the last, in order.

        output: vLLM's SchedulerOutput, duck-typed; unsaid: empty where blocks are told
        of. Raises SchedulerOutputError, UnwrittenHitError and OutOfPairsError.
        """
        observed = observe(output)
        ended = {*observed.finished, *observed.preempted}
        if not self.told:
            for request, tokens in unsaid.verified.items():
                self.lifecycle.verify(request, tokens)
            self._end(ended)
            if unsaid.given_up:
                self._give_up(unsaid.given_up)
            if unsaid.taken:
                self.lifecycle.forget(unsaid.taken)
            self._grant(granted(output), observed)
        if self.speculating:
            self.speculating -= ended
        return self.lifecycle.apply(*self._tokens(observed))

    # --- blocks -------------------------------------------------------------------

    def _end(self, ended: Collection[str]) -> None:
        """Finish what ended, in order of admission; the output only has a set."""
        running = self.lifecycle.requests
        known = [request for request in ended if request in running]
        if len(known) > 1:
            known = [str(request) for request in running if request in ended]
        for request in known:
            self.lifecycle.finish(request)

    def _give_up(self, given_up: Mapping[str, int]) -> None:
        for request, count in given_up.items():
            if request in self.lifecycle.requests:
                held = count - self.lifecycle.leading.get(request, 0)
                blocks = self.lifecycle.table(request)[: max(held, 0)]
                self.lifecycle.release(request, [b for b in blocks if b >= 0])

    def _grant(self, granted: Granted, observed: Observed) -> None:
        admitted, grown = granted.admitted, granted.grown
        named = grown.keys() | admitted.keys()
        for request in filter(named.__contains__, observed.spans.requests):
            if request in grown:
                self._bind(request, grown[request])
            else:
                self._admit(request, *admitted[request])

    def _admit(self, request: str, table: Sequence[int], first: int) -> None:
        """A request starts at position `first`: blocks before it are prefix hits."""
        if request in self.lifecycle.requests:
            known = list(self.lifecycle.table(request))
            if known == list(table[: len(known)]):
                # The next turn of a session that kept its blocks.
                self._bind(request, table[len(known) :])
                return
            self.lifecycle.finish(request)
        hits, rest = divmod(first, self.lifecycle.block_tokens)
        if rest:
            value = f"{first} of request {request}, which ends inside a block"
            raise SchedulerOutputError("num_computed_tokens", value, "whole blocks")
        leading = sum(1 for _ in takewhile(lambda b: b == NULL_BLOCK, table[:hits]))
        self.lifecycle.share(request, table[leading:hits], leading)
        self._bind(request, table[hits:])

    def _bind(self, request: str, fresh: Sequence[int]) -> None:
        """Blocks that vLLM has given out already; evict for them if need be."""
        try:
            self.lifecycle.bind(request, fresh)
        except OutOfPairsError as refusal:
            rest = fresh[fresh.index(refusal.block) :]
            self.lifecycle.make_room(request, len(rest), len(rest))
            self.lifecycle.bind(request, rest)

    # --- tokens -------------------------------------------------------------------

    def _tokens(self, observed: Observed) -> tuple[Writes, Confirms, Drafts]:
        """What the step writes, and what it confirms before; positions as in tables."""
        spans: Writes = observed.spans
        if leading := self.lifecycle.leading:
            size = self.lifecycle.block_tokens
            spans = [(r, p - leading.get(str(r), 0) * size, n) for r, p, n in spans]
        if not self.speculating and not observed.drafts:
            return spans, (), {}
        # A span starts where the accepted ones of the last drafts end.
        confirms = [(r, p) for r, p, _ in spans if r in self.speculating]
        self.speculating -= {request for request, _ in confirms}
        self.speculating |= observed.drafts.keys()
        return spans, confirms, observed.drafts
