"""Placement metadata: where every bound block lies and who holds it (Paper 4.5).

`Placements` is the state behind `Runtime`: the primary facts (per block, per request)
and what follows from them (bitmaps, lists of open pairs, free slots). Its operations
are the block lifecycle of layout section 4; each checks first and changes then.

While a `Journal` is open, every change of a primary fact is noted in it, so that a step
refused half way can be undone; what follows from the facts is then derived anew, by
the same code that restores a snapshot.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

import attrs

from patton.commit_zone import CommitZone
from patton.errors import (
    BlockRangeError,
    BlockStateError,
    OutOfPairsError,
    RequestError,
)
from patton.layout import Layout
from patton.pairs import Choice, PairPool
from patton.requests import (
    FRESH,
    NEVER,
    RELEASED,
    UNBOUND,
    Journal,
    RequestState,
    running,
    running_or_new,
)
from patton.steps import Request


@attrs.define(eq=False)
class Placements:
    """Granule, slot, levels, references and binder of blocks; tables of requests.

    sealed: the step in which a block was first shared or cached. due: blocks in a slot
    that are full and confirmed, with (request, position of token 0); copied: the first
    step whose plan copies them as they are. sealing: blocks sealed in this step. owed:
    shares of this step whose block is not full yet.
    """

    layout: Layout
    adoption: bool
    commit_zone: bool
    pool: PairPool
    zone: CommitZone
    granule: array[int]
    slot: array[int]
    written: array[int]
    confirmed: list[int]
    references: list[int]
    epoch: list[int]
    binder: list[RequestState | None]
    sealed: list[int]
    block_at: list[int]  # granule -> block
    requests: dict[Request, RequestState] = attrs.field(factory=dict)
    due: dict[int, tuple[Request, int]] = attrs.field(factory=dict)
    copied: dict[int, int] = attrs.field(factory=dict)
    sealing: list[int] = attrs.field(factory=list)
    owed: list[tuple[Request, int]] = attrs.field(factory=list)
    step: int = 0
    adopted: int = 0
    gaps: int = 0  # blocks that running requests have given up
    releases: int = 0  # last references lost so far: the clock of eviction
    journal: Journal | None = None

    def emptied(self) -> Placements:
        """Placements of the same shape and options with all memory free."""
        count, choice = len(self.granule), self.pool.choice
        return self.of(self.layout, count, choice, self.adoption, self.commit_zone)

    @classmethod
    def of(
        cls,
        layout: Layout,
        blocks: int,
        choice: Choice,
        adoption: bool,
        commit_zone: bool,
    ) -> Placements:
        """`blocks` unbound blocks on a device whose memory is all free."""
        return cls(
            layout=layout,
            adoption=adoption,
            commit_zone=commit_zone,
            pool=PairPool.of(layout, choice),
            zone=CommitZone.of(layout.stripes, layout.slots),
            granule=array("i", [UNBOUND]) * blocks,
            slot=array("i", [FRESH]) * blocks,
            written=array("i", [0]) * blocks,
            confirmed=[0] * blocks,
            references=[0] * blocks,
            epoch=[0] * blocks,
            binder=[None] * blocks,
            sealed=[NEVER] * blocks,
            block_at=[UNBOUND] * layout.granules,
        )

    # --- checks shared by the events ----------------------------------------------

    def in_range(self, block: int) -> None:
        """Raise BlockRangeError unless the block exists."""
        if type(block) is not int or not 0 <= block < len(self.granule):
            raise BlockRangeError(block, len(self.granule) - 1)

    def bound(self, event: str, block: int) -> None:
        """Raise BlockRangeError or BlockStateError unless the block is bound."""
        known = type(block) is int and 0 <= block < len(self.granule)
        if not known or self.granule[block] == UNBOUND:
            self.in_range(block)
            raise BlockStateError(event, block, "unbound", "a bound block")

    def running(self, event: str, request: Request) -> RequestState:
        """The state of a running request. Raises RequestError."""
        return running(self.requests, event, request)

    def describe(self, block: int) -> str:
        """The state of a block in words, for errors."""
        if self.granule[block] == UNBOUND:
            return "unbound"
        slot = self.slot[block]
        place = f"slot {slot}" if slot >= 0 else f"granule {self.granule[block]}"
        levels = (
            f"{self.written[block]} tokens written, {self.confirmed[block]} confirmed"
        )
        return f"bound in {place}, {levels}, {self.references[block]} references"

    def pair_of(self, block: int) -> int:
        """The pair of a bound block."""
        return self.granule[block] // self.layout.pair_blocks

    # --- journal ------------------------------------------------------------------

    def _log(self, index: int, *columns: Any) -> None:
        """Before primary facts change: note them, if a step is under way."""
        if self.journal is not None:
            for column in columns:
                self.journal.cells.append((column, index, column[index]))

    def _touch(self, state: RequestState) -> None:
        if self.journal is not None:
            self.journal.touch(state, self.requests.get(state.id) is state)

    def undo(self) -> None:
        """Return to the state in which the journal was opened."""
        assert self.journal is not None
        self.journal.put_back(self.requests)
        self.due, self.owed = self.journal.due, self.journal.owed
        self.copied = self.journal.copied
        self.adopted = self.journal.adopted
        self.releases = self.journal.releases
        self.derive()

    def derive(self) -> None:
        """All that follows from the primary facts, anew (linear in the device)."""
        owner = {p: r.id for r in self.requests.values() for p in r.pairs}
        bound = [b for b, g in enumerate(self.granule) if g != UNBOUND]
        self.pool = PairPool.holding(
            self.layout,
            self.pool.choice,
            [(self.granule[b], self.references[b] > 0) for b in bound],
            owner,
            self.pool.last_release,
        )
        self.zone = CommitZone.of(self.layout.stripes, self.layout.slots)
        self.block_at = [UNBOUND] * self.layout.granules
        self.sealing = [b for b in bound if self.sealed[b] == self.step]
        for block in bound:
            self.block_at[self.granule[block]] = block
            if self.slot[block] >= 0:
                self.zone.claim(self.slot[block])
        self.gaps = 0
        for state in self.requests.values():
            held = [b for b in state.blocks if b != RELEASED]
            state.released = len(state.blocks) - len(held)
            self.gaps += state.released
            state.shared = {b for b in held if self.binder[b] is not state}
            state.open = [p for p in state.pairs if self.pool.free_places[p]]

    # --- the lifecycle (layout 4) -------------------------------------------------

    def bind(self, request: Request, blocks: Sequence[int]) -> None:
        """Append new blocks to the table and reserve a granule index for each.

        Atomic for one block; a batch is made so by the journal.
        """
        state = running_or_new(self.requests, "bind", request)
        if self.journal is not None:
            self._touch(state)
        pool, granules, count = self.pool, self.granule, len(self.granule)
        size, room, table = pool.blocks_per_pair, state.open, state.blocks
        references, epochs, binder = self.references, self.epoch, self.binder
        for block in blocks:
            is_id = type(block) is int and 0 <= block < count
            if not is_id or granules[block] != UNBOUND:
                self.in_range(block)
                raise BlockStateError("bind", block, self.describe(block), "unbound")
            pair = room[-1] if room else self._claim(state, block)
            place = pool.occupy_next(pair)
            if not pool.free_places[pair]:
                room.pop()
            granule = pair * size + place
            granules[block] = granule
            self.block_at[granule] = block
            references[block] = 1
            epochs[block] += 1
            binder[block] = state
            table.append(block)
        self.requests[request] = state

    def _claim(self, state: RequestState, block: int) -> int:
        """A pair with room for a request that has none: adopted, else a free one."""
        last = state.blocks[-1] if state.blocks else RELEASED
        near = None if last == RELEASED else self.pair_of(last)
        pair: int | None
        if near is not None and self.adoptable(near):
            pair = near
            self.adopted += 1
        else:
            pair = self.pool.choose(near)
        if pair is None:
            candidates = tuple(islice(self.pool.eviction_candidates(), 4))
            raise OutOfPairsError(state.id, block, candidates)
        self.pool.own(pair, state.id)
        state.pairs.append(pair)
        state.open.append(pair)
        return pair

    def adoptable(self, pair: int) -> bool:
        """Whether a request whose prefix hit ends in the pair may fill it on."""
        unowned = self.adoption and self.pool.owner[pair] is None
        return unowned and self.pool.free_places[pair] != 0

    def share(self, request: Request, block: int) -> None:
        """Append a bound block of a cached or running prefix to the table."""
        self.bound("share", block)
        state = running_or_new(self.requests, "share", request)
        if block in state.shared or len(state.blocks) != len(state.shared):
            what = "blocks not yet in its table, before any that it binds (a prefix)"
            raise RequestError("share", request, f"block {block}", what)
        if self.journal is not None:
            self._touch(state)
            self._log(block, self.references, self.sealed)
        self.requests[request] = state
        if self.written[block] < self.layout.block_tokens:
            self.owed.append((request, block))
        if not self.references[block]:
            self.pool.reference(self.pair_of(block))
        self.references[block] += 1
        if self.sealed[block] == NEVER:
            self._seal(block)
        state.blocks.append(block)
        state.shared.add(block)
        state.tokens = state.confirmed = state.tokens + self.layout.block_tokens

    def _seal(self, block: int) -> None:
        """Others may read the block from now on, or may have."""
        binder = self.binder[block]
        assert binder is not None  # what is not sealed is its binder's alone
        binder.room = 0
        self.sealed[block] = self.step
        self.sealing.append(block)

    def close_seals(self) -> None:
        """At the end of a step a partial block, whose sharers left, is unsealed."""
        for block in self.sealing:
            if self.written[block] < self.layout.block_tokens:
                self.sealed[block] = NEVER
        self.sealing.clear()

    def release(self, request: Request, block: int) -> None:
        """Give up one block of a running request's table."""
        self.in_range(block)
        state = self.running("release", request)
        try:
            index = state.blocks.index(block)
        except ValueError:
            accepted = "a block in its table"
            raise RequestError("release", request, f"block {block}", accepted) from None
        self._touch(state)
        self._log(index, state.blocks)
        state.blocks[index] = RELEASED
        state.released += 1
        self.gaps += 1
        state.shared.discard(block)
        self._dereference(state, (block,))

    def finish(self, request: Request) -> None:
        """End a request: its ownership and its references go, tail first."""
        state = self.running("finish", request)
        self._touch(state)
        del self.requests[request]
        self.gaps -= state.released
        for pair in state.pairs:
            self.pool.disown(pair)
        self._dereference(state, [b for b in reversed(state.blocks) if b != RELEASED])

    def evict(self, block: int) -> None:
        """Drop the content of a cached block."""
        self.in_range(block)
        if self.granule[block] == UNBOUND or self.references[block]:
            accepted = "a bound block that no request holds"
            raise BlockStateError("evict", block, self.describe(block), accepted)
        self._unbind(block)

    def confirm(self, request: Request, tokens: int) -> None:
        """The first `tokens` positions of a request are verified."""
        state = self.running("confirm", request)
        if type(tokens) is not int or not state.confirmed <= tokens <= state.tokens:
            accepted = f"{state.confirmed} to {state.tokens} tokens"
            raise RequestError("confirm", request, f"{tokens} tokens", accepted)
        self._touch(state)
        size = self.layout.block_tokens
        for index in range(state.confirmed // size, -(-tokens // size)):
            block = state.blocks[index]
            if block == RELEASED or self.binder[block] is not state:
                continue
            self._log(block, self.confirmed)
            self.confirmed[block] = min(tokens - index * size, self.written[block])
            self.note_due(block, request, index * size)
        state.confirmed = tokens

    def note_due(self, block: int, request: Request, position: int) -> None:
        """A block in a slot is due for its commit once it is full and confirmed."""
        self.copied.pop(block, None)
        if self.slot[block] < 0:
            return
        if self.confirmed[block] == self.layout.block_tokens:
            self.due[block] = (request, position)
        else:
            self.due.pop(block, None)

    def _dereference(self, state: RequestState, blocks: Iterable[int]) -> None:
        """One reference less each; a partial one that loses its last is unbound."""
        pool, tokens = self.pool, self.layout.block_tokens
        granules, references = self.granule, self.references
        sealed, binder = self.sealed, self.binder
        for block in blocks:
            pair = granules[block] // pool.blocks_per_pair
            if self.journal is not None:
                self._log(block, references, sealed, binder)
                self._log(pair, pool.last_release)
            if sealed[block] == NEVER:
                self._seal(block)
            if binder[block] is state:
                binder[block] = None
            left = references[block] = references[block] - 1
            if self.owed:
                self.owed = [o for o in self.owed if o != (state.id, block)]
            if not left:
                self.releases += 1
                pool.unreference(pair, self.releases)
                if self.confirmed[block] < tokens:
                    self._unbind(block)

    def _unbind(self, block: int) -> None:
        """Granule and slot of an unreferenced block are free again."""
        if self.journal is not None:
            facts = self.granule, self.slot, self.written, self.confirmed, self.sealed
            self._log(block, *facts)
        granule = self.granule[block]
        if self.slot[block] >= 0:
            self.zone.give_back(self.slot[block])
            self.due.pop(block, None)
            self.copied.pop(block, None)
        self.block_at[granule] = UNBOUND
        self.granule[block] = UNBOUND
        self.slot[block] = FRESH
        self.written[block] = self.confirmed[block] = 0
        self.sealed[block] = NEVER
        pair, place = divmod(granule, self.pool.blocks_per_pair)
        self.pool.vacate(pair, place)
        owner = self.pool.owner[pair]
        if owner is not None:
            self._reopen(self.requests[owner], pair)

    def _reopen(self, state: RequestState, pair: int) -> None:
        """An owner may fill an emptied place again, but an empty pair is no one's."""
        if self.pool.is_free(pair):
            self._touch(state)
            self.pool.disown(pair)
            state.pairs.remove(pair)
        state.open = [p for p in state.pairs if self.pool.free_places[p]]

    # --- facts in and out ---------------------------------------------------------

    def bound_blocks(self) -> Iterable[int]:
        """Every bound block, ascending."""
        return (b for b, granule in enumerate(self.granule) if granule != UNBOUND)
