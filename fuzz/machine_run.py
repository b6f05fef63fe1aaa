"""The abstract machine driven by the runtime's events.

An event of the runtime, and above all a whole engine step, is a sequence of transitions
of the machine in the order of the step (layout 4). The machine leaves open which
granule index and which slot is taken: those choices are made by a subclass, and judged
by the guards. Levels are not open: they follow from the event and from the tables of
the requests, which are kept here because the machine does not know the order of blocks.
"""

from __future__ import annotations

from typing import Any

import attrs

from fuzz.abstraction import RequestTable
from patton.requests import RELEASED
from patton.runtime import Runtime
from patton.steps import Request, Step
from spec.logic import ANY, Finite, Key, Table, Term
from spec.machine import move_of
from spec.state import SIGNATURE, State

# Cells that a transition has set, by field.
Changed = list[tuple[str, dict[Key, Term]]]


@attrs.define
class RefinementError(AssertionError):
    """The runtime did what the specification does not allow, or the other way round.

    clause: of SPEC.md. event: what the runtime was asked. what: the transition that is
    refused, or the fact that differs.
    """

    clause: str
    event: str
    what: str
    found: object
    expected: object

    def __str__(self) -> str:
        differs = f"{self.what} is {self.found!r}, expected {self.expected!r}"
        return f"{self.clause}: {self.event}: {differs}"


def logic_of(runtime: Runtime) -> Finite:
    """The machine's constants and universes for one runtime."""
    layout, state = runtime.layout, runtime.placements
    size, stripes = layout.pair_blocks, layout.stripes

    def aligned(slot: int, pair: int | None, place: int | None) -> bool:
        if pair is None or place is None:  # of a block that was never bound
            return False
        return slot % stripes == (pair * size + place) % stripes

    universe: dict[str, Any] = {
        "b": range(len(state.granule)),
        "p": range(layout.pairs),
        "i": range(size),
        "z": range(layout.slots * stripes),
    }
    return Finite(
        tokens=layout.block_tokens,
        aligned=aligned,
        universe=universe,
        adoption=state.adoption,
        staging=state.commit_zone,
    )


