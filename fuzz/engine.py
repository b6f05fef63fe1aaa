"""The rest of what an engine does: requests end, blocks go, commits are published.

Also what it should not do: events that make no sense, interrupted steps, plans that are
published late or twice.
"""

from __future__ import annotations

from typing import Any

import attrs

from fuzz.operations import PREFIXES_KEPT, Operations
from patton.requests import RELEASED
from patton.steps import Step


@attrs.define(eq=False)
class Engine(Operations):
    """All operations by name; see `OPERATIONS`."""

    def finish(self) -> bool:
        """A request ends, or is preempted."""
        idle = self.idle
        if not idle:
            return False
        request = self.one_of(idle)
        self._remember(request)
        if self.with_step:
            self._planned(request)  # nothing else is planned for it
            self.step.finishes = [*self.step.finishes, request]
            if self.chance(60):  # whoever waits takes over what is free now
                self.admit()
            return True
        return self.world.do("finish", request)

    def _remember(self, request: int) -> None:
        """What a later request may begin with."""
        table = self.world.refinement.tables[request]
        full = table.blocks[: table.confirmed // self.size]
        if full and RELEASED not in full:
            self.prefixes = [*self.prefixes[1 - PREFIXES_KEPT :], full]

    def release(self) -> bool:
        """A window slides on: the first block, seldom another, is given up."""
        slides = self.sliding()
        if not slides:
            return False
        request = self.one_of(slides)
        blocks = self._window(request)
        if not self.chance(30):  # else the whole window, as after a topic is closed
            blocks = [blocks[self.choose(len(blocks)) if self.chance(15) else 0]]
        if not self.with_step:
            return all(self.world.do("release", request, block) for block in blocks)
        planned = self._planned(request)
        for block in blocks:
            planned.blocks[planned.blocks.index(block)] = RELEASED
        gone = [(request, block) for block in blocks]
        self.step.releases = [*self.step.releases, *gone]
        return True

    def sliding(self) -> list[int]:
        """Requests that could give up a block."""
        return [r for r in self.idle if self._window(r)]

    def _window(self, request: int) -> list[int]:
        """Blocks that may slide out: full and verified ones, but for the last."""
        table = self.table(request)
        full = table.blocks[: max(0, table.confirmed // self.size - 1)]
        return [block for block in full if block not in (RELEASED, *self.wanted)]

    def evict(self) -> bool:
        """The pair that should go first, seldom a single block of another."""
        runtime = self.world.runtime
        pairs = [*runtime.eviction_candidates()]
        pairs = [p for p in pairs if not self.wanted & {*runtime.blocks_of_pair(p)}]
        pairs = [p for p in pairs if not self._evicts(runtime.blocks_of_pair(p))]
        if not pairs or self.chance(30):
            return self._evict_one()
        blocks = runtime.blocks_of_pair(pairs[0])
        if self.chance(30):
            blocks = runtime.blocks_of_pair(self.one_of(pairs))
            blocks = blocks[: 1 + self.choose(len(blocks))]
        if self.with_step:
            self.step.evicts = [*self.step.evicts, *blocks]
            return True
        return all(self.world.do("evict", block) for block in blocks)

    def _evicts(self, blocks: list[int]) -> bool:
        return bool({*self.step.evicts} & {*blocks})

    def _evict_one(self) -> bool:
        """A cached block beside blocks in use."""
        state = self.world.runtime.placements
        cached = self.cached()
        owner = state.pool.owner
        owned = [b for b in cached if owner[state.pair_of(b)] is not None]
        cached = owned if owned and self.chance(70) else cached
        return bool(cached) and self.world.do("evict", self.one_of(cached))

    def cached(self) -> list[int]:
        """Blocks that may be evicted."""
        state = self.world.runtime.placements
        kept = {*self.step.evicts, *self.wanted}
        bound = (b for b in state.bound_blocks() if b not in kept)
        return [b for b in bound if not state.references[b]]

    def confirm(self) -> bool:
        """Drafts turn out to be right, all or some."""
        open_ = self.unverified()
        if not open_:
            return False
        request = self.one_of(open_)
        table = self.table(request)
        tokens = table.tokens - self.choose(self._unverified(request))
        if self.with_step:
            self._planned(request).confirmed = tokens
            self.step.confirms = [*self.step.confirms, (request, tokens)]
            return True
        return self.world.do("confirm", request, tokens)

    def unverified(self) -> list[int]:
        """Requests with tokens that are not verified."""
        return [r for r in self.idle if self._unverified(r)]

    def _unverified(self, request: int) -> int:
        table = self.table(request)
        return table.tokens - table.confirmed

    # --- commits ------------------------------------------------------------------

    def publish(self) -> bool:
        """The latest plan's copies are done."""
        plans = self.world.plans
        return bool(plans) and self.world.do("publish", max(plans))

    def publish_late(self) -> bool:
        """An asynchronous engine publishes a plan when later ones exist, or again."""
        return bool(self.world.plans) and self.world.do("publish", self._any_plan())

    def _any_plan(self) -> int:
        """Any plan, mostly one of which a block is bound anew, or the oldest.

        Most of all one whose block was written since, and copied by a later plan.
        """
        epochs = self.world.runtime.placements.epoch
        plans = sorted(self.world.plans)
        overtaken = [number for number in plans if self._is_overtaken(number)]
        if overtaken and self.chance(70):
            return self.one_of(overtaken)
        stale = [
            number
            for number in plans
            if any(epochs[c.block] != c.epoch for c in self.world.plans[number].commits)
        ]
        if stale and self.chance(50):
            return self.one_of(stale)
        return plans[0] if self.chance(30) else self.one_of(plans)

    def _is_overtaken(self, number: int) -> bool:
        state, written = self.world.runtime.placements, self.world.written
        copied = [c.block for c in self.world.plans[number].commits]
        copied = [block for block in copied if block in state.copied]
        return any(written.get((b, state.epoch[b]), -1) > number for b in copied)

    def place_late(self) -> bool:
        """An engine asks for placements after the runtime has gone on."""
        plans = self.world.plans
        return bool(plans) and self.world.do("place_late", self._any_plan())

    def commit(self) -> bool:
        """One block alone, of the copies that were made."""
        copied = [*self.world.runtime.placements.copied]
        # With a device, what was copied is told by plans: some copies are abandoned.
        if not copied or self.world.validator is not None:
            return False
        return self.world.do("commit", self.one_of(copied))

    def interrupt(self) -> bool:
        """The next step stops half way, and is repeated, or its commits abandoned."""
        if self.world.validator is None:
            return False
        index, abandon = self.choose(1 << 16), self.chance(50)
        return self.world.do("interrupt", index, abandon)

    # --- what an engine should not do ---------------------------------------------

    def restore(self) -> bool:
        """The state is saved and loaded, now and then: it takes long."""
        return self.chance(20) and self.restore_now()

    def restore_now(self) -> bool:
        """The state is saved and loaded."""
        return self.world.do("restore")

    def reject(self) -> bool:
        """An event with arguments out of the blue; whatever comes of it is checked."""
        state, wild = self.world.runtime.placements, 1 + self.names
        block = self.choose(len(state.granule) + 1)
        full = [b for b, level in enumerate(state.confirmed) if level == self.size]
        if full and self.chance(50):
            block = self.one_of(full)
        request = self.choose(wild)
        if request in self.ahead or block in (self.wanted | self.promised):
            return False
        events: list[tuple[Any, ...]] = [
            ("bind", request, block),
            ("share", request, block),
            ("evict", block),
            ("release", request, block),
            ("confirm", request, self.choose(4 * self.size)),
            ("finish", wild),
        ]
        if self.world.validator is None:
            staged = [b for b, slot in enumerate(state.slot) if slot >= 0]
            one = self.one_of(staged) if staged and self.chance(80) else block
            events += [("commit", one)]
        event = events[self.choose(len(events))]
        if event[0] == "share" and self._is_partial(block):
            return False  # not wrong, but the next step would have to fill it
        return self.world.do(*event)

    def overwrite(self) -> bool:
        """A request writes what it has written, whoever may read it by now."""
        written = [r for r in self.idle if self.table(r).tokens]
        if self.ahead or not written:
            return False
        request = self.one_of(written)
        start = self.choose(self.table(request).tokens)
        count = 1 + self.choose(2 * self.size)
        return self.world.do("step", Step(writes=[(request, start, count)]))

    def share_unfilled(self) -> bool:
        """A partial block is shared by two requests that leave before it is full.

        One leaves at once; the other is still owed the block, and the step refused.
        """
        ready = self.can_share_in_fill()
        if self.ahead or not ready:
            return False
        table = self.table(self.one_of(ready))
        for _ in range(2):
            self.names += 1
            for block in table.blocks[: table.tokens // self.size + 1]:
                self.world.do("share", self.names, block)
        self.world.do("finish", self.names)
        self.world.do("step", Step())
        return self.world.do("finish", self.names - 1)

    def _is_partial(self, block: int) -> bool:
        written = self.world.runtime.placements.written
        return block < len(written) and written[block] < self.size

    def reject_step(self) -> bool:
        """The step being planned with one thing more that is out of the blue."""
        request, limit = self.choose(2 + self.names), 4 * self.size
        start, count = self.choose(limit), self.choose(limit)
        if self.running and self.chance(70):  # mostly what could be meant seriously
            request = self.one_of(self.running)
            start = self.choose(self.table(request).tokens + 1)
            count = 1 + self.choose(self.size)
        step = self.step
        wrong = [
            attrs.evolve(step, writes=[*step.writes, (request, start, count)]),
            attrs.evolve(step, reads=[*step.reads, (request, start, start + count)]),
            attrs.evolve(step, grants=[*step.grants, (request, [start], [count])]),
            attrs.evolve(step, drafts={**step.drafts, request: count}),
            attrs.evolve(step, confirms=[*step.confirms, (request, count)]),
            attrs.evolve(step, evicts=[*step.evicts, start]),
            attrs.evolve(step, finishes=[*step.finishes, request]),
            attrs.evolve(step, releases=[*step.releases, (request, start)]),
            self._with_gap(),
            self._with_lost(0),
            self._with_lost(1),
        ]
        step = wrong[self.choose(len(wrong))]
        self.step, self.ahead = Step(), {}
        self.promised.clear()
        self.wanted.clear()
        return self.world.do("step", step)

    def _with_gap(self) -> Step:
        """The step with a write that begins too late, within the request's table."""
        if not self.idle:
            return self.step
        request, blocks = self.one_of(self.idle), self.free_blocks(2)
        start = self.table(request).tokens + 1 + self.choose(self.size)
        grants = [*self.step.grants, (request, [], blocks)]
        writes = [*self.step.writes, (request, start, 1)]
        return attrs.evolve(self.step, grants=grants, writes=writes)

    def _with_lost(self, count: int) -> Step:
        """The step with a read of everything, also of what was given up.

        By a request that writes so many tokens in it.
        """
        lost = [r for r in self.idle if self.held_from(r)]
        if not lost:
            return self.step
        request = self.one_of(lost)
        end = self.table(request).tokens
        writes = [*self.step.writes, *[(request, end, count)][:count]]
        reads = [*self.step.reads, (request, 0, end + count)]
        return attrs.evolve(self.step, writes=writes, reads=reads)

    # --- memory -------------------------------------------------------------------

    def make_room(self) -> bool:
        """Memory has run out: evict what is cached, else preempt the newest."""
        pair = next(self.world.runtime.eviction_candidates(), None)
        if pair is not None:
            blocks = self.world.runtime.blocks_of_pair(pair)
            return all(self.world.do("evict", block) for block in blocks)
        if self.running:
            self._remember(newest := max(self.running))
            return self.world.do("finish", newest)
        return False


# What is gathered in a step, and what happens at once or with it: operation -> weight.
PLANNED: dict[str, float] = {
    "admit": 3,
    "append": 12,
    "fill": 4,
    "chunk": 3,
    "draft": 3,
    "rewrite": 2,
    "share_in_fill": 2,
    "read": 9,
    "read_back": 2,
}
EVENTS: dict[str, float] = {
    "finish": 2,
    "release": 2,
    "evict": 2,
    "confirm": 3,
    "publish": 6,
    "publish_late": 3,
    "place_late": 1,
    "commit": 2,
    "interrupt": 1,
    "restore": 1,
    "reject": 1.5,
    "reject_step": 0.6,
    "overwrite": 0.6,
    "share_unfilled": 0.4,
}
OPERATIONS = PLANNED | EVENTS
