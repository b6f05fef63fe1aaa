"""The fast driver: seeded runs of the same operations, without hypothesis.

A run is a sequence of cases. A case is a geometry and options drawn at random, with
weights of its own for the operations, so that some cases hardly ever publish and others
hardly ever evict. Everything follows from one seed and the number of the case.

A step is one call of the runtime that it carries out: an event of a block's life, a
publication, or an engine step with all of its writes and reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, count
from random import Random
from time import process_time
from typing import Any

import attrs
import numpy as np

from fuzz.engine import EVENTS, PLANNED, Engine
from fuzz.world import FailureError, Level, Watcher, World
from patton.config import CommitWay
from patton.layout import Layout
from patton.runtime import Runtime
from tests.core.strategies import random_layout

CASE_STEPS = 500
# Some engines publish late and preempt often, so that blocks end in their slots.
LAZY = {"publish": 0.7, "publish_late": 0.3, "commit": 0.3, "finish": 5}
WAYS: tuple[CommitWay, ...] = ("host", "read-back", "global-buffer")


def layout_of(rng: Random) -> Layout:
    """Any small layout, any way to commit, masks or none, one or more registers."""
    way = WAYS[rng.randrange(3)]
    return random_layout(
        np.random.default_rng(rng.getrandbits(32)),
        commit_way=way,
        copy_column="free" if way == "global-buffer" else "same",
        write_masks=rng.random() < 0.75,
        result_registers=1 + rng.randrange(8),
    )


def runtime_of(rng: Random, layout: Layout) -> Runtime:
    """A runtime with any options and some more ids than places."""
    return Runtime.of(
        layout,
        blocks=layout.granules + rng.randrange(4),
        choice="packed" if rng.random() < 0.3 else "spread",
        adoption=rng.random() < 0.85,
        commit_zone=rng.random() < 0.85,
    )


def weighted(
    rng: Random, weights: Mapping[str, float]
) -> tuple[list[str], list[float]]:
    """Names and cumulative weights: each its own times something from 1/4 to 4."""
    drawn = [weight * 4 ** rng.uniform(-1, 1) for weight in weights.values()]
    return [*weights], [*accumulate(drawn)]


@attrs.define(eq=False)
class Case:
    """One geometry, driven for some steps."""

    rng: Random
    engine: Engine
    planned: tuple[list[str], list[float]]
    events: tuple[list[str], list[float]]

    @classmethod
    def of(
        cls,
        name: str,
        level: Level = "touched",
        *,
        device: bool = False,
        watcher: Watcher | None = None,
    ) -> Case:
        """The case with a name, which is its seed."""
        rng = Random(name)
        runtime = runtime_of(rng, layout_of(rng))
        world = World.of(runtime, level, device=device, watcher=watcher)
        engine = Engine(world, below(rng))
        events = EVENTS | LAZY if rng.random() < 0.3 else EVENTS
        return cls(rng, engine, weighted(rng, PLANNED), weighted(rng, events))

    @property
    def world(self) -> World:
        """What is driven."""
        return self.engine.world

    def turn(self) -> None:
        """One engine step, or something between two. Raises FailureError."""
        rng, engine = self.rng, self.engine
        if rng.random() < 0.5:
            self._one(self.events)
            return
        engine.with_step = rng.random() < 0.4
        for _ in range(rng.randrange(3) if engine.with_step else 0):
            self._one(self.events)
        for _ in range(rng.randrange(5)):
            self._one(self.planned)
        if not engine.close():
            engine.make_room()

    def _one(self, drawn: tuple[list[str], list[float]]) -> None:
        names, weights = drawn
        (name,) = self.rng.choices(names, cum_weights=weights)
        getattr(self.engine, name)()

    def run(self, steps: int, until: float = float("inf")) -> None:
        """Turns until the world has carried out so many steps, or processor time ends.

        Raises FailureError.
        """
        turns = 0
        while self.world.steps < steps and turns < 4 * steps:
            self.turn()
            turns += 1
            if process_time() > until:
                break
        self.world.check()


def below(rng: Random) -> Callable[[int], int]:
    """A choice from a generator, several times as fast as `Random.randrange`."""
    uniform = rng.random
    return lambda limit: int(uniform() * limit)


@attrs.define
class Volume:
    """How a run went. failure: the first, with the case that had it."""

    steps: int = 0
    refused: int = 0
    cases: int = 0
    seconds: float = 0.0
    failure: FailureError | None = None
    failed: Case | None = None

    @property
    def per_second(self) -> float:
        """Steps a second of one core."""
        return self.steps / max(self.seconds, 1e-9)

    def facts(self) -> dict[str, Any]:
        """For people and for the ledger."""
        return {
            "steps": self.steps,
            "refused": self.refused,
            "cases": self.cases,
            "steps_per_second": round(self.per_second),
            "failures": int(self.failure is not None),
        }


def cases(
    seed: int | str,
    level: Level,
    *,
    device: bool = False,
    watcher: Watcher | None = None,
) -> Iterator[Case]:
    """The cases of a seed, one after the other, for ever."""
    for number in count():
        yield Case.of(f"{seed}/{number}", level, device=device, watcher=watcher)


def drive(
    seed: int | str,
    steps: int,
    level: Level = "touched",
    *,
    device: bool = False,
    watcher: Watcher | None = None,
    seconds: float = float("inf"),
) -> Volume:
    """Cases until so many steps are carried out, the time is up, or one fails."""
    volume, begun = Volume(), process_time()
    for case in cases(seed, level, device=device, watcher=watcher):
        try:
            case.run(min(CASE_STEPS, steps - volume.steps), begun + seconds)
        except FailureError as failure:
            volume.failure, volume.failed = failure, case
        volume.steps += case.world.steps
        volume.refused += case.world.refusals.total()
        volume.cases += 1
        volume.seconds = process_time() - begun
        if volume.failure or volume.steps >= steps or volume.seconds >= seconds:
            return volume
    raise AssertionError("cases never end")
