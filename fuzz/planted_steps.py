"""Faults of the runtime: slots and commits, levels, refusals, snapshots.

Each function makes a wrong one from the right one; its name in the catalogue says what
went wrong.
"""

from __future__ import annotations

from typing import Any

import attrs

from fuzz.bugs import Wrong, bug
from fuzz.planted_blocks import nothing
from patton import consistency, runtime, step_writes
from patton.commit_zone import NO_SLOT, CommitZone
from patton.errors import BlockStateError
from patton.placements import Placements
from patton.requests import NEVER, RELEASED, Journal
from patton.runtime import Runtime

# --- slots and commits ----------------------------------------------------------------


@bug("the slot of a dropped block leaks", "LIFE-DROP", Placements, "_unbind")
def _(old: Wrong) -> Wrong:
    def unbind(state: Placements, block: int) -> None:
        slot = state.slot[block]
        old(state, block)
        if slot >= 0:
            state.zone.claim(slot)

    return unbind


@bug("the slot of a committed block leaks", "LIFE-PUBLISH", Runtime, "_publish")
def _(old: Wrong) -> Wrong:
    def publish(self: Runtime, block: int) -> None:
        observer, self.observer = self.observer, None
        zone, slot = self.placements.zone, self.placements.slot[block]
        old(self, block)
        zone.claim(slot)
        self.observer = observer
        if observer is not None:
            observer("commit", (block,))

    return publish


@bug("a slot is freed that another one holds", "LIFE-FRAME", Placements, "finish")
def _(old: Wrong) -> Wrong:
    def finish(state: Placements, request: Any) -> None:
        running = state.requests.get(request)
        slots = [state.slot[b] for b in running.blocks if b >= 0] if running else []
        old(state, request)
        for slot in slots:
            if slot >= 0:
                state.zone.give_back(slot)

    return finish


@bug("the highest slot is taken", "LIFE-LOWEST", CommitZone, "take")
def _(_: Wrong) -> Wrong:
    def take(zone: CommitZone, stripe: int) -> int:
        free = zone.free[stripe]
        if not free:
            return NO_SLOT
        index = free.bit_length() - 1
        zone.free[stripe] ^= 1 << index
        return index * zone.stripes + stripe

    return take


@bug("a slot of another stripe", "INV-RESERVED", CommitZone, "take")
def _(old: Wrong) -> Wrong:
    return lambda zone, stripe: old(zone, (stripe + 1) % zone.stripes)


@bug("the Commit Zone is passed by", "LIFE-DIRECT", step_writes, "_first_slot")
def _(_: Wrong) -> Wrong:
    return lambda _state, _block: NO_SLOT


@bug("slots though they are switched off", "LIFE-STAGE", step_writes, "_first_slot")
def _(_: Wrong) -> Wrong:
    return lambda s, b: s.zone.take(s.granule[b] % s.layout.stripes)


@bug("no slot, no write", "LIFE-ATOMIC", step_writes, "_first_slot")
def _(old: Wrong) -> Wrong:
    def first_slot(state: Placements, block: int) -> int:
        slot: int = old(state, block)
        if slot == NO_SLOT and state.commit_zone:
            raise BlockStateError("write", block, "no slot", "a free slot")
        return slot

    return first_slot


@bug("commits are published before they are copied", "LIFE-PUBLISH", Runtime, "commit")
def _(_: Wrong) -> Wrong:
    def commit(self: Runtime, block: int) -> None:
        state = self.placements
        state.in_range(block)
        if state.slot[block] < 0:
            raise BlockStateError("commit", block, "elsewhere", "in a slot")
        state.due.setdefault(block, (0, 0))
        state.copied.setdefault(block, 0)
        self._publish(block)

    return commit


@bug(
    "what is due counts as copied",
    *("LIFE-PUBLISH", Placements, "note_due"),
    budget=60_000,
    slow=True,
)
def _(old: Wrong) -> Wrong:
    def note_due(state: Placements, block: int, request: Any, position: int) -> None:
        old(state, block, request, position)
        if block in state.due:
            state.copied[block] = state.step

    return note_due


@bug("a commit to the next granule", "LIFE-COMMIT", Runtime, "_commit_of")
def _(old: Wrong) -> Wrong:
    def commit_of(self: Runtime, block: int) -> Any:
        commit = old(self, block)
        return commit._replace(granule=commit.granule + 1)

    return commit_of


@bug("a commit from the wrong slot", "LIFE-COMMIT", Runtime, "_commit_of")
def _(old: Wrong) -> Wrong:
    def commit_of(self: Runtime, block: int) -> Any:
        commit = old(self, block)
        return commit._replace(slot=commit.slot ^ 1)

    return commit_of