@attrs.define(eq=False)
class MachineRun:
    """A machine in some state, and the tables of its running requests.

    maps: the fields of `s` by name. event: the one that is being carried out.
    """

    lg: Finite
    s: State
    tables: dict[Request, RequestTable]
    maps: dict[str, Table] = attrs.field(init=False)
    event: str = "the first state"

    def __attrs_post_init__(self) -> None:
        self.maps = {name: getattr(self.s, name) for name in SIGNATURE}

    # --- choices of a subclass ----------------------------------------------------

    def place_for(self, request: Request, block: int) -> tuple[int, int]:
        """The pair and place that a new block of the request takes."""
        raise NotImplementedError

    def slot_for(self, block: int) -> int:
        """The slot of a block whose first write leaves it partial, negative if none."""
        raise NotImplementedError

    def changed(self, changes: Changed) -> None:
        """Called with what a transition has changed."""

    # --- transitions --------------------------------------------------------------

    def run(self, event: str, arguments: tuple[Any, ...]) -> None:
        """One event of the runtime. Raises RefinementError."""
        self.event = event if event == "step" else f"{event}{arguments}"
        getattr(self, f"_{event}")(*arguments)

    def demand(self, clause: str, what: str, found: object, expected: object) -> None:
        """Raise RefinementError if a fact is not as a clause has it."""
        if found != expected:
            raise RefinementError(clause, self.event, what, found, expected)

    def _take(self, name: str, *arguments: Term) -> None:
        """One transition of the machine. Raises RefinementError if it is refused."""
        move = move_of(self.lg, self.s, name, *arguments)
        for clause, allowed in move.guard.items():
            if not allowed:
                what = f"{name}{arguments}"
                raise RefinementError(clause, self.event, what, "asked for", "refused")
        changes: Changed = []
        for field, edited in move.changes.items():
            cells: dict[Key, Term] = edited.changes  # type: ignore[attr-defined]
            self.maps[field].take(cells)
            changes.append((field, cells))
        self.changed(changes)

    def holders(self, block: int) -> int:
        """References to the block."""
        key = ANY, block
        return self.maps["binder"].count(1, key) + self.maps["sharer"].count(1, key)

    def due(self) -> set[int]:
        """Blocks to be committed: in a slot, full and confirmed."""
        confirmed, size = self.maps["confirmed"].cells, self.lg.tokens
        return {b for (b,) in self.maps["in_slot"].cells if confirmed.get((b,)) == size}

    # --- events -------------------------------------------------------------------

    def _start(self, request: Request) -> RequestTable:
        if request not in self.tables:
            self._take("start", request)
            self.tables[request] = RequestTable([])
        return self.tables[request]

    def _running(self, clause: str, request: Request) -> RequestTable:
        runs = request in self.tables
        self.demand(clause, f"request {request!r} running", runs, True)
        return self.tables[request]

    def _bind(self, request: Request, block: int) -> None:
        self.demand("LIFE-BIND", f"id {block}", block in self.lg.universe["b"], True)
        table = self._start(request)
        pair, place = self.place_for(request, block)
        if self.s.owns(request, pair):
            way = "bind_own"
        else:
            way = "bind_adopting" if self.s.used(pair) else "bind_fresh"
        self._take(way, request, block, pair, place)
        table.blocks.append(block)

    def _share(self, request: Request, block: int) -> None:
        table = self._start(request)
        self._take("share", request, block)
        table.blocks.append(block)
        table.tokens += self.lg.tokens
        table.confirmed = table.tokens

    def _release(self, request: Request, block: int) -> None:
        if self.holders(block) > 1:
            way = "leave"
        else:
            way = "cache" if self.s.confirmed(block) == self.lg.tokens else "drop"
        self._take(way, request, block)
        table = self.tables[request].blocks
        table[table.index(block)] = RELEASED

    def _evict(self, block: int) -> None:
        self._take("evict", block)

    def _finish(self, request: Request) -> None:
        for block in reversed(self._running("LIFE-FINISH", request).blocks):
            if block != RELEASED:
                self._release(request, block)
        self._take("end", request)
        del self.tables[request]

    def _confirm(self, request: Request, tokens: int) -> None:
        table, size = self._running("LIFE-CONFIRM", request), self.lg.tokens
        within = table.confirmed <= tokens <= table.tokens
        self.demand("LIFE-CONFIRM", f"{tokens} tokens within range", within, True)
        for index in range(table.confirmed // size, -(-tokens // size)):
            block = table.blocks[index]
            level = min(tokens - index * size, size)
            own = block != RELEASED and self.s.binder(request, block)
            if own and level > self.s.confirmed(block):
                self._take("confirm", request, block, level)
        table.confirmed = tokens

    def _commit(self, block: int) -> None:
        self._take("publish", block)

    # --- one engine step ----------------------------------------------------------

    def _step(self, step: Step) -> None:
        self._plan(step)
        self._take("begin_writes")
        self._check_form(step)
        drafts = step.drafts or {}
        for request, start, count in step.writes:
            self._write(request, start, count, drafts.get(request, 0))
        self._take("begin_reads")
        for ranges in (step.reads, step.readbacks):
            for request, start, end in ranges:
                self._read(request, start, end)
        for block in self.due():
            self._take("copy", block)
        self._take("end_step")

    def _plan(self, step: Step) -> None:
        for request in step.finishes:
            self._finish(request)
        for request, block in step.releases:
            self._release(request, block)
        for block in step.evicts:
            self._evict(block)
        for request, tokens in step.confirms:
            self._confirm(request, tokens)
        for request, shares, binds in step.grants:
            for block in shares:
                self._share(request, block)
            for block in binds:
                self._bind(request, block)

    def _check_form(self, step: Step) -> None:
        counts = {request: count for request, _, count in step.writes}
        once = len(counts) == len(step.writes)
        self.demand("LIFE-GAPLESS", "one range for each request", once, True)
        drafts = step.drafts or {}
        fit = all(0 <= n <= counts.get(request, 0) for request, n in drafts.items())
        self.demand("LIFE-LEVELS", "drafts among the tokens written", fit, True)

    def _write(self, request: Request, start: int, count: int, drafts: int) -> None:
        """Levels of all blocks from the first written to the last that had tokens."""
        table, size = self._running("LIFE-WRITER", request), self.lg.tokens
        end = start + count
        fits = 0 <= start <= table.tokens and 0 < count <= len(table.blocks) * size
        fits = fits and end <= len(table.blocks) * size
        self.demand("LIFE-GAPLESS", f"write of {count} at {start} fits", fits, True)
        if start <= table.confirmed:
            table.confirmed = end - drafts
        for index in range(start // size, -(-max(end, table.tokens) // size)):
            block, base = table.blocks[index], index * size
            if base < end:
                first, last = max(start - base, 0), min(end - base, size)
                verified = min(max(table.confirmed - base, 0), last)
                self._write_block(request, block, first, last, verified)
            elif block != RELEASED and self.s.written(block):
                self._take("retract", request, block)
        table.tokens = end

    def _write_block(
        self, request: Request, block: int, first: int, last: int, verified: int
    ) -> None:
        if self.s.begun(block) or first > 0 or not self.s.binder(request, block):
            self._take("write_on", request, block, first, last, verified)
        elif verified == self.lg.tokens:
            self._take("write_whole", request, block)
        elif (slot := self.slot_for(block)) >= 0:
            self._take("write_staged", request, block, last, verified, slot)
        else:
            self._take("write_direct", request, block, last, verified)

    def _read(self, request: Request, start: int, end: int) -> None:
        table, size = self._running("LIFE-READ", request), self.lg.tokens
        written = self.maps["written"].cells
        within = 0 <= start < end <= len(table.blocks) * size
        self.demand("LIFE-READ", f"read of {start} to {end} fits", within, True)
        for index in range(start // size, -(-end // size)):
            block = table.blocks[index]
            # Only what could be refused goes through the machine: tables are long.
            if index * size + size > end or written.get((block,)) != size:
                level = min(end - index * size, size)
                self._take("read", request, block, level)
