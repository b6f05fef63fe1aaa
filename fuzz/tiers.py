"""What the commands do, in pieces for several processes, and put together again.

A piece is told by a seed, so that a run in two processes is the run in one of them with
two seeds, one after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

import attrs

from fuzz.bugs import catalogue, hunt
from fuzz.driver import Volume, drive
from fuzz.files import Recorded
from fuzz.machine import PlacementMachine
from fuzz.processes import processes
from fuzz.situations import counting
from fuzz.targets import Outcome, run_machine
from fuzz.world import Level

P = TypeVar("P")
R = TypeVar("R")


def over(jobs: int, work: Callable[[P], R], pieces: Iterable[P]) -> list[R]:
    """The results of all pieces, in their order."""
    if jobs == 1:
        return [work(piece) for piece in pieces]
    with processes(jobs) as pool:
        return [*pool.map(work, pieces)]


@attrs.frozen
class Ran:
    """How a piece of driving went, without the objects that it was done with.

    counts: of situations, where they were counted. seconds: of processor time.
    """

    steps: int
    refused: int
    cases: int
    seconds: float
    counts: Counter[str]
    failures: tuple[Outcome, ...]

    @classmethod
    def of(cls, seed: str, done: Volume, counts: Counter[str]) -> Ran:
        """A run, and what it has left."""
        failures: tuple[Outcome, ...] = ()
        if done.failure is not None and done.failed is not None:
            recorded = Recorded.of(done.failed.world)
            found = done.failure
            name = f"driver-{seed.replace('/', '-')}"
            failures = (Outcome(name, 0, done.steps, done.seconds, found, recorded),)
        facts = done.steps, done.refused, done.cases, done.seconds
        return cls(*facts, counts, failures)

    @classmethod
    def together(cls, parts: Iterable[Ran]) -> Ran:
        """All pieces as one."""
        parts = [*parts]
        return cls(
            sum(part.steps for part in parts),
            sum(part.refused for part in parts),
            sum(part.cases for part in parts),
            sum(part.seconds for part in parts),
            sum((part.counts for part in parts), Counter[str]()),
            tuple(failure for part in parts for failure in part.failures),
        )

    def __str__(self) -> str:
        rate = self.steps / max(self.seconds, 1e-9)
        done = f"{self.steps} steps of {self.cases} cases, {self.refused} refused"
        return f"{done}, {rate:.0f} a second of one core, {len(self.failures)} failures"


def shares(whole: int, jobs: int) -> list[int]:
    """A number of things, divided; none is left without any."""
    jobs = min(jobs, whole)
    return [whole // jobs + (index < whole % jobs) for index in range(jobs)]


Driven = tuple[str, int, Level, bool]


def driven(piece: Driven) -> Ran:
    """The driver for some steps; whether situations are counted is said last."""
    seed, steps, level, counted = piece
    watcher = counting() if counted else None
    done = drive(seed, steps, level, watcher=watcher)
    return Ran.of(seed, done, watcher.counts if watcher else Counter())


def drive_all(
    seed: int, steps: int, jobs: int, level: Level = "touched", *, counted: bool = False
) -> Ran:
    """The driver in several processes."""
    pieces: list[Driven] = [
        (f"{seed}" if jobs == 1 else f"{seed}/{job}", share, level, counted)
        for job, share in enumerate(shares(steps, jobs))
    ]
    return Ran.together(over(jobs, driven, pieces))


@attrs.frozen
class Verdict:
    """Of one seeded bug, whether it was caught as it should be."""

    name: str
    clause: str | None
    steps: int
    caught: bool

    @property
    def good(self) -> bool:
        """Caught by its clause, or not at all where there is none."""
        return self.caught == (self.clause is not None)

    def __str__(self) -> str:
        word = "caught" if self.caught else "survived"
        mark = "" if self.good else "  WRONG"
        return f"{self.clause or '-':13} {self.steps:6} {word:8} {self.name}{mark}"


def hunted(name: str) -> Verdict:
    """The verdict on a bug of the catalogue."""
    planted = catalogue()[name]
    found = hunt(planted)
    return Verdict(name, planted.clause, found.steps, found.caught)


@attrs.frozen
class Rules:
    """How the stateful machine did: rules drawn and carried out, by name."""

    tried: Counter[str]
    done: Counter[str]
    seconds: float
    failures: tuple[Outcome, ...]

    @classmethod
    def together(cls, parts: Iterable[Rules]) -> Rules:
        """All pieces as one."""
        parts = [*parts]
        return cls(
            sum((part.tried for part in parts), Counter[str]()),
            sum((part.done for part in parts), Counter[str]()),
            sum(part.seconds for part in parts),
            tuple(failure for part in parts for failure in part.failures),
        )


def machined(piece: tuple[int, int]) -> Rules:
    """The stateful machine from a seed, for some examples."""
    seed, examples = piece
    tried, done = PlacementMachine.tried.copy(), PlacementMachine.done.copy()
    outcome = run_machine(seed, examples)
    tried, done = PlacementMachine.tried - tried, PlacementMachine.done - done
    return Rules(tried, done, outcome.seconds, (outcome,) if outcome.failure else ())