@bug("verified drafts are not committed", "LIFE-COMMIT", Placements, "note_due")
def _(_: Wrong) -> Wrong:
    return nothing


# --- levels ---------------------------------------------------------------------------


@bug("drafts count as verified", "LIFE-LEVELS", runtime, "carry_out")
def _(old: Wrong) -> Wrong:
    return lambda state, writes, _, planned: old(state, writes, {}, planned)


@bug("rejected tokens stay", "LIFE-REWRITE", step_writes, "_forget_beyond")
def _(_: Wrong) -> Wrong:
    return nothing


@bug("a whole block is verified at once", "LIFE-CONFIRM", Placements, "confirm")
def _(old: Wrong) -> Wrong:
    def confirm(state: Placements, request: Any, tokens: int) -> None:
        old(state, request, tokens)
        for block in state.requests[request].blocks:
            if block != RELEASED and state.binder[block] is state.requests[request]:
                state.confirmed[block] = state.written[block]

    return confirm


@bug("more is verified than written", "LIFE-CONFIRM", Placements, "confirm")
def _(old: Wrong) -> Wrong:
    def confirm(state: Placements, request: Any, tokens: int) -> None:
        running = state.requests.get(request)
        old(state, request, min(tokens, running.tokens) if running else tokens)

    return confirm


@bug("a step may read ahead", "LIFE-READ", runtime, "check_reads")
def _(_: Wrong) -> Wrong:
    return nothing


@bug(
    "a shared block may stay partial",
    "STEP-SHARED",
    runtime,
    "check_shares",
    budget=100_000,
)
def _(_: Wrong) -> Wrong:
    return nothing


@bug("a write begins one column late", "LIFE-STAGE", runtime, "carry_out")
def _(old: Wrong) -> Wrong:
    def carry_out(*arguments: Any) -> Any:
        rows = old(*arguments)
        return [(*row[:4], row[4] + 1, *row[5:]) for row in rows]

    return carry_out


@bug(
    "a first write is placed in the O1V, not its slot",
    "LIFE-STAGE",
    runtime,
    "carry_out",
)
def _(old: Wrong) -> Wrong:
    return lambda *a: [(*row[:3], NO_SLOT, *row[4:]) for row in old(*a)]


@bug(
    "readers are sent to the O1V before publication",
    "STEP-PLACED",
    Runtime,
    "_take_tables",
)
def _(old: Wrong) -> Wrong:
    def take_tables(self: Runtime, plan: Any, requests: Any) -> Any:
        tables = old(self, plan, requests)
        full = tables.opened == self.layout.block_tokens
        tables.slot[full] = NO_SLOT
        return tables

    return take_tables


# --- atomicity, order, snapshots ------------------------------------------------------


@bug("a refused step leaves its verified tokens", "LIFE-ATOMIC", Journal, "put_back")
def _(old: Wrong) -> Wrong:
    def put_back(journal: Journal, requests: Any) -> None:
        for key, (state, runs, length, _, pairs) in journal.touched.items():
            levels = state.tokens, state.confirmed
            if runs and len(state.blocks) == length:
                journal.touched[key] = state, runs, length, levels, pairs
        old(journal, requests)

    return put_back


@bug("a refused step counts its releases", "LIFE-ATOMIC", Placements, "undo")
def _(old: Wrong) -> Wrong:
    def undo(state: Placements) -> None:
        releases = state.releases
        old(state)
        state.releases = releases

    return undo


@bug("a refused step keeps its blocks", "LIFE-ATOMIC", Placements, "undo")
def _(_: Wrong) -> Wrong:
    return nothing


@bug("grants come before evictions", "LIFE-OPEN", Runtime, "_apply_events")
def _(old: Wrong) -> Wrong:
    def apply_events(self: Runtime, step: Any) -> None:
        for request, shares, binds in step.grants:
            old(
                self,
                attrs.evolve(
                    step,
                    grants=[(request, shares, binds)],
                    finishes=[],
                    releases=[],
                    evicts=[],
                    confirms=[],
                ),
            )
        old(self, attrs.evolve(step, grants=[]))

    return apply_events


@bug("a snapshot forgets what is sealed", "LIFE-SAME", consistency, "restored")
def _(old: Wrong) -> Wrong:
    def restored(state: Any, data: Any) -> Any:
        anew = old(state, data)
        anew.sealed = [NEVER] * len(anew.sealed)
        return anew

    return restored


@bug("a snapshot forgets which copies were made", "LIFE-SAME", consistency, "restored")
def _(old: Wrong) -> Wrong:
    def restored(state: Any, data: Any) -> Any:
        anew = old(state, data)
        anew.copied.clear()
        return anew

    return restored
