"""The closed loop of a chat service: open conversations take turns (Paper 5.1).

`pool` conversations are open, each with one turn waiting or running, of which at most
`concurrency` run at once. When a turn ends the next one of its conversation is queued;
when a conversation ends, or its next turn would exceed the context limit, the next
conversation of the workload takes its place.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from patton.arguments import expect, expect_fields, is_count
from patton.engine.conversations import Conversation
from patton.engine.placement_gate import Eviction, Placement
from patton.engine.requests import Request, StepRecord
from patton.engine.scheduler import Scheduler
from patton.engine.workloads import Workload
from patton.errors import ConfigError, WorkloadError

MOST_OPEN = 1 << 20  # conversations at once; each takes memory from the beginning
MOST_MISFITS = 100_000  # conversations in a row; a generator's may never end


@attrs.frozen
class LoopSettings:
    """How a workload is served.

    concurrency: requests that may run at once; pool: open conversations; max_context:
    tokens of prompt and answer that a turn may have; token_budget: tokens of one step;
    block_tokens: of an engine block; wrap: begin the workload anew when it is exhausted
    (with new tokens, so that nothing is hit for being old), else let the pool run dry.
    caching, eviction: see `Scheduler.of`; without caching a turn computes its whole
    prompt, as in systems whose memory belongs to a request until it ends (Paper 5.2).
    """

    concurrency: int = 32
    pool: int = 64
    max_context: int = 8192
    token_budget: int = 2048
    block_tokens: int = 16
    wrap: bool = True
    caching: bool = True
    eviction: Eviction = "pairs"


@attrs.define
class Statistics:
    """Counts over the steps so far; tokens unless said otherwise.

    requests: admitted at least once; turns: ended; prompt_tokens, hit_tokens: over
    first admissions, and apart from them over those after a preemption (readmitted_*);
    evictions, blocks_bound, same_step_shares: blocks; preemptions, chunked_prefills:
    events.
    """

    steps: int = 0
    requests: int = 0
    turns: int = 0
    prefill_tokens: int = 0
    decode_tokens: int = 0
    prompt_tokens: int = 0
    hit_tokens: int = 0
    readmissions: int = 0
    readmitted_prompt_tokens: int = 0
    readmitted_hit_tokens: int = 0
    preemptions: int = 0
    evictions: int = 0
    chunked_prefills: int = 0
    same_step_shares: int = 0
    blocks_bound: int = 0

    @property
    def prefix_hit_rate(self) -> float:
        """Prompt tokens found in the cache / prompt tokens, re-admissions left out."""
        return self.hit_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def add(self, record: StepRecord) -> None:
        """Count one completed step."""
        self.steps += 1
        decodes = scheduled = 0
        for _, _, count, decode in record.scheduled:
            scheduled += count
            decodes += decode
        self.decode_tokens += decodes
        self.prefill_tokens += scheduled - decodes
        self.turns += len(record.finished)
        self.preemptions += len(record.preempted)
        self.evictions += len(record.evicted)
        self.chunked_prefills += record.chunked
        self.same_step_shares += record.same_step_shares
        for _, _, binds in record.grants:
            self.blocks_bound += len(binds)
        for admission in record.admissions:
            if admission.readmitted:
                self.readmissions += 1
                self.readmitted_prompt_tokens += admission.known_tokens
                self.readmitted_hit_tokens += admission.hit_tokens
            else:
                self.requests += 1
                self.prompt_tokens += admission.known_tokens
                self.hit_tokens += admission.hit_tokens


@attrs.define(eq=False)
class _Open:
    """A conversation that has a turn waiting or running."""

    conversation: Conversation
    number: int
    reading: int
    turn: int = 0


@attrs.define(eq=False)
class ServingLoop:
    """Serves a workload step by step: `step`, run it, `completed`.

    statistics: over completed steps; open: conversations by number; readings: passes
    over the workload begun.
    """

    workload: Workload
    settings: LoopSettings
    scheduler: Scheduler
    statistics: Statistics = attrs.field(factory=Statistics)
    open: dict[int, _Open] = attrs.field(factory=dict)
    readings: int = 0
    _source: Iterator[Conversation] = attrs.field(factory=lambda: iter(()))
    _numbers: int = 0
    _requests: int = 0
    _fitting: bool = True
    _misfits: int = 0

    @classmethod
    def of(
        cls,
        workload: Workload,
        settings: LoopSettings,
        blocks: int,
        *,
        placement: Placement | None = None,
        pair_blocks: int = 1,
    ) -> ServingLoop:
        """A loop whose first `pool` conversations wait.

        blocks: ids of the engine's pool; placement, pair_blocks: where the blocks are
        bound and how many make a pair there; without one the loop is the plain
        block-granular reference. Raises ConfigError, WorkloadError and
        RequestTooLargeError.
        """
        expect("ServingLoop.of", "workload", workload, Workload)
        expect("ServingLoop.of", "settings", settings, LoopSettings)
        expect_fields("loop", settings, wrap=bool, caching=bool)
        if not is_count(settings.pool, most=MOST_OPEN):
            raise ConfigError("engine", "pool", settings.pool, f"1 to {MOST_OPEN}")
        if not is_count(settings.max_context):
            accepted = "a whole number from 1"
            raise ConfigError("engine", "max_context", settings.max_context, accepted)
        scheduler = Scheduler.of(
            blocks,
            block_tokens=settings.block_tokens,
            concurrency=settings.concurrency,
            token_budget=settings.token_budget,
            caching=settings.caching,
            placement=placement,
            pair_blocks=pair_blocks,
            eviction=settings.eviction,
        )
        loop = cls(workload, settings, scheduler)
        for _ in range(settings.pool):
            loop._open_next()
        return loop

    @property
    def is_exhausted(self) -> bool:
        """All conversations of the workload have ended."""
        return self.scheduler.is_idle

    def step(self) -> StepRecord:
        """Schedule the next step; its tables are the `blocks` of its requests."""
        return self.scheduler.schedule()

    def completed(self, record: StepRecord) -> None:
        """The step has run: free what ended, queue next turns, count."""
        for request in self.scheduler.complete(record):
            opened = self.open[request.conversation]
            opened.turn += 1
            if not self._queue_turn(opened):
                del self.open[opened.number]
                self._open_next()
        self.statistics.add(record)

    def run(self, steps: int) -> Statistics:
        """Up to `steps` steps in which nothing but the engine itself happens."""
        for _ in range(steps):
            if self.is_exhausted:
                break
            self.completed(self.step())
        return self.statistics

    def _open_next(self) -> None:
        """Open the next conversation whose first turn is within the limit, if any."""
        while (conversation := self._next_conversation()) is not None:
            opened = _Open(conversation, self._numbers, self.readings)
            self._numbers += 1
            if self._queue_turn(opened):
                self.open[opened.number] = opened
                self._fitting = True
                self._misfits = 0
                return
            self._misfits += 1
            if self._misfits >= MOST_MISFITS and self.settings.wrap:
                raise self._nothing_fits()

    def _next_conversation(self) -> Conversation | None:
        """The next of the workload, or the first of its next pass."""
        conversation = next(self._source, None)
        if conversation is not None:
            return conversation
        if self.readings and not self.settings.wrap:
            return None
        if not self._fitting or (self.readings and not self._numbers):
            # A whole pass without a single turn would be followed by others.
            raise self._nothing_fits()
        self._fitting = False
        self.readings += 1
        self._source = self.workload.conversations()
        return next(self._source, None)

    def _nothing_fits(self) -> WorkloadError:
        problem = "no conversation to serve"
        accepted = f"a first turn of at most {self.settings.max_context} tokens"
        return WorkloadError(self.workload.name, 0, problem, accepted)

    def _queue_turn(self, opened: _Open) -> bool:
        """Queue the current turn; False if there is none or it exceeds the limit."""
        turns = opened.conversation.turns
        if opened.turn >= len(turns):
            return False
        turn = turns[opened.turn]
        if turn.tokens > self.settings.max_context:
            return False
        source = opened.conversation.token_source(
            opened.turn, opened.number, opened.reading
        )
        request = Request.of(
            self._requests,
            turn.prompt_tokens,
            turn.output_tokens,
            source,
            block_tokens=self.settings.block_tokens,
            conversation=opened.number,
            turn=opened.turn,
        )
        self._requests += 1
        self.scheduler.add(request)
        return True


def reference_statistics(
    workload: Workload, settings: LoopSettings, blocks: int, steps: int
) -> Statistics:
    """The same workload on a plain block-granular cache, the paper's GPU reference.

    blocks: of the cache; steps: of the engine. Raises what `ServingLoop.of` raises.
    """
    return ServingLoop.of(workload, settings, blocks).run(steps)


def reference_hit_rate(
    workload: Workload, settings: LoopSettings, blocks: int, steps: int
) -> float:
    """Prefix hit rate of `reference_statistics`."""
    return reference_statistics(workload, settings, blocks, steps).prefix_hit_rate
