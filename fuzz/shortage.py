"""Memory runs out at every place where a run asks for some, one after the other.

A run of the driver is done again and again on a fresh runtime, each time with the next
of its requests for memory denied. Where no pair is to be had the event is refused, the
state is as it was, and the run goes on as if nothing had happened once there is one.
Where no slot is, nothing is refused: the first write goes to its O1V, every stream is
proved, and the run goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import attrs

from fuzz.driver import Case
from fuzz.files import Recorded
from fuzz.world import OWN_EVENTS, Event, FailureError, clause_of
from patton.commit_zone import NO_SLOT, CommitZone
from patton.device.provenance import StreamValidator
from patton.errors import OutOfPairsError, PattonError
from patton.events import runtime_from_header
from patton.generate import generate_step
from patton.pairs import PairPool
from patton.runtime import Runtime
from patton.steps import StepPlan

Denied = tuple[type, str, Any]  # whose method, its name, what it answers instead
NO_PAIR: Denied = (PairPool, "choose", None)
LEAST_PAIRS = 3
NO_SLOT_LEFT: Denied = (CommitZone, "take", NO_SLOT)


@attrs.define
class Denial:
    """Counts requests for memory; the one with number `at` is denied."""

    at: int
    asked: int = 0

    @contextmanager
    def of(self, denied: Denied) -> Iterator[None]:
        """Within, one request finds nothing."""
        owner, name, nothing = denied
        old: Callable[..., Any] = getattr(owner, name)

        def ask(*arguments: Any) -> Any:
            self.asked += 1
            return nothing if self.asked - 1 == self.at else old(*arguments)

        setattr(owner, name, ask)
        try:
            yield
        finally:
            setattr(owner, name, old)


@attrs.define(eq=False)
class Rerun:
    """The events of a run, done again on a fresh runtime."""

    runtime: Runtime
    validator: StreamValidator | None = None
    plans: dict[int, StepPlan] = attrs.field(factory=dict)

    @classmethod
    def of(cls, recorded: Recorded, *, device: bool = False) -> Rerun:
        """Nothing of it is done yet."""
        runtime = runtime_from_header(recorded.head)
        return cls(runtime, StreamValidator.of(runtime.layout) if device else None)

    def do(self, event: Event) -> None:
        """One event. Raises PattonError if it is refused."""
        name, arguments = event
        if name == "publish":
            plan = self.plans.get(arguments[0])
            if plan is not None:
                self.runtime.publish(plan)
        elif name == "step":
            plan = self.runtime.apply_step(*arguments)
            self.plans[plan.step] = plan
            if self.validator is not None:
                placed = plan.place()
                self.validator.check_step(placed, generate_step(placed).present())
        elif name not in OWN_EVENTS:
            getattr(self.runtime, name)(*arguments)

    def rest(self, events: Iterator[Event]) -> None:
        """All further events; those that the run refused are refused again."""
        for event in events:
            try:
                self.do(event)
            except PattonError as error:
                if clause_of(error) != "LIFE-OPEN":  # a stream, or the state, is wrong
                    raise


def starved(seed: int, steps: int) -> tuple[int, FailureError | None]:
    """A run of so many steps with each of its requests for memory denied in turn.

    Returns how many there were, and the failure if there is one.
    """
    case, denials = _roomy(seed), 0
    try:
        case.run(steps)
        recorded = Recorded.of(case.world)
        for denied, check in ((NO_PAIR, _without_pair), (NO_SLOT_LEFT, _without_slot)):
            for at in range(_asked(recorded, denied)):
                check(recorded, at)
                denials += 1
    except FailureError as failure:
        return denials, failure
    except Exception as error:  # noqa: BLE001
        what = f"after a denial: {type(error).__name__}: {error}"
        return denials, FailureError(clause_of(error), what)
    return denials, None


def _roomy(seed: int) -> Case:
    """A case with several pairs: each is a request for memory."""
    for number in count():
        case = Case.of(f"starved {seed}/{number}", "touched")
        if case.world.runtime.layout.pairs >= LEAST_PAIRS:
            return case
    raise AssertionError("cases never end")


def _asked(recorded: Recorded, denied: Denied) -> int:
    """How often a run asks for memory of a kind."""
    denial = Denial(-1)
    with denial.of(denied):
        Rerun.of(recorded).rest(iter(recorded.events))
    return denial.asked


def _without_pair(recorded: Recorded, at: int) -> None:
    whole, rerun, denial = Rerun.of(recorded), Rerun.of(recorded), Denial(at)
    whole.rest(iter(recorded.events))
    events = iter(recorded.events)
    for event in events:
        before = rerun.runtime.snapshot()
        with denial.of(NO_PAIR):
            refusal = _refusal(rerun, event)
        if denial.asked > at:
            break
    else:
        raise AssertionError("fewer requests than before")
    if not isinstance(refusal, OutOfPairsError):
        raise FailureError("LIFE-ATOMIC", f"no pair, but {event} gives {refusal}")
    if rerun.runtime.snapshot() != before:
        raise FailureError("LIFE-ATOMIC", f"no pair: {event} leaves a trace")
    rerun.runtime.check()
    rerun.rest(iter([event, *events]))
    if rerun.runtime.snapshot() != whole.runtime.snapshot():
        raise FailureError("LIFE-SAME", f"no pair: after {event} all is different")


def _refusal(rerun: Rerun, event: Event) -> PattonError | None:
    try:
        rerun.do(event)
    except PattonError as error:
        return error
    return None


def _without_slot(recorded: Recorded, at: int) -> None:
    rerun, denial = Rerun.of(recorded, device=True), Denial(at)
    with denial.of(NO_SLOT_LEFT):
        rerun.rest(iter(recorded.events))
    if denial.asked <= at:
        raise AssertionError("fewer requests than before")
    rerun.runtime.check()
