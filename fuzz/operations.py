"""What a serving engine does, drawn by choice after choice, one operation at a time.

`Operations` is shared by the seeded driver and the stateful machine: it knows which
operations make sense now and biases them towards the situations that matter. Writes and
reads gather in an engine step, as an engine schedules them; `close` applies it. Blocks
for them come as events while the step is planned, or with it as grants.

It reads levels and tables from the machine, which is right as long as nothing failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from fuzz.abstraction import RequestTable
from fuzz.world import World
from patton.requests import NEVER, RELEASED
from patton.steps import Step

# Chooses a number from 0 to limit - 1.
Choose = Callable[[int], int]

MOST_REQUESTS = 6
PREFIXES_KEPT = 12


@attrs.define(eq=False)
class Operations:
    """A small engine over a world. Methods return whether they did anything.

    ahead: tables of requests as the step being planned will leave them. promised: their
    new blocks, granted by it if `with_step`, else they were bound at once. wanted: what
    it will share. prefixes: of requests that ended, for hits. names: given so far.
    """

    world: World
    choose: Choose
    ahead: dict[int, RequestTable] = attrs.field(factory=dict)
    step: Step = attrs.field(factory=Step)
    with_step: bool = False
    promised: set[int] = attrs.field(factory=set)
    wanted: set[int] = attrs.field(factory=set)
    prefixes: list[list[int]] = attrs.field(factory=list)
    names: int = 0

    # --- what there is ------------------------------------------------------------

    @property
    def size(self) -> int:
        """Tokens of a block."""
        return self.world.runtime.layout.block_tokens

    @property
    def running(self) -> list[int]:
        """Requests that run and will go on."""
        return [int(r) for r in self.world.refinement.tables]

    @property
    def idle(self) -> list[int]:
        """Running requests that the step being planned does not touch."""
        return [r for r in self.running if r not in self.ahead]

    def chance(self, percent: int) -> bool:
        """True with a probability; false is the simplest choice."""
        return self.choose(100) >= 100 - percent

    def one_of(self, names: list[int]) -> int:
        """Any of a list that is not empty."""
        return names[self.choose(len(names))]

    def table(self, request: int) -> RequestTable:
        """A request's table as the step being planned will leave it."""
        return self.ahead.get(request) or self.world.refinement.tables[request]

    def _planned(self, request: int) -> RequestTable:
        """The same, to be changed."""
        if request not in self.ahead:
            now = self.world.refinement.tables.get(request) or RequestTable([])
            self.ahead[request] = attrs.evolve(now, blocks=[*now.blocks])
        return self.ahead[request]

    def free_blocks(self, count: int) -> list[int]:
        """Unbound ids that are not promised; fewer if there are no more.

        A step may bind at once what it evicts.
        """
        granules = self.world.runtime.placements.granule
        start, total = self.choose(len(granules)), len(granules)
        start = 0 if self.chance(40) else start  # as a free list reuses ids
        found = [b for b in self.step.evicts if b not in self.promised][:count]
        for offset in range(total):
            if len(found) == count:
                break
            block = (start + offset) % total
            if granules[block] < 0 and block not in self.promised:
                found.append(block)
        return found

    def is_open(self, request: int, start: int, end: int) -> bool:
        """Whether a request may write a range of its table."""
        state = self.world.runtime.placements
        writer = state.requests.get(request)
        for index in range(start // self.size, -(-end // self.size)):
            block = self.table(request).blocks[index]
            if block in self.promised:
                continue
            if block == RELEASED or writer is None:
                return False
            if state.binder[block] is not writer or state.sealed[block] != NEVER:
                return False
        return True

    def held_from(self, request: int) -> int:
        """The first position after the last block that a request gave up."""
        blocks = self.table(request).blocks
        for index in range(len(blocks) - 1, -1, -1):
            if blocks[index] == RELEASED:
                return (index + 1) * self.size
        return 0

    # --- blocks -------------------------------------------------------------------

    def _grant(self, request: int, shares: list[int], binds: list[int]) -> bool:
        """Blocks for a request, now or with the step; false if memory has run out."""
        if not (shares or binds):
            return True
        was_planned = request in self.ahead
        if not self.with_step:
            for name, blocks in (("share", shares), ("bind", binds)):
                for block in blocks:
                    if not self.world.do(name, request, block):
                        return False
        planned = self._planned(request)
        if self.with_step:
            self.step.grants = [*self.step.grants, (request, shares, binds)]
        if self.with_step or was_planned:
            planned.blocks += [*shares, *binds]
            planned.tokens += self.size * len(shares)
            planned.confirmed = planned.tokens if shares else planned.confirmed
        self.promised.update(binds)
        self.wanted.update(shares)
        return True

    def _room(self, request: int, wanted: int) -> int:
        """Makes the table longer, so that `wanted` positions fit; how many do."""
        have = len(self.table(request).blocks)
        missing = -(-wanted // self.size) - have
        if missing > 0:
            most = self.world.runtime.bindable(request) if self.chance(97) else missing
            binds = self.free_blocks(min(missing, most))
            self._grant(request, [], binds)
        if request not in self.world.refinement.tables and request not in self.ahead:
            return 0
        return min(wanted, len(self.table(request).blocks) * self.size)

    # --- admission ----------------------------------------------------------------

    def can_admit(self) -> bool:
        """Whether there may be memory for one request more."""
        few = len(self.running) + len(self.ahead) < MOST_REQUESTS
        return few and (self.world.runtime.free_pairs > 0 or bool(self.prefixes))

    def admit(self) -> bool:
        """A new request, perhaps with a prefix hit, and its first chunk."""
        if not self.can_admit():
            return False
        self.names += 1
        request, hit = self.names, self._hit()
        if hit and not self._grant(request, hit, []):
            return False
        if not hit:
            self._planned(request)
        done = self._write(request, 1 + self.choose(3 * self.size), 0)
        if not (done or hit):
            self.ahead.pop(request, None)
        return bool(done or hit)

    def _hit(self) -> list[int]:
        """The full blocks that an old prefix, or a running request, begins with."""
        state = self.world.runtime.placements
        candidates = [*self.prefixes]
        candidates += [self.world.refinement.tables[r].blocks for r in self.idle]
        if not candidates or self.chance(30):
            return []
        hit: list[int] = []
        chosen = candidates[self.choose(len(candidates))]
        if self.prefixes and self.chance(40):
            chosen = self.prefixes[-1]  # what was preempted comes back soon
        for block in chosen:
            full = block != RELEASED and state.confirmed[block] == self.size
            if not full or block in hit:
                break
            hit.append(block)
        return hit[: len(hit) - self.choose(len(hit) + 1)] if self.chance(30) else hit

    def share_in_fill(self) -> bool:
        """A block is filled, and shared by a new request in the same step."""
        ready = self.can_share_in_fill()
        if not ready:
            return False
        writer = self.one_of(ready)
        table = self.table(writer)
        index, partial = divmod(table.tokens, self.size)
        shares = table.blocks[: index + 1]
        self.names += 1
        # A share of what is not full yet is settled by the end of its step only.
        if not self._grant(self.names, shares, []):
            return False
        drafts = self.choose(self.size - partial + 1) if self.chance(20) else 0
        self._write_range(writer, table.tokens, self.size - partial, drafts)
        self._write(self.names, 1 + self.choose(self.size), 0)
        return True

    def can_share_in_fill(self) -> list[int]:
        """Requests whose block another one may share while it is being filled."""
        if len(self.running) >= MOST_REQUESTS:
            return []
        return [r for r in self.idle if self._can_fill(r)]

    def _can_fill(self, request: int) -> bool:
        table = self.table(request)
        if table.tokens % self.size == 0 or self.held_from(request):
            return False
        return self.is_open(request, table.tokens, table.tokens + 1)

    # --- writes -------------------------------------------------------------------

    def append(self) -> bool:
        """Decode: one more token."""
        return self._idle_write(lambda _: 1)

    def fill(self) -> bool:
        """To the end of the block, or of the next one."""
        return self._idle_write(lambda r: self.size - self.table(r).tokens % self.size)

    def chunk(self) -> bool:
        """Chunked prefill: up to three blocks."""
        return self._idle_write(lambda _: 1 + self.choose(3 * self.size))

    def draft(self) -> bool:
        """Speculation: some of the tokens are not verified yet."""
        return self._idle_write(lambda _: 1 + self.choose(2 * self.size), drafts=True)

    def rewrite(self) -> bool:
        """From an earlier position on: rejected drafts, or a correction."""
        return self._idle_write(lambda _: 1 + self.choose(2 * self.size), back=True)

    def _idle_write(
        self, count: Callable[[int], int], *, drafts: bool = False, back: bool = False
    ) -> bool:
        idle = self.idle
        if not idle:
            return False
        request = self.one_of(idle)
        table, wanted = self.table(request), count(request)
        start = table.tokens
        if table.confirmed < start and self.chance(85):
            start = table.confirmed + self.choose(start - table.confirmed + 1)
        elif back:
            start -= self.choose(min(2 * self.size, start) + 1)
        if start < table.tokens and not self.is_open(request, start, table.tokens):
            start = table.tokens
        rejected = 1 + self.choose(wanted) if drafts else 0
        return self._write(request, wanted, rejected, start)

    def _write(
        self, request: int, count: int, drafts: int, start: int | None = None
    ) -> bool:
        """Write as many tokens as there is memory for."""
        first = self.table(request).tokens if start is None else start
        count = self._room(request, first + count) - first
        if count < 1 or not self.is_open(request, first, first + count):
            return False
        self._write_range(request, first, count, min(drafts, count))
        return True

    def _write_range(self, request: int, start: int, count: int, drafts: int) -> None:
        planned = self._planned(request)
        self.step.writes = [*self.step.writes, (request, start, count)]
        if drafts:
            self.step.drafts[request] = drafts
        planned.tokens = start + count
        if start <= planned.confirmed:
            planned.confirmed = start + count - drafts

    # --- reads --------------------------------------------------------------------

    def read(self) -> bool:
        """Query tokens of a request; few look at windows, most at everything."""
        found = self._readable()
        if found is None:
            return False
        request, first, end = found
        for _ in range(1 + (self.choose(3) if self.chance(20) else 0)):
            stop = end - self.choose(min(4, end - first))
            start = first + self.choose(stop - first) if self.chance(30) else first
            self.step.reads = [*self.step.reads, (request, start, stop)]
        return True

    def read_back(self) -> bool:
        """Keys and Values return to the host."""
        found = self._readable()
        if found is None:
            return False
        request, first, end = found
        start = first + self.choose(end - first)
        stop = end - self.choose(end - start)
        self.step.readbacks = [*self.step.readbacks, (request, start, stop)]
        return True

    def _readable(self) -> tuple[int, int, int] | None:
        ranges = [(r, self.held_from(r), self.table(r).tokens) for r in self._readers()]
        ranges = [(r, first, end) for r, first, end in ranges if first < end]
        return ranges[self.choose(len(ranges))] if ranges else None

    def _readers(self) -> Iterator[int]:
        yield from self.ahead
        yield from self.idle

    # --- the end of the step ------------------------------------------------------

    def close(self) -> bool:
        """Apply the step that was planned."""
        step, self.step, self.ahead = self.step, Step(), {}
        self.promised.clear()
        self.wanted.clear()
        return self.world.do("step", step)
