"""PATTON itself, behind the interface of the systems it is compared with (Paper 4).

The runtime is the memory; this module only gives it the others' form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import attrs

from patton.commands import Phase
from patton.config import DeviceConfig, ModelConfig
from patton.device import ReferenceDevice
from patton.executor import Executor
from patton.generate import PAPER, Schedule, StepStreams, best_schedule, generate_step
from patton.layout import Layout
from patton.pairs import Choice
from patton.requests import UNBOUND
from patton.runtime import Runtime
from patton.steps import PlacedStep, Request, Step, StepPlan
from patton.systems.counts import counts_of
from patton.systems.system import Claim, Counts, Declaration, System, Usage, choice

ScheduleName = Literal["paper", "head", "pin"]

DECLARATION = Declaration(
    title="PATTON",
    year=2026,
    owner="block",
    unit="a block of 16 tokens, in a pair owned by a request",
    mapping="paper",
    claims=(
        Claim("paper", "Keys and Values in Case Ch to C, partial blocks in one row"),
        Claim("paper", "pairs of 16 blocks, each of one request at a time"),
        Claim("inference", "adoption: a request fills on the pair its hit ends in"),
    ),
)


@attrs.frozen(eq=False)
class PattonStep:
    """A placed step of PATTON's runtime, and the plan it came from."""

    plan: StepPlan
    placed: PlacedStep
    schedule: Schedule

    @property
    def requests(self) -> tuple[Request, ...]:
        """See `patton.systems.system.PlacedStep`."""
        return self.placed.requests

    def streams(self) -> StepStreams:
        """See `patton.systems.system.PlacedStep`."""
        return generate_step(self.placed, schedule=self.schedule)

    def counts(self) -> dict[Phase, Counts]:
        """Of the streams: rows opened depend on the whole order of a schedule.

        Making them takes some milliseconds, which is what counting costs elsewhere.
        """
        burst_bytes = self.placed.layout.device.burst_bytes
        return counts_of(self.streams().present(), burst_bytes)


@attrs.define(eq=False)
class PattonMemory:
    """PATTON's runtime as a `patton.systems.system.Memory`."""

    device: DeviceConfig
    model: ModelConfig
    layout: Layout
    runtime: Runtime
    schedule: Schedule
    caches: bool = True

    @property
    def block_tokens(self) -> int:
        """Tokens of an engine block."""
        return self.layout.block_tokens

    @property
    def blocks(self) -> int:
        """One id for each granule index."""
        return self.layout.granules

    @property
    def pair_blocks(self) -> int:
        """Blocks of a pair."""
        return self.layout.pair_blocks

    @property
    def longest(self) -> int:
        """The whole device: nothing else limits a request."""
        return self.layout.tokens

    def share(self, request: Any, block: int) -> None:
        """See `Memory`."""
        self.runtime.share(request, block)

    def bind(self, request: Any, block: int) -> None:
        """See `Memory`."""
        self.runtime.bind(request, block)

    def evict(self, block: int) -> None:
        """See `Memory`."""
        self.runtime.evict(block)

    def finish(self, request: Any) -> None:
        """See `Memory`."""
        self.runtime.finish(request)

    def bindable(self, request: Any, shares: Sequence[int] = ()) -> int:
        """See `Memory`."""
        return self.runtime.bindable(request, shares)

    def eviction_candidates(self) -> Iterator[int]:
        """See `Memory`."""
        return self.runtime.eviction_candidates()

    def blocks_of_pair(self, pair: int) -> Sequence[int]:
        """See `Memory`."""
        return self.runtime.blocks_of_pair(pair)

    @property
    def evictable_pairs(self) -> int:
        """See `Memory`."""
        return self.runtime.evictable_pairs

    def admit(self, request: Any, blocks: int) -> bool:
        """See `Memory`."""
        return blocks <= self.runtime.bindable(request)

    def apply(self, step: Step) -> PattonStep:
        """See `Memory`."""
        plan = self.runtime.apply_step(step)
        return PattonStep(plan, plan.place(), self.schedule)

    @property
    def unit(self) -> None:
        """None: the device's own serves."""

    def executor(self) -> Executor:
        """See `Memory`."""
        return ReferenceDevice(self.device)

    def publish(self, placed: PattonStep) -> None:
        """See `Memory`."""
        self.runtime.publish(placed.plan)

    def usage(self) -> Usage:
        """See `Memory`. What a pair has left is its owner's."""
        state, layout = self.runtime.placements, self.layout
        bound = [block for block, at in enumerate(state.granule) if at != UNBOUND]
        taken = (layout.pairs - self.runtime.free_pairs) * layout.pair_blocks
        return Usage(
            units=layout.granules,
            used=taken,
            tokens_held=sum(state.written[block] for block in bound),
            tokens_reserved=taken * layout.block_tokens,
        )


def patton(
    name: str = "patton",
    *,
    adoption: bool = False,
    pairs: Choice = "packed",
    commit_zone: bool = True,
    o2: bool = True,
    pair_blocks: int | None = None,
    schedule: ScheduleName = "paper",
) -> System:
    """PATTON. Raises ConfigError.

    adoption, pairs, commit_zone: of the runtime; o2: False for whole Value row sets
    (Paper 5.4); pair_blocks: of a pair, None for the layout's own; schedule: the
    paper's, or what takes least cycles on a variant of the device's timing.
    """
    choice(name, "pairs", pairs, ("packed", "spread"))
    choice(name, "schedule", schedule, ("paper", "head", "pin"))

    def make(device: DeviceConfig, model: ModelConfig) -> PattonMemory:
        layout = Layout.of(device, model, pair_blocks=pair_blocks)
        if not o2:
            whole = layout.stripes * layout.values_per_set
            layout = Layout.of(device, model, pair_blocks=whole)
        runtime = Runtime.of(
            layout, choice=pairs, adoption=adoption, commit_zone=commit_zone
        )
        order = PAPER
        if schedule != "paper":
            order = best_schedule(device.name, schedule)
        return PattonMemory(device, model, layout, runtime, order)

    options = {
        "adoption": adoption,
        "pairs": pairs,
        "commit_zone": commit_zone,
        "o2": o2,
        "pair_blocks": pair_blocks,
        "schedule": schedule,
    }
    return System(name, DECLARATION, options, make)
