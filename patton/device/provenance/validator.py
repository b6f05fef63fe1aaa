"""The validator: every stream of every step, checked as it goes by."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from patton.arguments import expect
from patton.commands import CommandStream, Phase
from patton.device import protocol, rules
from patton.device.provenance.cells import check_read_back, check_writes, host_tags
from patton.device.provenance.contents import Contents, Identify, StepWrites
from patton.device.provenance.diagnosis import explain
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.reads import Runs, StepReads
from patton.device.provenance.results import first_wrong
from patton.device.provenance.run import execute
from patton.device.provenance.tables import check_frame, check_tables, frame_of
from patton.device.provenance.tags import Fault, Ledger
from patton.errors import StepOrderError, ValidationError
from patton.layout import Layout
from patton.steps import PlacedStep

# All writes come before all reads, and commits last (layout 4).
ORDER = (
    Phase.KEY_WRITE,
    Phase.VALUE_WRITE,
    Phase.READ_KEY,
    Phase.READ_VALUE,
    Phase.QK,
    Phase.SV,
    Phase.PARTIAL,
    Phase.COMMIT,
)
WRITES = (Phase.KEY_WRITE, Phase.VALUE_WRITE, Phase.COMMIT)
READ_BACKS = (Phase.READ_KEY, Phase.READ_VALUE)
VALUES = (Phase.SV, Phase.PARTIAL)


@attrs.define(eq=False)
class _Step:
    """A step under way: what it must write and, once that is written, read.

    is_verified: what is read was found to be what the step asks for.
    """

    placed: PlacedStep
    writes: StepWrites
    reads: StepReads
    identify: Identify | None
    is_verified: bool = False
    _runs: dict[Phase, Runs] = attrs.field(factory=dict)

    def phases(self) -> list[Phase]:
        """The phases that it needs."""
        due: list[Phase] = []
        if len(self.placed.write_granule):
            due += [Phase.KEY_WRITE, Phase.VALUE_WRITE]
        if len(self.placed.readback_request):
            due += READ_BACKS
        if len(self.placed.read_request):
            due.append(Phase.QK)
        due += [phase for phase in VALUES if len(self.runs(phase).place)]
        if len(self.placed.commit_granule):
            due.append(Phase.COMMIT)
        return due

    def runs(self, phase: Phase) -> Runs:
        """What is accumulated in SV or PARTIAL; no use for QK."""
        if phase not in self._runs:
            self._runs[phase] = self.reads.runs(in_slots=phase == Phase.PARTIAL)
        return self._runs[phase]


@attrs.define(eq=False)
class StreamValidator:
    """Proves of every stream of a run that it does what its step asks for.

    It must see all steps of the run, in order. streams, commands: proved so far, single
    commands, multicasts counted once. After an error it is of no more use.
    """

    layout: Layout
    memory: TagMemory
    contents: Contents
    ledger: Ledger = attrs.field(factory=Ledger)
    streams: int = 0
    commands: int = 0
    _step: _Step | None = None
    _last: int | None = None

    @classmethod
    def of(cls, layout: Layout) -> StreamValidator:
        """A validator of a run on a device to which nothing was written yet."""
        expect("StreamValidator.of", "layout", layout, Layout)
        return cls(layout, TagMemory(frame_of(layout)), Contents.of(layout))

    def check_step(
        self,
        placed: PlacedStep,
        streams: Sequence[CommandStream],
        identify: Identify | None = None,
    ) -> None:
        """Check all streams of a step, in the order of their execution.

        identify: who a token is, where the engine can tell; else a token is known by
        where and when it was written. Raises ValidationError, and what executors raise.
        """
        step = self._begin(placed, identify)
        phases = [stream.phase for stream in streams]
        order = [ORDER.index(phase) for phase in phases]
        if order != sorted(set(order)):
            raise _wrong_phases(placed, phases, Fault.ORDER, "each once, in order")
        missing = [phase for phase in step.phases() if phase not in phases]
        if missing:
            raise _wrong_phases(placed, phases, Fault.MISSING, f"{missing[0]} too")
        for stream in streams:
            self._check(step, stream)

    def check(
        self,
        placed: PlacedStep,
        stream: CommandStream,
        identify: Identify | None = None,
    ) -> None:
        """Check one stream of a step, those before it being checked."""
        self._check(self._begin(placed, identify), stream)

    def interrupt(
        self,
        placed: PlacedStep,
        stream: CommandStream,
        stop: int,
        identify: Identify | None = None,
    ) -> None:
        """Follow a stream that stops before one of its commands, and check nothing.

        The step may then be repeated, or abandoned.
        """
        step = self._begin(placed, identify)
        self._examine(step, stream)
        if stream.phase in WRITES:
            payload = host_tags(stream, step.writes, self.ledger, placed)
            execute(self.memory, stream, payload, stop)

    def _begin(self, placed: PlacedStep, identify: Identify | None) -> _Step:
        """The step; if it is repeated, its tokens are the same as before."""
        if self._step is None or self._step.placed is not placed:
            writes = StepWrites.of(self.contents, self.ledger, placed, identify)
            reads = StepReads.of(self.contents, placed)
            self._step = _Step(placed, writes, reads, identify)
        return self._step

    def _examine(self, step: _Step, stream: CommandStream) -> None:
        """The stream is of the step and of this device, which can obey it."""
        placed, device = step.placed, self.layout.device
        rules.check_step(stream, 0, self._last)
        if stream.step != placed.step:
            raise StepOrderError(stream.step, placed.step)
        check_frame(stream, self.layout)
        rules.check_frame(stream, device, 0)
        check_tables(stream, placed)
        protocol.check(stream, device)
        self._last = stream.step

    def _check(self, step: _Step, stream: CommandStream) -> None:
        self._examine(step, stream)
        if stream.phase in WRITES:
            check_writes(stream, self.memory, step.writes, self.ledger, step.placed)
            step.writes.carry_out(stream.phase)
        else:
            self._check_reads(step, stream)
        self.streams += 1
        self.commands += int(stream.command_offsets()[-1])

    def _check_reads(self, step: _Step, stream: CommandStream) -> None:
        if not step.is_verified:
            step.reads.verify(self.ledger, step.identify)
            step.is_verified = True
        if stream.phase in READ_BACKS:
            check_read_back(stream, self.memory, self.ledger, step.reads)
            return
        runs = step.runs(stream.phase)
        output = first_wrong(stream, self.memory, step.reads, runs)
        if output is not None:
            raise explain(stream, self.memory, self.ledger, step.reads, runs, output)


def _wrong_phases(
    placed: PlacedStep, phases: Sequence[Phase], fault: Fault, due: str
) -> ValidationError:
    found = ", ".join(phases) or "none"
    output = "the streams of the step"
    return ValidationError(
        "step", placed.step, 0, 0, "no command", output, fault, found, due
    )
