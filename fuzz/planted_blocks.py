"""Faults of the runtime: pairs and places, references, the life of blocks.

Each function makes a wrong one from the right one; its name in the catalogue says what
went wrong.
"""

from __future__ import annotations

from typing import Any

from fuzz.bugs import NOTHING, Wrong, bug
from patton import step_checks
from patton.commit_zone import CommitZone
from patton.pairs import PairPool, lowest_bit
from patton.placements import Placements
from patton.requests import RELEASED, RequestState


def nothing(*_: Any) -> None:
    """In place of what should be done."""


@bug(NOTHING, None, CommitZone, "free_count", budget=1_500)
def _(old: Wrong) -> Wrong:
    def free_count(zone: CommitZone) -> Any:
        return old(zone)

    return free_count


# --- pairs and places -----------------------------------------------------------------


@bug("an emptied pair is not free again", "INV-PAIR", PairPool, "vacate")
def _(_: Wrong) -> Wrong:
    def vacate(pool: PairPool, pair: int, place: int) -> None:
        pool.free_places[pair] |= 1 << place

    return vacate


@bug("a place is lost when its block goes", "INV-PLACE", PairPool, "vacate")
def _(old: Wrong) -> Wrong:
    def vacate(pool: PairPool, pair: int, place: int) -> None:
        if place == 0 or pool.free_places[pair] == 0:
            old(pool, pair, place)

    return vacate


@bug("a place is given twice", "INV-DISTINCT", PairPool, "occupy_next")
def _(old: Wrong) -> Wrong:
    def occupy_next(pool: PairPool, pair: int) -> int:
        return max(0, int(old(pool, pair)) - 1)

    return occupy_next


@bug("the pair of a live owner is adopted", "LIFE-ADOPT", Placements, "adoptable")
def _(_: Wrong) -> Wrong:
    def adoptable(state: Placements, pair: int) -> bool:
        room = state.adoption and state.pool.free_places[pair] != 0
        if room:
            state.pool.owner[pair] = None
        return bool(room)

    return adoptable


@bug("adoption though it is switched off", "LIFE-ADOPT", Placements, "adoptable")
def _(_: Wrong) -> Wrong:
    def adoptable(state: Placements, pair: int) -> bool:
        return state.pool.owner[pair] is None and state.pool.free_places[pair] != 0

    return adoptable


@bug("a pair is never adopted", "LIFE-ADOPT", Placements, "adoptable")
def _(_: Wrong) -> Wrong:
    return lambda _state, _pair: False


@bug("a full pair is adopted for its neighbour", "LIFE-NEXT", PairPool, "choose")
def _(old: Wrong) -> Wrong:
    return lambda pool, _after: old(pool, None)


@bug("the last free pair is taken", "LIFE-NEXT", PairPool, "choose")
def _(_: Wrong) -> Wrong:
    def choose(pool: PairPool, _after: int | None) -> int | None:
        free = [pair for pair in range(len(pool.owner)) if pool.is_free(pair)]
        return free[-1] if free else None

    return choose


@bug(
    "the lowest place, whatever its channel",
    "LIFE-PLACE",
    PairPool,
    "occupy_next",
    budget=100_000,
    slow=True,
)
def _(_: Wrong) -> Wrong:
    def occupy_next(pool: PairPool, pair: int) -> int:
        place = lowest_bit(pool.free_places[pair])
        pool.free_places[pair] ^= 1 << place
        pool.referenced[pair] += 1
        return place

    return occupy_next


@bug("a new pair for every admission", "LIFE-FILL", Placements, "bind")
def _(old: Wrong) -> Wrong:
    def bind(state: Placements, request: Any, blocks: Any) -> None:
        running = state.requests.get(request)
        if running and state.pool.free_pairs:
            running.open.clear()
        old(state, request, blocks)

    return bind


@bug("pairs stay owned after the end", "LIFE-OWNER", PairPool, "disown")
def _(_: Wrong) -> Wrong:
    return nothing


@bug(
    "the owner is told too late that its pair has room",
    "LIFE-SAME",
    Placements,
    "_reopen",
)
def _(old: Wrong) -> Wrong:
    def reopen(state: Placements, owner: RequestState, pair: int) -> None:
        open_ = [*owner.open]
        old(state, owner, pair)
        if state.pool.owner[pair] == owner.id:
            owner.open = open_

    return reopen


@bug("the oldest pair is offered last", "LIFE-OLDEST", PairPool, "eviction_candidates")
def _(old: Wrong) -> Wrong:
    return lambda pool: iter([*old(pool)][::-1])


@bug("the first release counts, not the latest", "LIFE-OLDEST", PairPool, "unreference")
def _(old: Wrong) -> Wrong:
    def unreference(pool: PairPool, pair: int, time: int) -> None:
        old(pool, pair, pool.last_release[pair] or time)

    return unreference


