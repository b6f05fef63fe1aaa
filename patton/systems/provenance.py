"""Every stream of any system, executed over tags and proved term by term.

In place of a number every lane of a layer of the device holds a tag: which element of
whose Key or Value. Nothing here knows an address map. What a system wrote is proved by
what it reads: a score is the products of the elements of one Key with those of one
query, each once; an output is the products of an element of all visible Values with
their weights, each once; nothing else is added to either. A map that puts something to
the wrong place, or two things to one place, ends in a foreign or missing term, and so
does a row, a column or a Global Buffer left over from others.

`patton.device.provenance` asks more of PATTON's streams: that every lane is where the
address map has it, and that sums are in order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from patton.commands import CommandStream, Frame, Op, Phase
from patton.config import DeviceConfig, ModelConfig
from patton.device import protocol, rules
from patton.device.cells import Ints
from patton.device.provenance.faults import fault_at
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.run import Data, data_of, execute
from patton.device.provenance.tags import NOBODY, Fault, Kind, tags_of
from patton.errors import ValidationError
from patton.steps import Request, Step
from patton.systems.maps import spread_of, whole_frame
from patton.systems.outer import OuterUnit, check_outer
from patton.systems.outer_terms import check_outer_outputs
from patton.systems.system import Memory
from patton.systems.terms import (
    Known,
    Ranges,
    Window,
    check_outputs,
    check_scores,
)

# Who a token is: the same for all requests that share it.
Identify: TypeAlias = Callable[[Request, int], Hashable]

KEYS = (Phase.KEY_WRITE, Phase.READ_KEY)
WRITES = (Phase.KEY_WRITE, Phase.VALUE_WRITE, Phase.COMMIT)
READ_BACKS = (Phase.READ_KEY, Phase.READ_VALUE)
# Numbers that no token has.
_FIRST_TOKEN = NOBODY + 1


@attrs.define(eq=False)
class TermValidator:
    """Proves of every stream of a run that it does what its step asks for.

    It must see all steps, in order. unit: of a modified device. streams, commands:
    proved so far. After an error it is of no more use.
    """

    device: DeviceConfig
    model: ModelConfig
    unit: OuterUnit | None
    memory: TagMemory
    streams: int = 0
    commands: int = 0
    _numbers: dict[Hashable, int] = attrs.field(factory=dict)

    @classmethod
    def of(cls, memory: Memory) -> TermValidator:
        """A validator of a run on a device to which nothing was written yet."""
        device, model = memory.device, memory.model
        return cls(device, model, memory.unit, TagMemory(whole_frame(device, model)))

    def check_step(
        self,
        step: Step,
        requests: Sequence[Request],
        streams: Sequence[CommandStream],
        identify: Identify | None = None,
    ) -> None:
        """Check all streams of a step, in the order of their execution.

        requests: what streams number; identify: who a token is, by default its request
        and position. Raises ValidationError, and what executors raise.
        """
        self._check_phases(step, streams)
        known = self._known(step, requests, identify)
        for stream in streams:
            self._obeys(stream)
            if stream.phase in WRITES:
                self._check_write(stream, known)
            elif stream.phase in READ_BACKS:
                self._check_read_back(stream, known)
            elif stream.phase is Phase.QK:
                check_scores(stream, self._windows(stream.frame), known)
            self.streams += 1
            self.commands += int(stream.command_offsets()[-1])
        values = [s for s in streams if s.phase in (Phase.SV, Phase.PARTIAL)]
        if values:
            windows = [self._windows(stream.frame) for stream in values]
            if (values[0].op == Op.MACSV).any():
                assert self.unit is not None
                check_outer_outputs(values[0], windows[0], known, self.unit)
            else:
                check_outputs(values, windows, known)

    def _known(
        self, step: Step, requests: Sequence[Request], identify: Identify | None
    ) -> Known:
        """The numbers of all tokens that the step speaks of."""
        who: Identify = identify or (lambda request, position: (request, position))
        writes = [(r, start, start + count) for r, start, count in step.writes]
        ends = dict.fromkeys(requests, 0)
        for request, _, end in (*writes, *step.reads, *step.readbacks):
            ends[request] = max(ends[request], end)
        tables = [
            np.array([self._number(who(r, p)) for p in range(ends[r])], np.int64)
            for r in requests
        ]
        index = {request: number for number, request in enumerate(requests)}

        def numbered(rows: Sequence[tuple[Request, int, int]]) -> Ranges:
            return [(index[request], start, end) for request, start, end in rows]

        return Known(
            self.model.kv_heads,
            self.model.head_dim,
            tables,
            writes=numbered(writes),
            reads=numbered(step.reads),
            backs=numbered(step.readbacks),
        )

    def _number(self, identity: Hashable) -> int:
        heads = self.model.kv_heads
        first = _FIRST_TOKEN + heads * len(self._numbers)
        return self._numbers.setdefault(identity, first)

    def _windows(self, frame: Frame) -> list[Window]:
        """The memory of every head of a frame."""
        found = []
        for head in range(frame.heads):
            fold, group = divmod(head, frame.groups)
            channel = group * frame.channels_per_head
            row = fold * frame.rows_per_plane
            found.append(Window(self.memory, channel, row))
        return found

    def _obeys(self, stream: CommandStream) -> None:
        """The device can obey the stream."""
        rules.check_frame(stream, self.device, 0)
        if self.unit is not None and (stream.op == Op.MACSV).any():
            check_outer(stream, self.device, self.unit)
        else:
            protocol.check(stream, self.device)

    @staticmethod
    def _check_phases(step: Step, streams: Sequence[CommandStream]) -> None:
        """No phase that the step needs is left out, and none comes twice."""
        found = [stream.phase for stream in streams]
        due = {Phase.KEY_WRITE, Phase.VALUE_WRITE} if step.writes else set()
        due |= set(READ_BACKS) if step.readbacks else set()
        due |= {Phase.QK} if step.reads else set()
        if step.reads and Phase.PARTIAL not in found:
            due |= {Phase.SV}
        if len(set(found)) < len(found) or not due <= set(found):
            raise ValidationError(
                "step",
                0,
                0,
                0,
                "no command",
                "the streams of the step",
                Fault.MISSING,
                ", ".join(found) or "none",
                ", ".join(sorted(due)),
            )

    # --- writes and read-backs ----------------------------------------------------

    def _check_write(self, stream: CommandStream, known: Known) -> None:
        """The step's tokens are sent, each element once, and then lie somewhere."""
        payload = [np.zeros((0, stream.frame.lanes), np.int64)] * stream.frame.heads
        if stream.source == "host":
            data = data_of(stream, Op.WR)
            if stream.phase is not Phase.COMMIT:
                self._each_once(stream, data, known.writes)
            payload = self._tags(stream, data, known)
        windows = self._windows(stream.frame)
        for window, tags in zip(windows, payload, strict=True):
            execute(window, stream, tags)

    def _check_read_back(self, stream: CommandStream, known: Known) -> None:
        """Every element of every token comes once, and is its own."""
        data = data_of(stream, Op.RD)
        self._each_once(stream, data, known.backs)
        used = data.carries & (data.element < self.model.head_dim)
        empty = np.zeros((0, stream.frame.lanes), np.int64)
        due = self._tags(stream, data, known)
        for window, tags in zip(self._windows(stream.frame), due, strict=True):
            done = execute(window, stream, empty)
            wrong = used & (done.tags != tags)
            if wrong.any():
                burst, lane = np.argwhere(wrong)[0].tolist()
                name = f"token {data.token[burst, lane]} of the stream's table"
                found = known.describe(int(done.tags[burst, lane]))
                accepted = known.describe(int(tags[burst, lane]))
                number = int(done.reads.number[burst])
                raise fault_at(stream, number, name, Fault.FOREIGN, found, accepted)

    def _tags(self, stream: CommandStream, data: Data, known: Known) -> list[Ints]:
        """The tags of all data [bursts, E], for each head of the frame."""
        assert stream.tokens is not None
        spread, head_dim = spread_of(stream.frame, self.model), self.model.head_dim
        request, part = np.divmod(stream.tokens.request, spread)
        numbers = known.numbers(request, stream.tokens.position) + part
        inside = data.carries & (data.token >= 0) & (data.token < len(numbers))
        numbers = np.append(numbers, NOBODY)[np.where(inside, data.token, -1)]
        kind = Kind.KEY if stream.phase in KEYS else Kind.VALUE
        return [
            tags_of(
                np.where(inside, numbers + head * spread, NOBODY),
                kind,
                np.maximum(data.element, 0),
                head_dim,
            )
            for head in range(stream.frame.heads)
        ]

    def _each_once(self, stream: CommandStream, data: Data, asked: Ranges) -> None:
        """The tokens are those asked for, and each element is carried once.

        A device without write masks sends others again, beside those asked for.
        """
        assert stream.tokens is not None
        spread, head_dim = spread_of(stream.frame, self.model), self.model.head_dim
        wanted = {
            (request * spread + part, position)
            for request, start, end in asked
            for position in range(start, end)
            for part in range(spread)
        }
        columns = stream.tokens.request.tolist(), stream.tokens.position.tolist()
        found = list(zip(*columns, strict=True))
        again = self.device.write_masks is False
        if len(set(found)) != len(found) or not (
            wanted == set(found) or (again and wanted <= set(found))
        ):
            what = "the table of tokens"
            raise fault_at(stream, None, what, Fault.TABLE, "others", "the step's")
        used = data.carries & (data.element < head_dim)
        place = (data.token * head_dim + data.element)[used]
        size = len(found) * head_dim
        if len(place) != size or not np.array_equal(np.unique(place), np.arange(size)):
            what = "the elements of tokens"
            raise fault_at(stream, None, what, Fault.DOUBLED, "others", "each once")
