"""Streams that write, commit or read back: every cell they touch, lane by lane."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from patton.commands import CommandStream, Op, Phase, Tokens
from patton.device.cells import Ints
from patton.device.provenance.contents import Cells, StepWrites
from patton.device.provenance.faults import describe_lane, fault_at
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.reads import StepReads
from patton.device.provenance.run import (
    Data,
    Executed,
    data_of,
    execute,
    touched_lanes,
)
from patton.device.provenance.tags import (
    NOBODY,
    NOT_WRITTEN,
    UNWRITTEN,
    ZERO,
    Fault,
    Kind,
    Ledger,
    tags_of,
    token_of,
)
from patton.errors import ValidationError
from patton.layout import Layout
from patton.steps import PlacedStep

Masks = NDArray[np.uint64]


def kind_of(phase: Phase) -> Kind:
    """Whose elements a phase writes or reads."""
    return Kind.KEY if phase in {Phase.KEY_WRITE, Phase.READ_KEY} else Kind.VALUE


def host_tags(
    stream: CommandStream, writes: StepWrites, ledger: Ledger, placed: PlacedStep
) -> Ints:
    """Tags [bursts, E] that the host sends for the stream's WRs."""
    if stream.source != "host" or stream.tokens is None:
        return np.zeros((0, stream.frame.lanes), np.int64)
    numbers = writes.host_tokens(stream.phase, stream.tokens)
    unknown = np.flatnonzero(numbers == 0)
    if len(unknown):
        request = stream.tokens.request[unknown]
        position = stream.tokens.position[unknown]
        arguments = placed.requests, request, position, None
        numbers[unknown] = ledger.add(NOT_WRITTEN, *arguments)
    tokens, element = _tokens_in_lanes(data_of(stream, Op.WR), numbers)
    head_dim = stream.frame.head_dim
    return tags_of(tokens, kind_of(stream.phase), element, head_dim)


def _tokens_in_lanes(data: Data, numbers: Ints) -> tuple[Ints, Ints]:
    """Numbers of tokens and elements in lanes; NOBODY where a lane has none."""
    inside = (data.token >= 0) & (data.token < len(numbers)) & (data.element >= 0)
    inside &= data.carries
    numbers = np.append(numbers, NOBODY)
    tokens = numbers[np.where(inside, data.token, -1)]
    return tokens, np.where(inside, data.element, 0)


# --- writes ---------------------------------------------------------------------------


def check_writes(
    stream: CommandStream,
    memory: TagMemory,
    writes: StepWrites,
    ledger: Ledger,
    placed: PlacedStep,
) -> None:
    """Execute a stream that writes, and compare all it touched. Raises ValidationError.

    The cells that it must write and those that it writes are the same, each once, and
    then hold what they must in every lane.
    """
    due = writes.cells(stream.phase, memory)
    payload = host_tags(stream, writes, ledger, placed)
    order = np.argsort(due.cell, kind="stable")
    due = Cells(due.cell[order], due.lanes[order], due.tags[order])
    words = _Words(stream, memory, ledger, writes.contents.layout)
    twice = due.cell[1:][due.cell[1:] == due.cell[:-1]]
    if len(twice):
        raise words.claimed_twice(int(twice[0]))
    done = execute(memory, stream, payload)
    item = np.searchsorted(due.cell, done.written).clip(max=len(due.cell) - 1)
    foreign = np.ones(len(item), np.bool_)
    if len(due.cell):
        foreign = due.cell[item] != done.written
    if foreign.any():
        raise words.foreign(done, int(np.argmax(foreign)))
    _compare_cells(words, due, done, item)


def _compare_cells(words: _Words, due: Cells, done: Executed, item: Ints) -> None:
    """All of `done` is due; item: which of the due cells each write is to."""
    after = words.memory.read(due.cell)
    differs = (after != due.tags).any(axis=1)
    if differs.any():
        cell = int(np.argmax(differs))
        lane = int(np.argmax(after[cell] != due.tags[cell]))
        raise words.different(due, done, item, (cell, lane))
    times = np.bincount(item, minlength=len(due.cell))
    if (times != 1).any():
        cell = int(np.argmax(times != 1))
        raise words.times(due, item, cell, done)
    touched = touched_lanes(done.writes, due.tags.shape[1])
    apart = touched != due.lanes[item]
    if apart.any():
        raise words.lanes(due, done, item, int(np.argmax(apart)), touched)


