"""A small random engine over a runtime: allowed steps, and refusals that must hold.

It keeps its own model of tables and levels and draws whole steps from it: admissions
with prefix hits, decode, chunks, drafts with later rejection, windows, preemption,
eviction and memory running out.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from patton.errors import OutOfPairsError, PattonError
from patton.runtime import Runtime
from patton.steps import Step, StepPlan


@attrs.define
class Chat:
    """One running request as the engine sees it."""

    name: int
    blocks: list[int]
    tokens: int = 0
    verified: int = 0
    floor: int = 0  # first position that was not shared
    window: int = 0  # blocks given up at the front


@attrs.define
class RandomEngine:
    """Draws steps, applies them, and keeps the full prefixes for later hits."""

    runtime: Runtime
    rng: np.random.Generator
    chats: dict[int, Chat] = attrs.field(factory=dict)
    prefixes: list[list[int]] = attrs.field(factory=list)
    accepted: int = 0
    names: int = 0
    publish_always: bool = False

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return bool(self.rng.random() < probability)

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return int(self.rng.integers(limit))

    def step(self, **extra: Any) -> StepPlan | None:
        """One random step; None when memory ran out (and something was evicted)."""
        before = {
            name: attrs.evolve(c, blocks=[*c.blocks]) for name, c in self.chats.items()
        }
        step = self.draw_step(**extra)
        try:
            plan = self.runtime.apply_step(step)
        except OutOfPairsError:
            self.chats = before
            self._make_room()
            return None
        self.accepted += 1
        for name in step.finishes:
            assert isinstance(name, int)
            chat = before[name]
            full = chat.verified // self.runtime.layout.block_tokens
            if full and not chat.window:
                self.prefixes.append(chat.blocks[:full])
        if self.publish_always or self.chance(0.8):
            self.runtime.publish(plan)
        return plan

    def draw_step(self) -> Step:
        """Releases, then confirmations, then admissions and growth."""
        step = Step(
            finishes=[], releases=[], confirms=[], grants=[], writes=[], reads=[]
        )
        for name in [*self.chats]:
            if self.chance(0.08):
                step.finishes = [*step.finishes, name]
                del self.chats[name]
        taken: set[int] = set()
        for chat in self.chats.values():
            self._slide(chat, step)
        if len(self.chats) < 6 and self.chance(0.6):
            self._admit(step, taken)
        for chat in self.chats.values():
            if not any(write[0] == chat.name for write in step.writes):
                self._grow(chat, step, taken)
        return step

    def _slide(self, chat: Chat, step: Step) -> None:
        size = self.runtime.layout.block_tokens
        if chat.window + 1 < chat.verified // size and self.chance(0.05):
            block = chat.blocks[chat.window]
            step.releases = [*step.releases, (chat.name, block)]
            chat.window += 1

    def _free_blocks(self, count: int, taken: set[int]) -> list[int]:
        state = self.runtime.placements
        free = [b for b, g in enumerate(state.granule) if g < 0 and b not in taken]
        picked = [int(b) for b in self.rng.permutation(free)[:count]]
        taken.update(picked)
        return picked

    def _hit(self) -> list[int]:
        """The part of an old prefix that is still bound, full and unreleased."""
        if not self.prefixes or self.chance(0.3):
            return []
        prefix = self.prefixes[self.below(len(self.prefixes))]
        state = self.runtime.placements
        size = self.runtime.layout.block_tokens
        hit: list[int] = []
        for block in prefix:
            if state.granule[block] < 0 or state.confirmed[block] < size:
                break
            hit.append(block)
        return hit

    def _admit(self, step: Step, taken: set[int]) -> None:
        size = self.runtime.layout.block_tokens
        hit = self._hit()
        count = 1 + self.below(3 * size)
        fresh = self._free_blocks(-(-count // size), taken)
        count = min(count, len(fresh) * size)
        if count < 1:
            return
        self.names += 1
        chat = Chat(self.names, hit + fresh, floor=len(hit) * size)
        chat.tokens = chat.verified = chat.floor + count
        self.chats[chat.name] = chat
        step.grants = [*step.grants, (chat.name, hit, fresh)]
        step.writes = [*step.writes, (chat.name, chat.floor, count)]
        step.reads = [*step.reads, (chat.name, 0, chat.tokens)]

    def _grow(self, chat: Chat, step: Step, taken: set[int]) -> None:
        size = self.runtime.layout.block_tokens
        start = chat.tokens
        if chat.verified < chat.tokens:  # drafts: some accepted, the rest rejected
            start = chat.verified + self.below(chat.tokens - chat.verified + 1)
            step.confirms = [*step.confirms, (chat.name, start)]
        count = 1 if self.chance(0.6) else 1 + self.below(2 * size)
        room = len(chat.blocks) * size
        fresh = self._free_blocks(max(0, -(-(start + count - room) // size)), taken)
        count = min(count, room + len(fresh) * size - start)
        if count < 1:
            chat.verified = start
            return
        drafts = self.below(count) if self.chance(0.3) else 0
        if fresh:
            step.grants = [*step.grants, (chat.name, [], fresh)]
            chat.blocks += fresh
        step.writes = [*step.writes, (chat.name, start, count)]
        if drafts:
            step.drafts[chat.name] = drafts
        chat.tokens, chat.verified = start + count, start + count - drafts
        first = chat.window * size
        step.reads = [*step.reads, (chat.name, first, chat.tokens)]

    def _make_room(self) -> None:
        pair = next(self.runtime.eviction_candidates(), None)
        if pair is not None:
            for block in self.runtime.blocks_of_pair(pair):
                self.runtime.evict(block)
        elif self.chats:
            name = next(reversed(self.chats))
            del self.chats[name]
            self.runtime.finish(name)

    def try_refusals(self) -> None:
        """Steps that fail late, after much was changed, leave the state as it was."""
        step = self.draw_step_copy()
        nothing: Any = "x"
        bad = [
            attrs.evolve(step, writes=[*step.writes, ("nobody", 0, 1)]),
            attrs.evolve(step, reads=[*step.reads, ("nobody", 0, 1)]),
            attrs.evolve(step, grants=[*step.grants, ("new", [], [-1])]),
            attrs.evolve(step, grants=[*step.grants, ("new", [10**9], [])]),
            attrs.evolve(step, drafts={"nobody": 1}),
            attrs.evolve(step, grants=[*step.grants, ("new", [], [nothing])]),
        ]
        before = self.runtime.snapshot()
        for case in bad:
            with pytest.raises((PattonError, TypeError)):
                self.runtime.apply_step(case)
            assert self.runtime.snapshot() == before
            self.runtime.check()

    def draw_step_copy(self) -> Step:
        """A step drawn without touching the engine's own model."""
        chats = {n: attrs.evolve(c, blocks=[*c.blocks]) for n, c in self.chats.items()}
        step = self.draw_step()
        self.chats = chats
        return step
