"""What can be fuzzed: every target by name, each a function of a seed and a time.

`canary` must fail: it runs a planted bug, so that a campaign which finds nothing wrong
with it is known to be unable to find anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import attrs
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from fuzz import bytes_target
from fuzz.bugs import catalogue
from fuzz.driver import Volume, drive
from fuzz.files import Recorded, minimal
from fuzz.machine import PlacementMachine
from fuzz.maps import broken_by
from fuzz.serving import serve, serve_after_others
from fuzz.shortage import starved
from fuzz.world import FailureError

CANARY = "slots though they are switched off"
SERVED_STEPS = 20
STARVED_STEPS = 60


@attrs.frozen
class Outcome:
    """How a target did. recorded: events that lead to the failure, if it has any."""

    target: str
    seed: int
    steps: int
    seconds: float
    failure: FailureError | None = None
    recorded: Recorded | None = None

    def row(self) -> dict[str, Any]:
        """For the ledger."""
        found = self.failure
        return {
            "target": self.target,
            "seed": self.seed,
            "steps": self.steps,
            "seconds": round(self.seconds, 2),
            "failure": {"clause": found.clause, "what": str(found)[:300]}
            if found
            else None,
        }

    def save(self, folder: Path) -> Path | None:
        """The minimal file of a failure, if there is one to be made."""
        if self.failure is None or self.recorded is None:
            return None
        path = folder / f"{self.target}-{self.failure.clause}-{self.seed}.jsonl"
        least = minimal(self.recorded, self.failure.clause)
        least.write(path, self.failure)
        return path


Target = Callable[[int, float], Outcome]
TARGETS: dict[str, Target] = {}


def target(run: Target) -> Target:
    """Register a target under its function's name."""
    TARGETS[run.__name__] = run
    return run


def _driven(name: str, number: int, volume: Volume) -> Outcome:
    recorded = Recorded.of(volume.failed.world) if volume.failed else None
    return Outcome(name, number, volume.steps, volume.seconds, volume.failure, recorded)


UNBOUNDED = 10**12


@target
def touched(number: int, seconds: float) -> Outcome:
    """The driver; what each step touched is compared."""
    volume = drive(f"touched {number}", UNBOUNDED, seconds=seconds)
    return _driven("touched", number, volume)


@target
def everything(number: int, seconds: float) -> Outcome:
    """The driver; everything is compared at every step, stated choices as well."""
    volume = drive(f"all {number}", UNBOUNDED, "everything", seconds=seconds)
    return _driven("everything", number, volume)


@target
def streams(number: int, seconds: float) -> Outcome:
    """The driver with a device: every stream is proved over tags."""
    name = f"streams {number}"
    volume = drive(name, UNBOUNDED, "everything", device=True, seconds=seconds)
    return _driven("streams", number, volume)


@target
def machine(number: int, seconds: float) -> Outcome:
    """The stateful machine of hypothesis."""
    ran, following = Outcome("machine", number, 0, 0.0), number
    while ran.failure is None and ran.seconds < seconds:
        more = run_machine(following, 20)
        steps, spent = ran.steps + more.steps, ran.seconds + more.seconds
        ran = attrs.evolve(more, seed=number, steps=steps, seconds=spent)
        following += 1_000_003
    return ran


def run_machine(number: int, examples: int, steps: int = 100) -> Outcome:
    """The stateful machine for some examples."""
    begun, before, failure = process_time(), PlacementMachine.done.total(), None
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    try:
        run_state_machine_as_test(seed(number)(PlacementMachine), settings=chosen)
    except FailureError as found:
        failure = found
    done, world = PlacementMachine.done.total() - before, PlacementMachine.latest
    recorded = Recorded.of(world) if failure and world else None
    spent = process_time() - begun
    return Outcome("machine", number, done, spent, failure, recorded)


@target
def served(number: int, seconds: float) -> Outcome:
    """An engine with data on two devices; each output is compared in every bit."""
    return _cases("served", number, seconds, partial(serve, steps=SERVED_STEPS))


@target
def alone(number: int, seconds: float) -> Outcome:
    """The same on a device that others have used."""
    search = partial(serve_after_others, steps=SERVED_STEPS)
    return _cases("alone", number, seconds, search)


@target
def shortage(number: int, seconds: float) -> Outcome:
    """Runs in which memory is denied, at each request for it in turn."""
    return _cases("shortage", number, seconds, partial(starved, steps=STARVED_STEPS))


@target
def maps(number: int, seconds: float) -> Outcome:
    """Small layouts, place by place."""

    def search(seed: int) -> tuple[int, FailureError | None]:
        return 1, next(iter(broken_by(seed)), None)

    return _cases("maps", number, seconds, search)


def _cases(
    name: str,
    number: int,
    seconds: float,
    search: Callable[[int], tuple[int, FailureError | None]],
) -> Outcome:
    """Seeds of a target, one after the other; nothing is recorded of a failure."""
    begun, steps, case, failure = process_time(), 0, 0, None
    while failure is None and process_time() - begun < seconds:
        taken, failure = search(number * 100_003 + case)
        steps, case = steps + taken, case + 1
    return Outcome(name, number, steps, process_time() - begun, failure)


@target
def readers(number: int, seconds: float) -> Outcome:
    """Damaged event files, traces and workloads: read, or refused with an error."""
    begun = process_time()
    tried, failure = bytes_target.mutate(number, seconds)
    return Outcome("readers", number, tried, process_time() - begun, failure)


def canary(number: int, seconds: float) -> Outcome:
    """The driver with a planted bug; must fail."""
    with catalogue()[CANARY].planted():
        name = f"canary {number}"
        volume = drive(name, UNBOUNDED, "everything", seconds=seconds)
        return _driven("canary", number, volume)
