"""What vLLM's cache does with blocks, told to the runtime event by event.

Whoever knows first tells: the gated cache manager as it happens, else the adapter as
the scheduler's output has it. The log of events is what the worker repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import attrs

from patton.engine.placement_gate import Eviction, PlacementGate
from patton.errors import BlockStateError, UnwrittenHitError, UnwrittenReadError
from patton.requests import UNBOUND, Running
from patton.runtime import Runtime
from patton.steps import Request, Step
from patton.vllm.pending import Pending

Event = tuple[str, tuple[Any, ...]]

Writes = Sequence[tuple[Request, int, int]]
Confirms = Sequence[tuple[Request, int]]
Drafts = dict[Request, int]

NOTHING_WRITTEN = Step()


@attrs.frozen
class _References:
    """Reference counts of vLLM's blocks."""

    blocks: Sequence[Any]

    def __getitem__(self, block: int) -> int:
        return int(self.blocks[block].ref_cnt)


@attrs.frozen
class LivePool:
    """vLLM's block pool as the cache of a `PlacementGate`.

    pool: a BlockPool of vLLM, duck-typed.
    """

    pool: Any
    runtime: Runtime

    @property
    def references(self) -> _References:
        """How many requests hold a block."""
        return _References(self.pool.blocks)

    def surrender(self, blocks: Iterable[int]) -> None:
        """Take the blocks out of the prefix cache; their ids stay in the free queue."""
        named = list(blocks)
        self.pool.evict_blocks(set(named))
        for block in named:
            self.runtime.evict(block)

    def placed_by_age(self) -> Iterator[int]:
        """Unreferenced blocks with content, least recently used first."""
        queue = self.pool.free_block_queue.get_all_free_blocks()
        placed = self.runtime.placement
        return (b.block_id for b in queue if placed(b.block_id) is not None)