class _Words:
    """What is wrong with a stream that writes, in words."""

    def __init__(
        self, stream: CommandStream, memory: TagMemory, ledger: Ledger, layout: Layout
    ) -> None:
        self.stream, self.memory, self.ledger = stream, memory, ledger
        self.layout = layout

    def lane(self, cell: int, lane: int) -> str:
        return describe_lane(self.layout, self.memory, cell, lane)

    def claimed_twice(self, cell: int) -> ValidationError:
        """Two blocks of the step have one place."""
        output, once = self.lane(cell, 0), "one block of the step there"
        return fault_at(self.stream, 0, output, Fault.PLACEMENT, "two blocks", once)

    def foreign(self, done: Executed, item: int) -> ValidationError:
        """A write to a cell that the step does not write."""
        cell = int(done.written[item])
        tags = self.memory.read(np.array([cell]))[0]
        lanes = int(touched_lanes(done.writes, len(tags))[item])
        lane = (lanes & -lanes).bit_length() - 1
        found = self.ledger.describe(int(tags[lane]))
        number = int(done.writes.items.number[item])
        output, due = self.lane(cell, lane), "no write there in this step"
        return fault_at(self.stream, number, output, Fault.PLACE, found, due)

    def different(
        self, due: Cells, done: Executed, item: Ints, place: tuple[int, int]
    ) -> ValidationError:
        """A lane that does not hold what it must after the stream."""
        cell, lane = place
        found = int(self.memory.read(due.cell[cell : cell + 1])[0, lane])
        wanted = int(due.tags[place])
        touched = touched_lanes(done.writes, due.tags.shape[1])[item == cell]
        stayed = not (touched >> np.uint64(lane) & np.uint64(1)).any()
        return fault_at(
            self.stream,
            self._last(done, item, cell),
            self.lane(int(due.cell[cell]), lane),
            _fault_of_tag(found, wanted, stayed),
            self.ledger.describe(found) + (", as before" if stayed else ""),
            self.ledger.describe(wanted),
        )

    def times(
        self, due: Cells, item: Ints, cell: int, done: Executed
    ) -> ValidationError:
        """A cell that is written twice, or not at all though that changes nothing."""
        number = self._last(done, item, cell)
        wanted = int(due.tags[cell, 0])
        written = int((item == cell).sum())
        fault = Fault.MISSING if written == 0 else Fault.DOUBLED
        output = f"{self.lane(int(due.cell[cell]), 0)}: {self.ledger.describe(wanted)}"
        return fault_at(self.stream, number, output, fault, f"{written} writes", "one")

    def lanes(
        self, due: Cells, done: Executed, item: Ints, at: int, touched: Masks
    ) -> ValidationError:
        """A write that replaces other lanes than it must, though by the same."""
        cell = int(item[at])
        wanted, found = int(due.lanes[cell]), int(touched[at])
        apart = wanted ^ found
        lane = (apart & -apart).bit_length() - 1
        fault = Fault.MISSING if wanted & apart else Fault.PLACE
        number = int(done.writes.items.number[at])
        output = self.lane(int(due.cell[cell]), lane)
        masks = f"lanes {found:#x}", f"lanes {wanted:#x}"
        return fault_at(self.stream, number, output, fault, *masks)

    @staticmethod
    def _last(done: Executed, item: Ints, cell: int) -> int | None:
        """The last command that wrote a cell."""
        writes = np.flatnonzero(item == cell)
        return int(done.writes.items.number[writes[-1]]) if len(writes) else None


def _fault_of_tag(found: int, wanted: int, stayed: bool) -> Fault:
    if stayed:
        return Fault.MISSING
    if token_of(found) == UNWRITTEN:
        return Fault.UNWRITTEN
    if found == ZERO and wanted != ZERO:
        return Fault.ZERO
    return Fault.FOREIGN


# --- read-backs -----------------------------------------------------------------------


def check_read_back(
    stream: CommandStream, memory: TagMemory, ledger: Ledger, reads: StepReads
) -> None:
    """Every element of every token that the step reads back comes once, and is its own.

    Raises ValidationError.
    """
    tokens, keys, values = reads.readback_tokens()
    kind = kind_of(stream.phase)
    numbers = keys if kind == Kind.KEY else values
    assert stream.tokens is not None
    _check_table(stream, stream.tokens, tokens)
    done = execute(memory, stream, np.zeros((0, stream.frame.lanes), np.int64))
    data, head_dim = data_of(stream, Op.RD), stream.frame.head_dim
    used = data.carries & (data.element < head_dim)
    named, element = _tokens_in_lanes(data, numbers)
    wanted = np.where(named == NOBODY, NOBODY, tags_of(named, kind, element, head_dim))
    wrong = used & (done.tags != wanted)
    if wrong.any():
        burst, lane = np.argwhere(wrong)[0].tolist()
        found, due = int(done.tags[burst, lane]), int(wanted[burst, lane])
        name = f"element {data.element[burst, lane]} of a token that is not asked for"
        name = name if due == NOBODY else ledger.describe(due)
        number = int(done.reads.number[burst])
        fault = _fault_of_tag(found, due, stayed=False)
        raise fault_at(stream, number, name, fault, ledger.describe(found), name)
    given = data.token[used] * head_dim + data.element[used]
    times = np.bincount(given, minlength=len(numbers) * head_dim)
    if (times != 1).any():
        place = int(np.argmax(times != 1))
        token, at = divmod(place, head_dim)
        name = ledger.describe(int(tags_of(numbers[[token]], kind, at, head_dim)[0]))
        fault = Fault.DOUBLED if times[place] else Fault.MISSING
        raise fault_at(stream, None, name, fault, f"{times[place]} times", "once")


def _check_table(stream: CommandStream, found: Tokens, due: Tokens) -> None:
    """The tokens of a read-back are in logical order (layout 5)."""
    same = len(found.position) == len(due.position)
    same = same and np.array_equal(found.request, due.request)
    if not (same and np.array_equal(found.position, due.position)):
        texts = (f"{len(t.position)} tokens, {t.position[:8]}..." for t in (found, due))
        raise fault_at(stream, 0, "the table of tokens", Fault.TABLE, *texts)
