"""Faults that leave the runtime in a state that no sequence of events leads to.

Some are caught by what holds in every state alone, without any machine beside it
(`fuzz.states`). Each function makes a wrong one from the right one; its name in the
catalogue says what went wrong.
"""

from __future__ import annotations

from typing import Any

import attrs

from fuzz.bugs import Register, Wrong, bug
from patton import placements, runtime, step_checks, step_writes
from patton.commit_zone import NO_SLOT, CommitZone
from patton.errors import StepOrderError
from patton.pairs import PairPool
from patton.placements import Placements
from patton.requests import NEVER
from patton.runtime import Runtime


def state(name: str, clause: str, owner: Any, attribute: str) -> Register:
    """Register a fault that is looked for in states alone."""
    return bug(name, clause, owner, attribute, finder="states", budget=10_000)


# --- invariants -----------------------------------------------------------------------


@state("places are noted for the first block", "INV-GRANULE", Placements, "bind")
def _(old: Wrong) -> Wrong:
    def bind(self: Placements, request: Any, blocks: Any) -> None:
        old(self, request, blocks)
        for block in blocks:
            self.block_at[self.granule[block]] = blocks[0]

    return bind


@state("a pair that is taken is no one's", "INV-OWNER", PairPool, "own")
def _(old: Wrong) -> Wrong:
    def own(pool: PairPool, pair: int, request: Any) -> None:
        old(pool, pair, request)
        pool.owner[pair] = None

    return own


@state("an unbound block keeps its slot", "INV-VISIBLE", Placements, "_unbind")
def _(old: Wrong) -> Wrong:
    def unbind(self: Placements, block: int) -> None:
        slot = self.slot[block]
        old(self, block)
        self.slot[block] = max(slot, self.slot[block])

    return unbind


@state("a slot is not marked as taken", "INV-SLOT", CommitZone, "take")
def _(old: Wrong) -> Wrong:
    def take(zone: CommitZone, stripe: int) -> int:
        free = zone.free[stripe]
        slot: int = old(zone, stripe)
        zone.free[stripe] = free
        return slot

    return take


@state("what is rejected stays verified", "INV-LEVELS", step_writes, "_forget_beyond")
def _(old: Wrong) -> Wrong:
    def forget_beyond(held: Placements, writer: Any, end: int) -> None:
        confirmed = [*held.confirmed]
        old(held, writer, end)
        held.confirmed = confirmed

    return forget_beyond


@state("drafts are cached", "INV-CACHED", Placements, "_dereference")
def _(old: Wrong) -> Wrong:
    def dereference(self: Placements, request: Any, blocks: Any) -> None:
        for block in blocks:
            level, self.confirmed[block] = self.confirmed[block], self.written[block]
            old(self, request, (block,))
            if self.granule[block] >= 0:
                self.confirmed[block] = level

    return dereference


@state("what is shared counts as full at once", "INV-SEALED", Placements, "_seal")
def _(_: Wrong) -> Wrong:
    def seal(self: Placements, block: int) -> None:
        if self.sealed[block] == NEVER:
            self.sealed[block] = self.step - 1

    return seal


@state("only cached blocks are sealed", "INV-SHARED", Placements, "_seal")
def _(old: Wrong) -> Wrong:
    def seal(self: Placements, block: int) -> None:
        if self.references[block] <= 1:
            old(self, block)

    return seal


@state("a pair is evicted with its first block", "INV-CONSERVE", Placements, "evict")
def _(old: Wrong) -> Wrong:
    def evict(self: Placements, block: int) -> None:
        self.in_range(block)
        size, granule = self.layout.pair_blocks, self.granule[block]
        old(self, block)
        first = granule - granule % size
        for other in self.block_at[first : first + size]:
            if other >= 0 and not self.references[other]:
                old(self, other)

    return evict


# --- what an event leaves alone -------------------------------------------------------


@state("a commit moves its block to another place", "LIFE-FIXED", Runtime, "_publish")
def _(old: Wrong) -> Wrong:
    def publish(self: Runtime, block: int) -> None:
        placements, size = self.placements, self.layout.pair_blocks
        granule = placements.granule[block]
        pair, place = divmod(granule, size)
        free = placements.pool.free_places[pair]
        if free:
            other = free.bit_length() - 1
            placements.pool.free_places[pair] = free ^ 1 << other | 1 << place
            placements.block_at[granule] = -1
            placements.block_at[pair * size + other] = block
            placements.granule[block] = pair * size + other
        old(self, block)

    return publish


