"""The stateful machine: hypothesis chooses, and finds the shortest way to a failure.

Runtime, engine events, specification and device together, everything compared at every
step. Rules are the operations of `fuzz.engine`, guarded so that they make sense; each
takes one number whose digits are its choices, so that what hypothesis shrinks is small
and its simplest choice is zero.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

from fuzz.driver import layout_of, runtime_of
from fuzz.engine import Engine
from fuzz.world import World

NUMBERS = st.integers(0, 2**48 - 1)
MOST_READS = 4  # planned for one step
SEEDS = st.integers(0, 2**16 - 1)


class Digits:
    """Choices taken from a number, digit after digit, each in its own base."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, limit: int) -> int:
        """The next digit."""
        self.number, digit = divmod(self.number, limit)
        return digit


class PlacementMachine(RuleBasedStateMachine):
    """One geometry, driven rule by rule.

    tried, done: rules drawn, and those of them that were carried out, over all runs.
    latest: the world of the latest run.
    """

    tried: ClassVar[Counter[str]] = Counter()
    done: ClassVar[Counter[str]] = Counter()
    latest: ClassVar[World | None] = None

    engine: Engine
    digits: Digits

    @initialize(seed=SEEDS)
    def begin(self, seed: int) -> None:
        """Any geometry and options."""
        rng = Random(seed)
        world = World.of(runtime_of(rng, layout_of(rng)), "everything", device=True)
        self.digits = Digits()
        self.engine = Engine(world, self.digits)
        type(self).latest = world

    def perform(self, name: str, number: int) -> None:
        """One operation with the choices of a number."""
        self.digits.number = number
        did = getattr(self.engine, name)()
        self.tried[name] += 1
        self.done[name] += bool(did)

    # --- what the next step is made of --------------------------------------------

    @precondition(lambda self: self.engine.can_admit())
    @rule(number=NUMBERS)
    def admit(self, number: int) -> None:
        """A new request."""
        self.perform("admit", number)

    @precondition(lambda self: self.engine.idle)
    @rule(number=NUMBERS)
    def append(self, number: int) -> None:
        """Decode."""
        self.perform("append", number)

    @precondition(lambda self: self.engine.idle)
    @rule(number=NUMBERS)
    def fill(self, number: int) -> None:
        """To the end of a block."""
        self.perform("fill", number)

    @precondition(lambda self: self.engine.idle)
    @rule(number=NUMBERS)
    def chunk(self, number: int) -> None:
        """Prefill."""
        self.perform("chunk", number)

    @precondition(lambda self: self.engine.idle)
    @rule(number=NUMBERS)
    def draft(self, number: int) -> None:
        """Tokens not verified yet."""
        self.perform("draft", number)

    @precondition(lambda self: self.engine.idle)
    @rule(number=NUMBERS)
    def rewrite(self, number: int) -> None:
        """Tokens written before."""
        self.perform("rewrite", number)

    @precondition(lambda self: self.engine.can_share_in_fill())
    @rule(number=NUMBERS)
    def share_in_fill(self, number: int) -> None:
        """A prefix that is being written."""
        self.perform("share_in_fill", number)

    @precondition(lambda self: self.engine.running)
    @precondition(lambda self: len(self.engine.step.reads) < MOST_READS)
    @rule(number=NUMBERS)
    def read(self, number: int) -> None:
        """Query tokens."""
        self.perform("read", number)

    @precondition(lambda self: self.engine.running)
    @precondition(lambda self: not self.engine.step.readbacks)
    @rule(number=NUMBERS)
    def read_back(self, number: int) -> None:
        """Keys and Values for the host."""
        self.perform("read_back", number)

    @precondition(lambda self: self.engine.ahead or self.engine.step.reads)
    @rule(number=NUMBERS, with_step=st.booleans())
    def close(self, number: int, with_step: bool) -> None:
        """The step that was planned; the next one gets its blocks as grants, or not."""
        self.perform("close", number)
        self.engine.with_step = with_step

    # --- events -------------------------------------------------------------------

    @precondition(lambda self: self.engine.idle)
    @rule(number=NUMBERS)
    def finish(self, number: int) -> None:
        """A request ends."""
        self.perform("finish", number)

    @precondition(lambda self: self.engine.sliding())
    @rule(number=NUMBERS)
    def release(self, number: int) -> None:
        """A window slides."""
        self.perform("release", number)

    @precondition(lambda self: self.engine.cached())
    @rule(number=NUMBERS)
    def evict(self, number: int) -> None:
        """Cached blocks go."""
        self.perform("evict", number)

    @precondition(lambda self: self.engine.unverified())
    @rule(number=NUMBERS)
    def confirm(self, number: int) -> None:
        """Drafts are verified."""
        self.perform("confirm", number)

    @precondition(lambda self: self.engine.world.plans)
    @rule(number=NUMBERS)
    def publish(self, number: int) -> None:
        """Copies are done."""
        self.perform("publish", number)

    @precondition(lambda self: len(self.engine.world.plans) > 1)
    @rule(number=NUMBERS)
    def publish_late(self, number: int) -> None:
        """Copies of any plan are done, or known to be done."""
        self.perform("publish_late", number)

    @precondition(lambda self: self.engine.world.plans)
    @rule(number=NUMBERS)
    def place_late(self, number: int) -> None:
        """Placements are asked for after the runtime has gone on."""
        self.perform("place_late", number)

    @precondition(lambda self: self.engine.world.stop is None)
    @rule(number=NUMBERS)
    def interrupt(self, number: int) -> None:
        """The next step will stop half way."""
        self.perform("interrupt", number)

    @precondition(lambda self: self.engine.world.runtime.placements.due)
    @precondition(lambda self: not self.engine.ahead)
    @rule()
    def restore(self) -> None:
        """The state is saved and loaded."""
        self.perform("restore_now", 0)

    # --- what should be refused ---------------------------------------------------

    @precondition(lambda self: self.engine.running)
    @rule(number=NUMBERS, with_step=st.booleans())
    def reject(self, number: int, with_step: bool) -> None:
        """An event out of the blue, or the step with something out of the blue."""
        self.perform("reject_step" if with_step else "reject", number)

    @precondition(lambda self: self.engine.can_share_in_fill())
    @precondition(lambda self: not self.engine.ahead)
    @rule(number=NUMBERS)
    def share_unfilled(self, number: int) -> None:
        """A sharer that leaves before the block is full."""
        self.perform("share_unfilled", number)

    @precondition(lambda self: self.engine.idle and not self.engine.ahead)
    @rule(number=NUMBERS)
    def overwrite(self, number: int) -> None:
        """What was written, though others may read it."""
        self.perform("overwrite", number)

    @precondition(lambda self: not self.engine.world.runtime.free_pairs)
    @precondition(lambda self: not self.engine.ahead)
    @rule(number=NUMBERS)
    def make_room(self, number: int) -> None:
        """Memory has run out."""
        self.perform("make_room", number)
