"""Continuous batching in the order of vLLM v1's scheduler (first come, first served).

One step: running requests in list order get their next tokens under a token budget;
where blocks run out the last running request is preempted, goes to the front of the
waiting ones and starts over. In a step without preemption waiting requests are then
admitted: a prefix hit of at most all tokens but one, the rest as far as the budget
goes, and only if the whole sequence known so far fits. A block is hashed when the
tokens that fill it are scheduled, so that a later request may share it in that step.
The last token of a request is never written: nothing would read it.

Not here: where requests come from (`serving`), speculation, sliding windows, priority.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import attrs

from patton.arguments import is_count
from patton.engine.block_pool import BlockPool
from patton.engine.placement_gate import Eviction, Need, Placement, PlacementGate
from patton.engine.requests import Admission, Request, StepRecord
from patton.errors import ConfigError, EngineStateError, RequestTooLargeError


@attrs.define(eq=False)
class Scheduler:
    """Which tokens of which requests are computed in the next step.

    caching: whether full blocks are shared, and outlive their request. running,
    waiting: in order. filled: blocks hashed in the step being scheduled.
    """

    pool: BlockPool
    gate: PlacementGate | None
    block_tokens: int
    concurrency: int
    token_budget: int
    caching: bool = True
    running: list[Request] = attrs.field(factory=list)
    waiting: deque[Request] = attrs.field(factory=deque)
    steps: int = 0
    filled: set[int] = attrs.field(factory=set)
    _open: StepRecord | None = None

    @classmethod
    def of(
        cls,
        blocks: int,
        *,
        block_tokens: int = 16,
        concurrency: int = 32,
        token_budget: int = 2048,
        caching: bool = True,
        placement: Placement | None = None,
        pair_blocks: int = 1,
        eviction: Eviction = "pairs",
    ) -> Scheduler:
        """A scheduler over a fresh pool of `blocks` ids. Raises ConfigError.

        concurrency: requests that may run at once; token_budget: tokens of one step;
        caching: False for memory that a request owns and takes away with it, of which
        a placement must drop full blocks, too, when a request finishes; placement,
        pair_blocks, eviction: see `PlacementGate`; without a placement the pool is a
        plain block-granular cache.
        """
        limits = {
            "block_tokens": block_tokens,
            "concurrency": concurrency,
            "token_budget": token_budget,
        }
        for name, value in limits.items():
            if not is_count(value):
                raise ConfigError("engine", name, value, "a whole number from 1")
        pool = BlockPool.of(blocks, placement=placement)
        gate = None
        if placement is not None:
            gate = PlacementGate.of(placement, pool, pair_blocks, eviction)
        return cls(pool, gate, block_tokens, concurrency, token_budget, caching)

    @property
    def is_idle(self) -> bool:
        """Nothing runs and nothing waits."""
        return not self.running and not self.waiting

    def add(self, request: Request) -> None:
        """Queue a request.

        Raises RequestTooLargeError if it could not end even with all blocks to itself.
        """
        needed = self._blocks_of(request.final_tokens - 1)
        if needed > self.pool.blocks:
            raise RequestTooLargeError(request.id, needed, self.pool.blocks)
        self.waiting.append(request)

    # --- one step -----------------------------------------------------------------

    def schedule(self) -> StepRecord:
        """Choose the next step's tokens and take the blocks for them.

        Raises EngineStateError if the step before was not completed, and
        RequestTooLargeError if a request does not fit the empty device.
        """
        if self._open is not None:
            problem = f"step {self._open.step} is not completed"
            raise EngineStateError("schedule", problem)
        record = StepRecord(self.steps)
        self.pool.evicted = record.evicted
        self.filled.clear()
        budget = self._continue_running(record, self.token_budget)
        if budget and not record.preempted:
            self._admit_waiting(record, budget)
        self.steps += 1
        self._open = record
        return record

    def complete(self, record: StepRecord) -> list[Request]:
        """Account for a step that has run: tokens are sampled, ended requests freed.

        Returns the requests that ended, in the order in which they were scheduled.
        Raises EngineStateError if `record` is not that of the step scheduled last.
        """
        if record is not self._open:
            problem = f"step {record.step} is not the one scheduled last"
            raise EngineStateError("complete", problem)
        self._open = None
        finished = record.finished
        for request, start, count, _ in record.scheduled:
            end = request.computed = start + count
            if end == request.known:
                request.known = end + 1
                if request.known == request.final_tokens:
                    self._give_up(request)
                    finished.append(request)
        if finished:
            self.running = [request for request in self.running if not request.is_done]
        return finished

    def _continue_running(self, record: StepRecord, budget: int) -> int:
        """Next tokens of the running requests, in order; returns the budget left."""
        block_tokens = self.block_tokens
        running, scheduled = self.running, record.scheduled
        index = 0
        while index < len(running) and budget:
            request = running[index]
            start, known = request.computed, request.known
            count = min(known - start, budget)
            end = start + count
            if end > len(request.blocks) * block_tokens:
                need = self._blocks_of(end) - len(request.blocks)
                if not self._allocate_or_preempt(request, need, record):
                    break
            if end >= (request.hashed + 1) * block_tokens:
                self._register(request, end)
            if end < known:
                record.chunked += 1
            decode = start + 1 == known and start >= request.prompt_tokens
            scheduled.append((request, start, count, decode))
            budget -= count
            index += 1
        return budget

    def _allocate_or_preempt(
        self, request: Request, need: int, record: StepRecord
    ) -> bool:
        """Blocks for a running request, at the cost of the last ones if need be.

        False when the request itself was the last one left and had to go.
        """
        while not self._has_room(request, need, need, ()):
            victim = self.running.pop()
            self._preempt(victim, record)
            if victim is request:
                return False
        self._grant(request, [], need, record)
        return True

    def _preempt(self, victim: Request, record: StepRecord) -> None:
        """The victim gives up its blocks and starts over, first in the queue."""
        self._give_up(victim)
        victim.computed = 0
        victim.hashed = 0
        victim.preemptions += 1
        self.waiting.appendleft(victim)
        record.preempted.append(victim.id)

    def _admit_waiting(self, record: StepRecord, budget: int) -> None:
        """Admit waiting requests in order, until one finds no room."""
        waiting, running = self.waiting, self.running
        while waiting and budget and len(running) < self.concurrency:
            request = waiting[0]
            count = self._admit(request, record, budget)
            if not count:
                return
            waiting.popleft()
            running.append(request)
            budget -= count

    def _admit(self, request: Request, record: StepRecord, budget: int) -> int:
        """Hits and first blocks of a waiting request; its tokens, 0 if it must wait."""
        # The last token is computed in any case: its output is what is asked for.
        most = (request.known - 1) // self.block_tokens
        hits = self.pool.lookup(request.keys[:most])
        count = self._claim(request, hits, record, budget)
        if count or self.running:
            return count
        # Alone, and no room: its own hits may hold pairs that it cannot fill on.
        count = self._claim(request, [], record, budget)
        if not count:
            assert self.gate is not None  # `add` has seen that the ids suffice
            needed = self._blocks_of(request.known)
            available = min(self.pool.blocks, self.gate.capacity(request.id))
            raise RequestTooLargeError(request.id, needed, available)
        return count

    def _claim(
        self, request: Request, hits: list[int], record: StepRecord, budget: int
    ) -> int:
        """Admit a request on these hits if it fits; its tokens, 0 if it does not."""
        start = len(hits) * self.block_tokens
        count = min(request.known - start, budget)
        end = start + count
        need = self._blocks_of(end) - len(hits)
        whole = self._blocks_of(request.known) - len(hits)
        if not self._has_room(request, need, whole, hits):
            return 0
        again = request.preemptions > 0
        record.admissions.append(Admission(request.id, request.known, start, again))
        record.same_step_shares += len(self.filled.intersection(hits))
        request.computed, request.hashed = start, len(hits)
        self._grant(request, hits, need, record)
        self._register(request, end)
        if end < request.known:
            record.chunked += 1
        decode = start + 1 == request.known and start >= request.prompt_tokens
        record.scheduled.append((request, start, count, decode))
        return count

    # --- blocks -------------------------------------------------------------------

    def _blocks_of(self, tokens: int) -> int:
        return -(-tokens // self.block_tokens)

    def _has_room(
        self, request: Request, need: int, whole: int, hits: Sequence[int]
    ) -> bool:
        """Whether `need` blocks can be taken now and `whole` in all; may evict."""
        pool = self.pool
        # A hit that nobody holds leaves the free queue, too.
        revived = sum(1 for block in hits if not pool.references[block])
        if whole + revived > pool.free_count:
            return False
        gate = self.gate
        return gate is None or gate.make_room(
            request.id, need, whole, hits, self.blocks_wanted
        )

    def blocks_wanted(self) -> dict[int, Need]:
        """Blocks that waiting requests would hit now, and when: see `Need`."""
        needs: dict[int, Need] = {}
        for place, request in enumerate(self.waiting):
            most = (request.known - 1) // self.block_tokens
            for index, block in enumerate(self.pool.lookup(request.keys[:most])):
                needs.setdefault(block, (place, index))
        return needs

    def _grant(
        self, request: Request, hits: list[int], need: int, record: StepRecord
    ) -> None:
        """Append hits, then new blocks, to a request's table."""
        assert not hits or not request.blocks
        pool = self.pool
        pool.touch(hits)
        if pool.placement is not None:
            for block in hits:
                pool.placement.share(request.id, block)
        new = pool.take(need)
        if pool.placement is not None:
            for block in new:
                pool.placement.bind(request.id, block)
        request.blocks += hits
        request.blocks += new
        record.grants.append((request.id, hits, new))

    def _register(self, request: Request, end: int) -> None:
        """Hash the blocks that the tokens before `end` fill."""
        if not self.caching:
            return
        full = end // self.block_tokens
        for index in range(request.hashed, full):
            block = request.blocks[index]
            self.pool.register(block, request.keys[index])
            self.filled.add(block)
        request.hashed = full

    def _give_up(self, request: Request) -> None:
        """All references of a request go."""
        if self.pool.placement is not None:
            self.pool.placement.finish(request.id)
        self.pool.release(request.blocks)
        request.blocks = []
