"""A lifecycle that puts writes off is, whenever it is asked, as one that does not.

Random events as vLLM may send them: hits on what others just wrote, requests that end
in the step that admitted them, windows, drafts; now and then a write that cannot be.
After each call a copy is asked, so that being asked changes nothing.
"""

from __future__ import annotations

import copy
import random
from typing import Any

import attrs
import pytest

from patton.errors import PattonError
from patton.steps import Request
from patton.vllm.lifecycle import Lifecycle, Writes
from patton.vllm.pending import Pending
from tests.vllm.comparison import scheduling
from tests.vllm.pair import LAYOUT

SIZE = LAYOUT.block_tokens
IDS = range(48)
COUNTS = (1, 1, 1, 1, 2, 5, 17, 33)


class AtOnce(Pending):
    """Nothing is put off."""

    def put_off(self, writes: Writes) -> bool:  # noqa: ARG002
        return False


def asked(lifecycle: Lifecycle) -> Any:
    """All that its runtime knows, which is consistent; the lifecycle is left alone."""
    runtime = lifecycle._runtime
    observer, runtime.observer = runtime.observer, None
    copied = copy.deepcopy(lifecycle._pending, {id(LAYOUT): LAYOUT})
    runtime.observer = observer
    copied.settle([*copied.ends])
    copied.runtime.check()
    return copied.runtime.snapshot()


def outcome(lifecycle: Lifecycle, name: str, arguments: tuple[Any, ...]) -> Any:
    try:
        return getattr(lifecycle, name)(*arguments)
    except PattonError as error:
        return type(error), str(error)


@attrs.define(eq=False)
class Both:
    """Both lifecycles, told the same; writes and drafts of the step to come."""

    chance: random.Random
    speculating: bool
    late: Lifecycle = attrs.field(init=False)
    once: Lifecycle = attrs.field(init=False)
    writes: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    drafts: dict[Request, int] = attrs.field(factory=dict)
    confirms: list[tuple[Request, int]] = attrs.field(factory=list)
    admitted: int = 0

    def __attrs_post_init__(self) -> None:
        self.late = Lifecycle.of(scheduling(LAYOUT, len(IDS)))
        self.once = Lifecycle.of(scheduling(LAYOUT, len(IDS)))
        self.once._pending = AtOnce(self.once._runtime)

    @property
    def running(self) -> list[str]:
        return [str(request) for request in self.once.requests]

    def call(self, name: str, *arguments: Any) -> None:
        """The same to both, with the same outcome, log and state."""
        found = [outcome(each, name, arguments) for each in (self.late, self.once)]
        assert found[0] == found[1]
        assert self.late._log == self.once._log
        assert asked(self.late) == asked(self.once)

    def free(self, count: int) -> list[int]:
        references = self.once.runtime.placements.references
        idle = [block for block in IDS if not references[block]]
        return self.chance.sample(idle, min(count, len(idle)))

    def write(self, request: str) -> None:
        """A request goes on, from where its drafts were accepted if it had any."""
        held = self.once.requests[request]
        first = self.chance.randint(held.confirmed, held.tokens)
        if held.confirmed < held.tokens:
            self.confirms.append((request, first))
        count = self.chance.choice(COUNTS)
        need = -(-(first + count) // SIZE) - len(held.blocks)
        if need > 0:
            self.call("bind", request, self.free(need))
        room = len(held.blocks) * SIZE - first
        count = min(count, room)
        if self.chance.random() < 0.02:
            count += self.chance.choice([room + 1, -count, -count - 1])
        self.writes[request] = first, count
        if self.speculating and count > 1 and self.chance.random() < 0.15:
            self.drafts[request] = self.chance.randint(1, count - 1)

    def hits(self) -> list[int]:
        """Leading blocks of some request that are full, or will be after the step."""
        if not self.running:
            return []
        source = self.chance.choice(self.running)
        held = self.once.requests[source]
        first, count = self.writes.get(source, (held.confirmed, 0))
        sure = first + count - self.drafts.get(source, 0)
        full = [*held.blocks[: max(sure, 0) // SIZE]]
        return [] if -1 in full else full[: self.chance.randint(0, len(full))]

    def admit(self) -> None:
        self.admitted += 1
        request, hits = f"r{self.admitted}", self.hits()
        if hits:
            self.call("share", request, hits)
        if request not in self.running and (blocks := self.free(1)):
            self.call("bind", request, blocks)
        if request in self.running:
            self.write(request)

    def end(self, request: str) -> None:
        self.call("finish", request)
        self.writes.pop(request, None)
        self.drafts.pop(request, None)
        self.confirms = [c for c in self.confirms if c[0] != request]

    def leave_window(self, request: str) -> None:
        held = self.once.requests[request]
        left = [b for b in held.blocks[: max(held.confirmed // SIZE - 1, 0)] if b >= 0]
        if left:
            self.call("release", request, left[: self.chance.randint(1, len(left))])

    def step(self) -> None:
        chance = self.chance.random
        for request in self.running:
            if chance() < 0.08:
                self.end(request)
            elif chance() < 0.1:
                self.leave_window(request)
        if chance() < 0.1:
            self.call("forget", self.chance.sample(IDS, 6))
        for request in self.chance.sample(self.running, len(self.running)):
            if chance() < 0.85:
                self.write(request)
        for _ in range(self.chance.choice([0, 0, 0, 1, 1, 2])):
            self.admit()
        if self.running and chance() < 0.1:
            self.end(self.chance.choice(self.running))
        writes = [(request, *span) for request, span in self.writes.items()]
        self.call("apply", writes, self.confirms, self.drafts)
        self.writes, self.drafts, self.confirms = {}, {}, []


@pytest.mark.parametrize("speculating", [False, True], ids=["plain", "drafts"])
@pytest.mark.parametrize("seed", range(40))
def test_put_off_or_at_once(seed: int, speculating: bool) -> None:
    """The same outcome, log and state after every call."""
    both = Both(random.Random(seed), speculating)
    for _ in range(30):
        both.step()


def test_the_runs_above_put_off_tell_and_refuse() -> None:
    """What is compared does happen."""
    put_off = told = refused = 0
    for seed in range(10):
        both = Both(random.Random(seed), speculating=False)
        for _ in range(30):
            before = both.once.runtime.step
            both.step()
            put_off += bool(both.late._pending.ends)
            told += not both.late._pending.ends
            refused += both.once.runtime.step == before
    assert min(put_off, told, refused) > 10