@attrs.define(eq=False)
class Lifecycle:
    """The one door to the scheduler's runtime.

    It has no Commit Zone, since where a block lies does not depend on slots; those are
    the workers' business. live: the block pool, None where outputs are replayed without
    one. leading: blocks that a request had given up before it was admitted, which its
    table leaves out. withdrawn: blocks taken out of vLLM's cache because their tokens
    were dropped.
    """

    _runtime: Runtime
    _pending: Pending
    live: LivePool | None
    gate: PlacementGate | None
    withdraws: bool
    leading: dict[str, int] = attrs.field(factory=dict)
    withdrawn: int = 0
    _log: list[Event] = attrs.field(factory=list)

    @classmethod
    def of(
        cls,
        runtime: Runtime,
        pool: Any = None,
        *,
        eviction: Eviction = "pairs",
        withdraws: bool = False,
    ) -> Lifecycle:
        """The door to a fresh runtime.

        pool: vLLM's BlockPool; eviction: see `PlacementGate`; withdraws: whether blocks
        that are cached but turn out unwritten are taken out of the cache at once.
        """
        live = gate = None
        if pool is not None:
            live = LivePool(pool, runtime)
            pair_blocks = runtime.layout.pair_blocks
            gate = PlacementGate.of(runtime, live, pair_blocks, eviction)
        lifecycle = cls(runtime, Pending(runtime), live, gate, withdraws)
        runtime.observer = lifecycle._note
        return lifecycle

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event != "step":
            self._log.append((event, arguments))

    # --- questions ----------------------------------------------------------------

    @property
    def runtime(self) -> Runtime:
        """The runtime, with all that was written."""
        self._pending.settle([*self._pending.ends])
        return self._runtime

    @property
    def block_tokens(self) -> int:
        """Tokens of a block."""
        return self._runtime.layout.block_tokens

    @property
    def requests(self) -> Running:
        """What runs, in order of admission; levels may be behind."""
        return self._runtime.placements.requests

    def table(self, request: str) -> Sequence[int]:
        """The blocks of a request, RELEASED where it gave one up."""
        return self.requests[request].blocks

    # --- events -------------------------------------------------------------------

    def share(self, request: str, hits: Sequence[int], leading: int = 0) -> None:
        """A request is admitted with a prefix hit, `leading` blocks of it given up.

        Raises UnwrittenHitError.
        """
        if leading:
            self.leading[request] = leading
        self._pending.hit(hits)
        share = self._runtime.share
        try:
            for block in hits:
                share(request, block)
        except BlockStateError as error:
            raise self._unwritten(request, error.block) from None

    def bind(self, request: str, blocks: Sequence[int]) -> None:
        """A request takes blocks anew; what they held is gone (vLLM evicts by taking).

        Raises OutOfPairsError.
        """
        runtime = self._runtime
        granule = runtime.placements.granule
        for block in blocks:
            if granule[block] != UNBOUND:
                runtime.evict(block)
            runtime.bind(request, block)

    def release(self, request: str, blocks: Sequence[int]) -> None:
        """A running request gives up blocks that its window has left."""
        if blocks:
            self._pending.settle([request])
        for block in blocks:
            self._runtime.release(request, block)

    def verify(self, request: str, tokens: int) -> None:
        """The first tokens of a request are no drafts any more.

        Mostly they never were, or are known to be already.
        """
        running = self.requests.get(request)
        if running is not None and running.confirmed < running.tokens:
            tokens -= self.leading.get(request, 0) * self.block_tokens
            if running.confirmed < tokens <= running.tokens:
                self._runtime.confirm(request, tokens)

    def finish(self, request: str) -> None:
        """A request ended or was preempted: it gives up all its blocks."""
        self._pending.settle([request])
        blocks = list(self.table(request))
        self._runtime.finish(request)
        self.leading.pop(request, None)
        if self.live is not None:
            self._reconcile(block for block in reversed(blocks) if block >= 0)

    def _reconcile(self, blocks: Iterable[int]) -> None:
        """What cache and runtime keep of blocks just given up, last first, is the same.

        A block that vLLM does not cache is of no use to anyone; one that it caches but
        whose tokens were dropped before they were computed must not be hit.
        """
        assert self.live is not None
        known, state = self.live.pool.blocks, self._runtime.placements
        false: set[int] = set()
        for block in blocks:
            hashed = known[block].block_hash is not None
            if state.granule[block] == UNBOUND:
                if hashed and self.withdraws:
                    false.add(block)
            elif hashed:
                break  # blocks are cached from the first to the last
            elif not state.references[block]:
                self._runtime.evict(block)
        if false:
            self.live.pool.evict_blocks(false)
            self.withdrawn += len(false)

    def forget(self, blocks: Iterable[int]) -> None:
        """The content of these blocks is gone, unless a request holds it."""
        state = self._runtime.placements
        for block in blocks:
            if state.granule[block] != UNBOUND and not state.references[block]:
                self._runtime.evict(block)

    def forget_uncached(self) -> None:
        """Whatever vLLM caches no more, after its prefix cache was reset, is gone."""
        if self.live is not None:
            blocks = self.live.pool.blocks
            self.forget(b.block_id for b in blocks if b.block_hash is None)

    def forget_cache(self) -> None:
        """Give up all that vLLM caches and nobody holds."""
        if self.live is not None:
            placed = self._runtime.placements.bound_blocks()
            references = self.live.references
            self.live.surrender([b for b in placed if not references[b]])

    def make_room(
        self, request: str, need: int, whole: int, hits: Sequence[int] = ()
    ) -> bool:
        """See `PlacementGate.make_room`; without a live pool nothing is evicted.

        Raises UnwrittenHitError.
        """
        if self._has_room(request, whole):
            return True
        try:
            if self.gate is None:
                return self._runtime.bindable(request, hits) >= whole
            return self.gate.make_room(request, need, whole, hits)
        except BlockStateError as error:
            raise self._unwritten(request, error.block) from None

    def _has_room(self, request: str, blocks: int) -> bool:
        """Whether there is room at first sight, as mostly: in its pairs, or free ones.

        Told so often that it is worth not to ask what `bindable` asks.
        """
        pool = self._runtime.placements.pool
        if blocks <= pool.free_pairs * pool.blocks_per_pair:
            return True
        running = self.requests.get(request)
        return blocks == 1 and running is not None and bool(running.open)

    def _unwritten(self, request: str, block: int) -> UnwrittenHitError:
        """Of a hit on a block that the runtime has dropped: nobody had written it."""
        return UnwrittenHitError(request, block, self._runtime.step, 0)

    # --- steps --------------------------------------------------------------------

    def apply(self, writes: Writes, confirms: Confirms, drafts: Drafts) -> list[Event]:
        """End the step; all that happened since the last one, this step at the end.

        writes, confirms, drafts: as of a `Step`. Raises UnwrittenHitError, and what
        `apply_step` raises.
        """
        step = Step(writes=writes, confirms=confirms, drafts=drafts)
        try:
            if not confirms and not drafts and self._pending.put_off(writes):
                self._runtime.follow(NOTHING_WRITTEN)
            else:
                self.runtime.follow(step)
        except UnwrittenReadError as error:
            raise UnwrittenHitError(
                error.request, error.block, error.step, error.written
            ) from error
        self._pending.filling = False
        log, self._log = [*self._log, ("step", (step,))], []
        return log
