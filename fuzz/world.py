"""A runtime with all that watches it, and the one door through which it is driven.

`World.do` tries one event on the runtime. What is carried out must be allowed by the
specification, what is refused must be refused by it too and leave no trace; with a
device, every stream of every step is executed over tags and proved term by term. The
drivers, the stateful machine and the replay of event files all come through here, so
that they check the same and can hand cases to each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, Literal, Protocol

import attrs

from fuzz.attribution import Attributed
from fuzz.questions import check_answers
from fuzz.refinement import Refinement, RefinementError
from fuzz.rehearsal import check_refusal, reason
from fuzz.runs import accumulators, runs_due
from fuzz.schedules import schedule_of
from patton.commands import CommandStream, Op, Phase
from patton.device.provenance import Fault, StreamValidator
from patton.device.provenance.tags import ZERO, Ledger
from patton.errors import (
    ExecutionError,
    InconsistencyError,
    OutOfPairsError,
    PattonError,
    StaleBindingError,
    StepOrderError,
    ValidationError,
)
from patton.generate import generate_step
from patton.runtime import Runtime
from patton.steps import PlacedStep, Step, StepPlan

Event = tuple[str, tuple[Any, ...]]
Level = Literal["touched", "everything"]

FULL_CHECK_EVERY = 100  # steps, at level "touched"
PLANS_KEPT = 16  # that may still be published

# What a stream of a phase is for, and so what it breaks when it is wrong.
CLAUSE_OF_PHASE: Mapping[str, str] = {
    Phase.KEY_WRITE: "CMD-WRITE",
    Phase.VALUE_WRITE: "CMD-WRITE",
    Phase.COMMIT: "CMD-COMMIT",
    Phase.QK: "CMD-SCORES",
    Phase.SV: "CMD-SUMS",
    Phase.PARTIAL: "CMD-SUMS",
    Phase.READ_KEY: "CMD-READBACK",
    Phase.READ_VALUE: "CMD-READBACK",
    "step": "STEP-ORDER",
}

FILLED_IN = Ledger().describe(ZERO)  # what must be in a lane without a token


@attrs.define
class FailureError(Exception):
    """Something that the specification does not allow, with the clause it breaks."""

    clause: str
    what: str

    def __str__(self) -> str:
        return self.what


class Watcher(Protocol):
    """What wants to see a world's events, for instance to count situations."""

    def before(self, world: World, event: str, arguments: tuple[Any, ...]) -> None:
        """An event is about to be tried."""

    def after(
        self, event: str, arguments: tuple[Any, ...], plan: StepPlan | None
    ) -> None:
        """It was carried out."""

    def refused(
        self, event: str, arguments: tuple[Any, ...], error: PattonError
    ) -> None:
        """It was refused, rightly."""