@bug("the levels of the next id go too", "LIFE-FRAME", Placements, "_unbind")
def _(old: Wrong) -> Wrong:
    def unbind(self: Placements, block: int) -> None:
        old(self, block)
        if block + 1 < len(self.written) and self.slot[block + 1] == NO_SLOT:
            self.written[block + 1] = self.confirmed[block + 1] = 0

    return unbind


@bug("a block goes on in its O1V", "LIFE-STAY", runtime, "carry_out")
def _(old: Wrong) -> Wrong:
    """What was begun in a slot is written on elsewhere."""

    def carry_out(*arguments: Any) -> Any:
        return [
            (*row[:3], NO_SLOT if row[4] else row[3], *row[4:])
            for row in old(*arguments)
        ]

    return carry_out


@bug("a write may leave a gap", "LIFE-GAPLESS", step_checks, "_check_rewrite")
def _(old: Wrong) -> Wrong:
    def check_rewrite(state: Placements, writer: Any, start: int, end: int) -> None:
        if start <= writer.tokens:
            old(state, writer, start, end)

    return check_rewrite


# --- plans that have become stale -----------------------------------------------------


@bug("a stale plan is placed late", "STEP-STALE", runtime, "StaleBindingError")
def _(_: Wrong) -> Wrong:
    """It is refused, but as a plan whose step is over."""
    return lambda _block, epoch, current: StepOrderError(epoch, current)


@bug(
    "a plan publishes what was bound anew",
    *("STEP-STALE", Runtime, "publish"),
    budget=60_000,
    slow=True,
)
def _(_: Wrong) -> Wrong:
    def publish(self: Runtime, plan: Any) -> None:
        for commit in plan.commits:
            if commit.block in self.placements.copied:
                self._publish(commit.block)

    return publish


@bug("a copy that is made again is a copy not made", "LIFE-PUBLISH", Runtime, "publish")
def _(old: Wrong) -> Wrong:
    """With two steps under way nothing would ever be published."""

    def publish(self: Runtime, plan: Any) -> None:
        if plan.step == self.step - 1:
            old(self, plan)

    return publish


# --- shares of blocks that are not full yet -------------------------------------------


@bug("a sharer that leaves forgives all others", "LIFE-SAME", Placements, "finish")
def _(old: Wrong) -> Wrong:
    def finish(self: Placements, request: Any) -> None:
        left = {*self.requests[request].shared} if request in self.requests else set()
        old(self, request)
        self.owed = [owed for owed in self.owed if owed[1] not in left]

    return finish


@bug("a filled block is still owed", "LIFE-SAME", Placements, "close_seals")
def _(old: Wrong) -> Wrong:
    def close_seals(self: Placements) -> None:
        old(self)
        shares = [(r.id, b) for r in self.requests.values() for b in r.shared]
        self.owed.extend(shares[:1])

    return close_seals


# --- what the runtime answers ---------------------------------------------------------


@bug("room for one block more is told", "LIFE-BIND", Runtime, "bindable")
def _(old: Wrong) -> Wrong:
    return lambda self, request, shares=(): old(self, request, shares) + 1


@bug(
    "blocks are named for eviction head first",
    *("LIFE-OLDEST", Runtime, "blocks_of_pair"),
)
def _(old: Wrong) -> Wrong:
    return lambda self, pair: old(self, pair)[::-1]


@bug("a block is told to be in the slot beside", "INV-VISIBLE", Runtime, "placement")
def _(old: Wrong) -> Wrong:
    def placement(self: Runtime, block: int) -> Any:
        told = old(self, block)
        staged = told is not None and told.slot is not None
        return attrs.evolve(told, slot=told.slot + 1) if staged else told

    return placement


@bug("a refusal names no pair to evict", "LIFE-OLDEST", placements, "islice")
def _(_: Wrong) -> Wrong:
    return lambda *_: iter(())


@bug("what was given up may be read", "LIFE-READ", step_checks, "_check_held")
def _(_: Wrong) -> Wrong:
    return lambda *_: None


@bug("a writer reads what it gave up", "LIFE-READ", runtime, "check_reads")
def _(old: Wrong) -> Wrong:
    def check_reads(state: Placements, *rest: Any) -> None:
        gaps, state.gaps = state.gaps, 0
        try:
            old(state, *rest)
        finally:
            state.gaps = gaps

    return check_reads


@bug(
    "a plan publishes what was written since",
    *("LIFE-PUBLISH", Placements, "note_due"),
    budget=60_000,
    slow=True,
)
def _(old: Wrong) -> Wrong:
    def note_due(self: Placements, block: int, request: Any, position: int) -> None:
        copied = self.copied.get(block)
        old(self, block, request, position)
        if copied is not None and block in self.due:
            self.copied[block] = copied

    return note_due
