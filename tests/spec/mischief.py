"""Events drawn with little regard for what is allowed, tried on runtime and machine.

What the runtime carries out must be allowed by the specification; what it refuses must
be refused by it too, and must leave no trace.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import numpy as np

from fuzz.refinement import Refinement
from fuzz.rehearsal import check_refusal
from patton.errors import PattonError
from patton.runtime import Runtime
from patton.steps import Request, Step, StepPlan


@attrs.define
class Mischief:
    """Draws events for a few requests and blocks, legal or not."""

    runtime: Runtime
    rng: np.random.Generator
    refinement: Refinement = attrs.field(init=False)
    plans: list[StepPlan] = attrs.field(factory=list)
    outcomes: Counter[str] = attrs.field(factory=Counter)

    def __attrs_post_init__(self) -> None:
        self.refinement = Refinement.attach(self.runtime)

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return int(self.rng.integers(limit))

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return bool(self.rng.random() < probability)

    def request(self) -> int:
        """Any of a few names, rather one that runs."""
        running = [*self.runtime.placements.requests]
        if running and self.chance(0.8):
            return int(running[self.below(len(running))])
        return self.below(4)

    def block(self, held_by: Request | None = None) -> int:
        """Any block, rather one in a request's table, or else an unbound one."""
        state = self.runtime.placements
        table = state.requests.get(held_by) if held_by is not None else None
        if table and table.blocks and self.chance(0.9):
            return table.blocks[self.below(len(table.blocks))]
        wanted = [b for b, g in enumerate(state.granule) if g < 0]
        if wanted and self.chance(0.9):
            return wanted[self.below(len(wanted))]
        return self.below(len(state.granule))

    def bound_block(self) -> int:
        """A bound block, rather one that is full or being filled."""
        state = self.runtime.placements
        size = self.runtime.layout.block_tokens
        bound = [*state.bound_blocks()]
        full = [b for b in bound if state.written[b] == size]
        wanted = full if full and self.chance(0.7) else bound
        return wanted[self.below(len(wanted))] if wanted else 0

    def event(self) -> None:
        """One event or step."""
        draw = self.below(100)
        if draw < 55:
            self.try_step()
        elif draw < 60 and self.plans:
            self.runtime.publish(self.plans[self.below(len(self.plans))])
        else:
            name, arguments = self.draw_event()
            self.attempt(name, arguments)

    def draw_event(self) -> tuple[str, tuple[Any, ...]]:
        """A single event."""
        names = ("bind", "share", "release", "evict", "finish", "confirm", "commit")
        name = names[self.below(len(names))]
        request = self.request()
        due = [*self.runtime.placements.due]
        match name:
            case "bind":
                return name, (request, self.block())
            case "share":
                return name, (self.below(6), self.bound_block())
            case "release":
                return name, (request, self.block(request))
            case "finish":
                return name, (request,)
            case "confirm":
                return name, (request, self.tokens_of(request) - self.below(3))
            case "commit" if due:
                return name, (due[self.below(len(due))],)
        return name, (self.bound_block(),)

    def tokens_of(self, request: Request) -> int:
        """How far a request is written."""
        running = self.runtime.placements.requests.get(request)
        return running.tokens if running else 0

    def try_step(self) -> None:
        """One engine step of random parts."""
        step = Step(finishes=[], releases=[], grants=[], writes=[], reads=[])
        if self.chance(0.2):
            step.finishes = [self.request()]
        if self.chance(0.2):
            request = self.request()
            step.releases = [(request, self.block(request))]
        if self.chance(0.1):
            step.evicts = [self.block(self.request())]
        for _ in range(self.below(3)):
            self.add_grant(step)
        for _ in range(self.below(4)):
            self.add_write(step)
        plan = self.attempt("step", (step,))
        if plan is not None:
            self.plans = [*self.plans[-2:], plan]

    def add_grant(self, step: Step) -> None:
        """New blocks for a request, perhaps after a prefix of bound ones."""
        running = self.runtime.placements.requests
        request = self.request()
        count = 0 if request in running else self.below(3)
        shares = [*{self.bound_block() for _ in range(count)}]
        binds = [*{self.block() for _ in range(self.below(3))}]
        step.grants = [*step.grants, (request, shares, binds)]

    def add_write(self, step: Step) -> None:
        """A write that goes on or rewrites, perhaps with drafts or a read."""
        size = self.runtime.layout.block_tokens
        tables = {r: [*q.blocks] for r, q in self.runtime.placements.requests.items()}
        tokens = {r: self.tokens_of(r) for r in tables}
        for r, shares, binds in step.grants:
            tables[r] = [*tables.get(r, []), *shares, *binds]
            tokens[r] = tokens.get(r, 0) + size * len(shares)
        if not tables:
            return
        request = [*tables][self.below(len(tables))]
        back = self.below(2 * size) if self.chance(0.3) else 0
        start = max(0, tokens[request] - back)
        room = max(1, len(tables[request]) * size - start)
        count = min(room, 1 + self.below(size)) if self.chance(0.6) else room
        if all(request != written for written, *_ in step.writes) or self.chance(0.05):
            step.writes = [*step.writes, (request, start, count)]
        if self.chance(0.3):
            step.drafts[request] = self.below(count + 1)
        if self.chance(0.5):
            end = start + count
            step.reads = [*step.reads, (request, self.below(end), end)]

    def attempt(self, name: str, arguments: tuple[Any, ...]) -> StepPlan | None:
        """Try an event; what happens must be what the specification says."""
        method = "apply_step" if name == "step" else name
        try:
            plan: StepPlan | None = getattr(self.runtime, method)(*arguments)
        except PattonError:
            refused = check_refusal(self.refinement, name, arguments)
            self.outcomes[f"refused: {refused.clause}"] += 1
            return None
        self.outcomes[name] += 1
        if plan is not None:
            self.refinement.check_plan(arguments[0], plan)
            self.refinement.check_placed(plan)
            if self.plans and self.chance(0.3):
                self.runtime.publish(self.plans[-1])
        return plan