@bug("blocks are given up head first", "LIFE-OLDEST", Placements, "finish")
def _(old: Wrong) -> Wrong:
    def finish(state: Placements, request: Any) -> None:
        running = state.requests.get(request)
        if running:
            state._touch(running)  # noqa: SLF001
            running.blocks.reverse()
        old(state, request)

    return finish


@bug("a shared pair is still offered", "LIFE-OLDEST", PairPool, "reference")
def _(_: Wrong) -> Wrong:
    def reference(pool: PairPool, pair: int) -> None:
        pool.referenced[pair] += 1

    return reference


# --- references and lifecycle ---------------------------------------------------------


@bug("a share is not counted", "INV-HELD", Placements, "share")
def _(old: Wrong) -> Wrong:
    def share(state: Placements, request: Any, block: int) -> None:
        old(state, request, block)
        if state.references[block] > 1:
            state.references[block] -= 1

    return share


@bug("a referenced block is evicted", "LIFE-EVICT", Placements, "evict")
def _(old: Wrong) -> Wrong:
    def evict(state: Placements, block: int) -> None:
        state.in_range(block)
        state.references[block] = 0
        old(state, block)

    return evict


@bug("an unbound block is shared", "LIFE-SHARE", Placements, "share", slow=True)
def _(old: Wrong) -> Wrong:
    def share(state: Placements, request: Any, block: int) -> None:
        state.in_range(block)
        if state.granule[block] < 0:
            return
        old(state, request, block)

    return share


@bug("a block is shared after own ones", "LIFE-PREFIX", Placements, "share")
def _(old: Wrong) -> Wrong:
    def share(state: Placements, request: Any, block: int) -> None:
        running = state.requests.get(request)
        own: list[int] = []
        if running and block not in running.blocks:
            own = [b for b in running.blocks if b not in running.shared]
            running.shared.update(own)
        try:
            old(state, request, block)
        finally:
            if running:
                running.shared.difference_update(own)

    return share


@bug("a preempted request still runs", "LIFE-FINISH", Placements, "finish")
def _(old: Wrong) -> Wrong:
    def finish(state: Placements, request: Any) -> None:
        old(state, request)
        state.requests[request] = RequestState(request)

    return finish


@bug("what a window gave up counts as shared", "LIFE-RELEASE", Placements, "release")
def _(old: Wrong) -> Wrong:
    def release(state: Placements, request: Any, block: int) -> None:
        running = state.requests.get(request)
        shared = running is not None and block in running.shared
        old(state, request, block)
        if running is not None and shared:
            running.shared.add(block)

    return release


@bug("a partial block stays cached", "LIFE-DROP", Placements, "_dereference")
def _(old: Wrong) -> Wrong:
    def dereference(state: Placements, request: Any, blocks: Any) -> None:
        for block in blocks:
            level = state.confirmed[block]
            state.confirmed[block] = state.written[block] and state.layout.block_tokens
            old(state, request, (block,))
            if state.granule[block] >= 0:
                state.confirmed[block] = level

    return dereference


@bug(
    "a full block is dropped with its last reference",
    "LIFE-CACHE",
    Placements,
    "_dereference",
)
def _(old: Wrong) -> Wrong:
    def dereference(state: Placements, request: Any, blocks: Any) -> None:
        for block in blocks:
            level, last = state.confirmed[block], state.references[block] == 1
            state.confirmed[block] = 0 if last else level
            old(state, request, (block,))

    return dereference


@bug("the binder stays after its end", "LIFE-WRITER", Placements, "_dereference")
def _(old: Wrong) -> Wrong:
    def dereference(state: Placements, request: Any, blocks: Any) -> None:
        binders = [(block, state.binder[block]) for block in blocks]
        old(state, request, blocks)
        for block, binder in binders:
            if state.references[block]:
                state.binder[block] = binder

    return dereference


@bug("a bound block is bound again", "LIFE-BIND", Placements, "bind")
def _(old: Wrong) -> Wrong:
    def bind(state: Placements, request: Any, blocks: Any) -> None:
        for block in blocks:
            bound = 0 <= block < len(state.granule) and state.granule[block] >= 0
            if bound and not state.references[block]:
                state.evict(block)
        old(state, request, blocks)

    return bind


@bug("sharing does not seal", "LIFE-SEALED", Placements, "_seal")
def _(_: Wrong) -> Wrong:
    return nothing


@bug("a partial block stays sealed", "LIFE-SEALED", Placements, "close_seals")
def _(_: Wrong) -> Wrong:
    return lambda state: state.sealing.clear()


@bug("a sharer writes a shared block", "LIFE-WRITER", step_checks, "_check_sealed")
def _(_: Wrong) -> Wrong:
    return nothing


@bug("a binder writes what it shares", "LIFE-SEALED", step_checks, "_check_sealed")
def _(old: Wrong) -> Wrong:
    def check_sealed(state: Placements, writer: Any, index: int, *rest: int) -> None:
        block = writer.blocks[index]
        if block == RELEASED or state.binder[block] is not writer:
            old(state, writer, index, *rest)

    return check_sealed