@attrs.define(eq=False)
class World:
    """A runtime, the machine beside it, and perhaps a device.

    level: "touched" compares what an event touched, and everything now and then;
    "everything" compares everything at every step, and the stated choices as well.
    steps: calls of the runtime that it has carried out; refusals: by clause. plans: the
    latest ones, by number. written: the last step that wrote a block, by binding. stop:
    where the next step's last stream is to be
    interrupted, and whether its commits are then abandoned. latest: the last plan, and
    how many events there had been with it.
    """

    runtime: Runtime
    level: Level
    refinement: Refinement
    validator: StreamValidator | None = None
    watcher: Watcher | None = None
    log: list[Event] = attrs.field(factory=list)
    steps: int = 0
    refusals: Counter[str] = attrs.field(factory=Counter)
    plans: dict[int, StepPlan] = attrs.field(factory=dict)
    written: dict[tuple[int, ...], int] = attrs.field(factory=dict)
    stop: tuple[int, bool] | None = None
    latest: tuple[int, int] | None = None

    @classmethod
    def of(
        cls,
        runtime: Runtime,
        level: Level = "touched",
        *,
        device: bool = False,
        watcher: Watcher | None = None,
    ) -> World:
        """A fresh runtime, watched from now on."""
        kind = Attributed if level == "everything" else Refinement
        validator = StreamValidator.of(runtime.layout) if device else None
        refinement = kind.attach(runtime)
        return cls(runtime, level, refinement, validator, watcher)

    def do(self, event: str, *arguments: Any) -> bool:
        """Try an event; whether it was carried out. Raises FailureError."""
        self.log.append((event, arguments))
        try:
            return self._do(event, arguments)
        except FailureError:
            raise
        except Exception as error:
            raise FailureError(clause_of(error), _words(error)) from error

    def _do(self, event: str, arguments: tuple[Any, ...]) -> bool:
        every = self.level == "everything"
        snapshot = self.runtime.snapshot() if every else None
        if self.watcher is not None:
            self.watcher.before(self, event, arguments)
        plan = None
        try:
            if event in OWN_EVENTS:
                getattr(self, f"_{event}")(*arguments)
            elif event == "step":
                plan = self.runtime.apply_step(*arguments)
            else:
                getattr(self.runtime, event)(*arguments)
        except PattonError as error:
            self._refused(event, arguments, snapshot)
            if isinstance(error, OutOfPairsError) and event != "step":
                first = tuple(islice(self.runtime.eviction_candidates(), 4))
                if error.candidates != first:
                    what = f"candidates named are {error.candidates}, not {first}"
                    raise FailureError("LIFE-OLDEST", what) from error
            if self.watcher is not None:
                self.watcher.refused(event, arguments, error)
            return False
        self.steps += event not in {"interrupt", "place_late"}
        if plan is not None:
            self._check_step(arguments[0], plan)
        if every or self.steps % FULL_CHECK_EVERY == 0:
            self.check()
        if self.watcher is not None:
            self.watcher.after(event, arguments, plan)
        return True

    def _refused(self, event: str, arguments: tuple[Any, ...], before: object) -> None:
        if event in OWN_EVENTS:
            clause = "LIFE-SAME" if event == "restore" else "LIFE-OPEN"
            raise FailureError(clause, f"{event}{arguments} is refused")
        if before is not None and self.runtime.snapshot() != before:
            raise FailureError("LIFE-ATOMIC", f"{event} is refused and leaves a trace")
        if before is None:  # traces are found by the next full check
            found = reason(self.refinement, event, arguments)
            if found is None:
                raise FailureError("LIFE-OPEN", f"{event}{arguments} is refused")
            self.refusals[found.clause] += 1
            return
        try:
            refused = check_refusal(self.refinement, event, arguments)
            check_answers(self.refinement)
        except RefinementError as error:
            late = error.event.startswith("refused")
            raise FailureError(
                "LIFE-ATOMIC" if late else error.clause, str(error)
            ) from (error)
        self.refusals[refused.clause] += 1

    def check(self) -> None:
        """Everything, now. Raises what its parts raise."""
        self.refinement.check()
        self.runtime.check()
        if self.level == "everything":
            check_answers(self.refinement)

    # --- events beyond the runtime's own ------------------------------------------

    def _publish(self, number: int) -> None:
        """All commits of a plan whose copies are done.

        Those of blocks that were bound anew or written since stay, and no others.
        """
        if number not in self.plans:
            return
        plan, state = self.plans[number], self.runtime.placements
        stale = [c.block for c in plan.commits if state.epoch[c.block] != c.epoch]
        slots = [state.slot[block] for block in stale]
        due = {c.block for c in plan.commits if c.block in state.due}
        self.runtime.publish(plan)
        if slots != [state.slot[block] for block in stale]:
            raise FailureError("STEP-STALE", f"plan {number} publishes blocks {stale}")
        for block in due:
            written = self.written.get((block, state.epoch[block]), -1)
            if (written <= number) != (block not in state.due):
                word = "keeps" if block in state.due else "publishes"
                what = f"plan {number} {word} block {block}, written in {written}"
                raise FailureError("LIFE-PUBLISH", what)

    def _place_late(self, number: int) -> None:
        """Ask a plan for its placements when more has happened since."""
        if number not in self.plans:
            return
        plan = attrs.evolve(self.plans[number], placed=None)
        state, bindings = self.runtime.placements, [row[:2] for row in plan.rows]
        bindings += [commit[:2] for commit in plan.commits]
        stale = any(state.epoch[block] != epoch for block, epoch in bindings)
        try:
            plan.place()
        except StaleBindingError:
            clause = None if stale else "STEP-PLACED"
        except StepOrderError:
            clause = "STEP-STALE" if stale else None
        else:
            went_on = self.latest != (number, self.refinement.noted)
            clause = "STEP-STALE" if stale else "STEP-PLACED" if went_on else None
        if clause is not None:
            raise FailureError(clause, f"plan {number} is placed late")

    def _restore(self) -> None:
        """The state as plain data and back is the same state."""
        before = self.runtime.snapshot()
        self.runtime.restore(before)
        if self.runtime.snapshot() != before:
            raise FailureError("LIFE-SAME", "the state loaded is not the one saved")

    def _interrupt(self, index: int, abandon: bool) -> None:
        """The last stream of the next step stops before a command, counted round.

        Then the stream is repeated, or its commits are abandoned and not published.
        """
        self.stop = index, abandon

    # --- one engine step ----------------------------------------------------------

    def _check_step(self, step: Step, plan: StepPlan) -> None:
        self.refinement.check_plan(step, plan)
        if self.level == "everything" or self.validator is not None:
            self.refinement.check_placed(plan)
        self.written |= {row[:2]: plan.step for row in plan.rows}
        self.plans[plan.step] = plan
        self.latest = plan.step, self.refinement.noted
        if len(self.plans) > PLANS_KEPT:
            del self.plans[min(self.plans)]
        if self.validator is not None:
            self._execute(self.validator, plan)
        self.stop = None

    def _execute(self, validator: StreamValidator, plan: StepPlan) -> None:
        """What cannot be executed is found first, then too many runs, then sums."""
        placed = plan.place()
        generated = generate_step(placed, schedule=schedule_of(plan.step))
        try:
            self._validate(validator, placed, generated.present())
        except ValidationError:  # whose cause may be that there are too many
            _check_runs(placed, generated.sv)
            raise
        _check_runs(placed, generated.sv)

    def _validate(
        self,
        validator: StreamValidator,
        placed: PlacedStep,
        streams: Sequence[CommandStream],
    ) -> None:
        """Execute and prove the streams, the last one perhaps interrupted."""
        if self.stop is not None and streams:
            index, abandon = self.stop
            last = streams[-1]
            at = index % (int(last.command_offsets()[-1]) + 1)
            for stream in streams[:-1]:
                validator.check(placed, stream)
            validator.interrupt(placed, last, at)
            if abandon and last.phase == Phase.COMMIT:
                del self.plans[placed.step]
            else:
                validator.check(placed, last)
            return
        validator.check_step(placed, streams)


def _check_runs(placed: PlacedStep, sums: CommandStream | None) -> None:
    due = runs_due(placed)
    for op in (Op.WRBIAS, Op.RDMAC):
        if (found := accumulators(sums, op)) != due:
            what = f"{op.name} of {found} accumulators, of {due} runs"
            raise FailureError("CMD-RUNS", what)


OWN_EVENTS = {"publish": 1, "place_late": 1, "restore": 0, "interrupt": 2}


def clause_of(error: BaseException) -> str:
    """The clause that an error shows to be broken."""
    if isinstance(error, RefinementError):
        return error.clause
    if isinstance(error, ValidationError):
        if error.fault == Fault.OPERAND:
            return "CMD-BUFFER"
        if error.due == FILLED_IN:
            return "CMD-FIRST"
        return CLAUSE_OF_PHASE[error.phase]
    if isinstance(error, StepOrderError):
        return "STEP-PLACED"
    if isinstance(error, ExecutionError):
        return "DEV-PROTOCOL"
    if isinstance(error, InconsistencyError):
        return "LIFE-SAME"  # what follows from the facts would follow otherwise now
    return "LIFE-OPEN"  # it broke down over what no clause forbids


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
