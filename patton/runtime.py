"""The runtime: from a serving engine's block lifecycle to PIM placements (Paper 4).

`Runtime` is a deterministic state machine. It keeps where every logical block lies and
how far it is written; it never holds data. Every operation is atomic: when it raises,
the state is as it was. An engine drives it event by event while it schedules (`share`,
`bind`, `release`, `evict`, `finish`, `confirm`) and ends the step with `apply_step`, or
hands the whole step to `apply_step` at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np

from patton import consistency
from patton.arguments import expect
from patton.commit_zone import NO_SLOT
from patton.errors import (
    BlockStateError,
    ConfigError,
    PairRangeError,
    PattonError,
    StaleBindingError,
    StepOrderError,
)
from patton.layout import Layout
from patton.pairs import Choice
from patton.placements import Placements
from patton.requests import RELEASED, UNBOUND, Journal, running_or_new
from patton.step_checks import check_reads, check_shares, check_writes
from patton.step_form import check_form
from patton.step_writes import carry_out
from patton.steps import (
    Commit,
    Placement,
    Request,
    SegmentRow,
    Step,
    StepPlan,
    Tables,
)

Observer = Callable[[str, tuple[Any, ...]], None]

MOST_BLOCKS = 2**31 - 1  # tables and granule indices are integers of 32 bits


@attrs.define(eq=False)
class Runtime:
    """Placement of every block of a serving engine (Paper 4.1 to 4.5, layout 3 and 4).

    observer: called with (event, arguments) after every event that was carried out.
    """

    layout: Layout
    placements: Placements
    observer: Observer | None = None
    _events: int = 0

    @classmethod
    def of(
        cls,
        layout: Layout,
        *,
        blocks: int | None = None,
        choice: Choice = "spread",
        adoption: bool = True,
        commit_zone: bool = True,
    ) -> Runtime:
        """A runtime with all memory free.

        blocks: ids 0..blocks-1 that the engine uses (default: one per granule index).
        choice: how a new pair is picked, "spread" or "packed"; adoption, commit_zone:
        False for the paper's ablations. Raises ConfigError.
        """
        expect("Runtime.of", "layout", layout, Layout)
        count = layout.granules if blocks is None else blocks
        if type(count) is not int or not 1 <= count <= MOST_BLOCKS:
            accepted = f"an integer from 1 to {MOST_BLOCKS}"
            raise ConfigError("runtime", "blocks", count, accepted)
        if layout.granules > MOST_BLOCKS:
            accepted = f"a device of at most {MOST_BLOCKS}"
            raise ConfigError("runtime", "granules", layout.granules, accepted)
        for name, value in (("adoption", adoption), ("commit_zone", commit_zone)):
            if type(value) is not bool:
                raise ConfigError("runtime", name, value, "True or False")
        placements = Placements.of(layout, count, choice, adoption, commit_zone)
        return cls(layout, placements)

    # --- events -------------------------------------------------------------------

    def bind(self, request: Request, block: int) -> None:
        """Append a new block to a request's table and reserve its granule index.

        Raises BlockRangeError, BlockStateError (already bound), OutOfPairsError.
        """
        self.placements.bind(request, (block,))
        self._note("bind", request, block)

    def share(self, request: Request, block: int) -> None:
        """Append a bound block, of a cached or running prefix, to a request's table.

        The block must be full, or be filled in this step (checked by `apply_step`).
        Raises BlockRangeError, BlockStateError, RequestError.
        """
        self.placements.share(request, block)
        self._note("share", request, block)

    def release(self, request: Request, block: int) -> None:
        """Give up one block of a running request's table (sliding windows).

        Raises BlockRangeError, RequestError.
        """
        self.placements.release(request, block)
        self._note("release", request, block)

    def evict(self, block: int) -> None:
        """Drop a cached block: its granule index is free again.

        Raises BlockRangeError, BlockStateError (unbound or referenced).
        """
        self.placements.evict(block)
        self._note("evict", block)

    def finish(self, request: Request) -> None:
        """End or preempt a request: its references go, tail first, and its ownership.

        A partial block loses slot and granule, full ones stay cached.
        Raises RequestError.
        """
        self.placements.finish(request)
        self._note("finish", request)

    def confirm(self, request: Request, tokens: int) -> None:
        """The first `tokens` positions of a request are verified.

        Raises RequestError.
        """
        self.placements.confirm(request, tokens)
        self._note("confirm", request, tokens)

    def write(self, request: Request, start: int, count: int) -> StepPlan:
        """A step of one write: positions [start, start + count) of a request."""
        return self.apply_step(Step(writes=[(request, start, count)]))

    def commit(self, block: int) -> None:
        """Publish the O1V of a copied block and free its slot (Paper 4.4).

        Raises BlockRangeError, BlockStateError (not a full, confirmed block in a slot,
        or none that a plan has copied as it is).
        """
        state = self.placements
        state.in_range(block)
        if block not in state.copied:
            accepted = "a full, confirmed block in a slot that a plan has copied"
            raise BlockStateError("commit", block, state.describe(block), accepted)
        self._publish(block)

    def publish(self, plan: StepPlan) -> None:
        """Publish all commits of a plan whose copies are done, after its last layer.

        A commit whose block ended, was bound anew or written again meanwhile is passed
        over. One that is never published comes again in the next plan: an interrupted
        step can be repeated, or abandoned.
        """
        expect("publish", "plan", plan, StepPlan)
        state = self.placements
        for commit in plan.commits:
            since = state.copied.get(commit.block)
            current = state.epoch[commit.block] == commit.epoch
            if current and since is not None and since <= plan.step:
                self._publish(commit.block)

    def _publish(self, block: int) -> None:
        state = self.placements
        del state.due[block], state.copied[block]
        state.zone.give_back(state.slot[block])
        state.slot[block] = NO_SLOT
        self._note("commit", block)

    def _note(self, event: str, *arguments: Any) -> None:
        self._events += 1
        if self.observer is not None:
            self.observer(event, arguments)

    # --- one engine step ----------------------------------------------------------

    def apply_step(self, step: Step) -> StepPlan:
        """Apply one engine step and say what to write, commit and read, and where.

        Order: finishes, releases, evicts, confirms, grants, then writes (layout 4).
        Raises what the events raise, and RequestError, SharedBlockError (a write),
        UnwrittenReadError (a read, or a share of a block that the step leaves partial),
        ArgumentError for a step that is not of its form.
        """
        rows = self._carry_out(step, planned=True)
        return StepPlan(
            self.layout,
            self.step - 1,
            rows,
            [self._commit_of(block) for block in self.placements.due],
            tuple(step.reads),
            tuple(step.readbacks),
            self._events,
            self._take_tables,
        )

    def follow(self, step: Step) -> None:
        """Apply a step that is executed elsewhere: as `apply_step`, without a plan."""
        self._carry_out(step, planned=False)

    def _carry_out(self, step: Step, *, planned: bool) -> list[SegmentRow]:
        state = self.placements
        ends: dict[Request, int] = {}
        try:
            if step.has_events:  # else nothing changes before all is checked
                state.journal = self._new_journal()
                self._apply_events(step)
            writes = check_writes(state, step, ends)
            check_shares(state, writes)
            check_reads(state, step, ends)
        except BaseException as error:
            if state.journal is not None:
                state.undo()
            if not isinstance(error, PattonError):
                check_form(step)
            raise
        finally:
            state.journal = None
        rows = carry_out(state, writes, step.drafts or {}, planned)
        for block in state.due:
            state.copied.setdefault(block, state.step)
        state.owed.clear()
        state.close_seals()
        state.step += 1
        self._note("step", step)
        return rows

    def _new_journal(self) -> Journal:
        state = self.placements
        return Journal(
            state.granule,
            state.references,
            state.epoch,
            state.binder,
            dict(state.due),
            dict(state.copied),
            list(state.owed),
            state.adopted,
            state.releases,
        )

    def _apply_events(self, step: Step) -> None:
        state = self.placements
        for request in step.finishes:
            state.finish(request)
        for request, block in step.releases:
            state.release(request, block)
        for block in step.evicts:
            state.evict(block)
        for request, tokens in step.confirms:
            state.confirm(request, tokens)
        assert state.journal is not None
        state.journal.grants = len(state.journal.cells)
        for request, shares, binds in step.grants:
            if len(shares):
                for block in shares:
                    state.share(request, block)
            if len(binds):
                state.bind(request, binds)

    def _commit_of(self, block: int) -> Commit:
        state = self.placements
        request, position = state.due[block]
        granule, slot = state.granule[block], state.slot[block]
        return Commit(block, state.epoch[block], granule, slot, request, position)

    def _take_tables(self, plan: StepPlan, requests: tuple[Request, ...]) -> Tables:
        """Block tables of the plan's readers, before anything else happens."""
        state = self.placements
        bindings = [row[:2] for row in plan.rows] + [c[:2] for c in plan.commits]
        for block, epoch in bindings:
            if state.epoch[block] != epoch:
                raise StaleBindingError(block, epoch, state.epoch[block])
        if self._events != plan.events:
            raise StepOrderError(plan.step, state.step)
        readers = {request for request, _, _ in (*plan.reads, *plan.readbacks)}
        empty = np.empty(0, np.int32)
        tables = [
            np.frombuffer(state.requests[r].blocks, np.int32) if r in readers else empty
            for r in requests
        ]
        ptr = np.zeros(len(requests) + 1, np.int64)
        np.cumsum([len(table) for table in tables], out=ptr[1:])
        blocks = np.concatenate([empty, *tables])
        granule = np.frombuffer(state.granule, np.int32)[blocks].astype(np.int64)
        slot = np.frombuffer(state.slot, np.int32)[blocks].astype(np.int64)
        opened = np.frombuffer(state.written, np.int32)[blocks].astype(np.int64)
        released = blocks == RELEASED
        granule[released], slot[released], opened[released] = RELEASED, NO_SLOT, 0
        return Tables(ptr, granule, np.maximum(slot, NO_SLOT), opened)

    # --- questions ----------------------------------------------------------------

    @property
    def step(self) -> int:
        """Number of the step that the next `apply_step` ends."""
        return self.placements.step

    @property
    def free_pairs(self) -> int:
        """Pairs that hold no block."""
        return self.placements.pool.free_pairs

    @property
    def evictable_pairs(self) -> int:
        """Unowned pairs whose blocks no request holds."""
        return self.placements.pool.evictable_pairs

    @property
    def adopted_pairs(self) -> int:
        """Pairs that a request took over from one that had ended, so far."""
        return self.placements.adopted

    def placement(self, block: int) -> Placement | None:
        """Where a block lies; None if it is unbound. Raises BlockRangeError."""
        state = self.placements
        state.in_range(block)
        if state.granule[block] == UNBOUND:
            return None
        slot = state.slot[block]
        return Placement(
            block,
            state.epoch[block],
            state.granule[block],
            slot if slot >= 0 else None,
            state.written[block],
            state.confirmed[block],
            state.references[block],
        )

    def bindable(self, request: Request, shares: Sequence[int] = ()) -> int:
        """Blocks that a request could bind now without any eviction.

        shares: blocks that it would share first (its prefix hit), for adoption. Raises
        BlockRangeError, BlockStateError, RequestError.
        """
        expect("bindable", "shares", shares, Sequence)
        state = self.placements
        pool = state.pool
        running = running_or_new(state.requests, "bindable", request)
        own = list(running.open)
        for block in shares:
            state.bound("share", block)
        last = shares[-1] if shares else RELEASED
        if running.blocks and not shares:
            last = running.blocks[-1]
        if not own and last != RELEASED and state.adoptable(state.pair_of(last)):
            own.append(state.pair_of(last))
        room = sum(pool.free_places[pair].bit_count() for pair in own)
        return room + pool.free_pairs * pool.blocks_per_pair

    def eviction_candidates(self) -> Iterator[int]:
        """Pairs that the engine may evict, best first (layout 3)."""
        return self.placements.pool.eviction_candidates()

    def blocks_of_pair(self, pair: int) -> list[int]:
        """The blocks of a pair, highest place first: the order of their eviction.

        Raises PairRangeError.
        """
        if type(pair) is not int or not 0 <= pair < self.layout.pairs:
            raise PairRangeError(pair, self.layout.pairs - 1)
        state = self.placements
        first = pair * self.layout.pair_blocks
        held = state.block_at[first : first + self.layout.pair_blocks]
        return [block for block in reversed(held) if block != UNBOUND]

    # --- consistency, snapshots ---------------------------------------------------

    def check(self) -> None:
        """Verify that the state does not contradict itself. Raises InconsistencyError.

        For tests and debugging: linear in the size of the device.
        """
        consistency.check(self.placements)

    def snapshot(self) -> dict[str, Any]:
        """The whole state as plain data, fit for JSON; equal states give equal data."""
        return consistency.snapshot(self.placements)

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Return to a state taken by `snapshot` of a runtime of the same layout.

        Raises SnapshotError; the state is then as it was.
        """
        self.placements = consistency.restored(self.placements, snapshot)
