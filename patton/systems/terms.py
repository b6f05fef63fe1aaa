"""What results of streams are made of, against what they must be.

Results are compared burst by burst: the tags of all lanes in memory, and what they were
multiplied with. Which results there are, and which bursts go into each, is looked up
for a whole stream at once (`patton.device.plan`); that it is right for every head of a
frame is looked at head by head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import attrs
import numpy as np

from patton.commands import CommandStream
from patton.device.cells import Flags, Ints
from patton.device.provenance.faults import fault_at
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.tags import (
    FILLED,
    NOBODY,
    UNWRITTEN,
    Fault,
    Kind,
    tags_of,
    token_of,
)
from patton.device.provenance.vectors import Rows, Terms, trace
from patton.generate.ragged import owners, ranges

Ranges: TypeAlias = list[tuple[int, int, int]]  # request, start, end

_TERMS = 2**15  # at a time, which bounds the memory


class Window(TagMemory):
    """The channels and rows of one head of a frame, in a memory of all of them."""

    def __init__(self, memory: TagMemory, channel: int, row: int) -> None:
        self.memory = memory
        self.rows, self.bursts, self.banks = memory.rows, memory.bursts, memory.banks
        self.place = (channel * memory.rows + row) * memory.bursts

    def read(self, cells: Ints) -> Ints:
        """See `TagMemory`."""
        return self.memory.read(cells + self.place * self.banks)

    def read_banks(self, places: Ints) -> Ints:
        """See `TagMemory`."""
        return self.memory.read_banks(places + self.place)

    def write(self, cells: Ints, tags: Ints) -> None:
        """See `TagMemory`."""
        self.memory.write(cells + self.place * self.banks, tags)


@attrs.frozen(eq=False)
class Known:
    """The tokens of a step. tables: of each request, the number of head 0 of each.

    A token's number for head h is that plus h. writes, reads, backs: ranges.
    """

    heads: int
    head_dim: int
    tables: list[Ints]
    writes: Ranges
    reads: Ranges
    backs: Ranges

    def numbers(self, request: Ints, position: Ints) -> Ints:
        """Of head 0 of tokens; NOBODY where a request has no such position."""
        ends = np.cumsum([0, *map(len, self.tables)])
        flat = np.concatenate([*self.tables, np.array([NOBODY])])
        known = (request >= 0) & (request < len(self.tables)) & (position >= 0)
        request = np.where(known, request, 0)
        known &= position < np.diff(ends)[request] if len(self.tables) else False
        return flat[np.where(known, ends[request] + position, -1)]

    def describe(self, tag: int) -> str:
        """A tag in words."""
        token = token_of(tag)
        if token <= NOBODY:
            words = {UNWRITTEN: "unwritten", FILLED: "zero fill", NOBODY: "nobody's"}
            return words[token]
        head = (token - NOBODY - 1) % self.heads
        for request, table in enumerate(self.tables):
            at = np.flatnonzero(table == token - head)
            if len(at):
                return f"position {at[0]} of request number {request}, head {head}"
        return f"a token of another request, head {head}"


@attrs.frozen(eq=False)
class QueryTable:
    """The queries of a stream, part after part, as it must list them."""

    spread: int
    request: Ints
    part: Ints
    start: Ints
    end: Ints

    @classmethod
    def of(cls, stream: CommandStream, known: Known, spread: int) -> QueryTable:
        """Raises ValidationError where the stream lists others."""
        rows = np.array(known.reads, np.int64).reshape(-1, 3)
        part = np.arange(spread).repeat(len(rows))
        request, start, end = np.tile(rows, (spread, 1)).T
        listed = stream.queries
        same = listed is not None and all(
            np.array_equal(found, due)
            for found, due in (
                (listed.request, request * spread + part),
                (listed.start, start),
                (listed.end, end),
            )
        )
        if not same:
            due = "those of the step, in its order"
            raise fault_at(stream, None, "the queries", Fault.TABLE, "others", due)
        return cls(spread, request, part, start, end)


def check_scores(
    stream: CommandStream, windows: Sequence[Window], known: Known
) -> None:
    """Every score is that of its Key and query, and none is left out or doubled.

    Raises ValidationError.
    """
    frame = stream.frame
    assert stream.results is not None
    queries = QueryTable.of(stream, known, known.heads // frame.heads)
    rows, terms = trace(stream, windows[0])
    query = rows.vector // frame.heads_per_kv
    bank = np.arange(frame.banks) * stream.results.bank_stride
    position = rows.component[:, None] + bank
    used = position >= queries.start[query][:, None]
    used &= position < queries.end[query][:, None]
    width = -(-known.head_dim // frame.lanes)
    _check_once(stream, rows, terms, width, np.any(used, axis=1))
    numbers = known.numbers(queries.request[query][:, None], position)
    numbers = numbers + queries.part[query][:, None]
    for head, window in enumerate(windows):
        first = head * queries.spread
        for term, row in _portions(rows):
            element = terms.component[term][:, None] + np.arange(frame.lanes)
            due = tags_of(
                numbers[row][:, :, None] + first,
                Kind.KEY,
                element[:, None],
                known.head_dim,
            )
            _compare(stream, window, terms, term, (due, used[row]), (rows, row), known)
    _check_given(stream, queries, rows.vector, position, used)


def _check_given(
    stream: CommandStream,
    queries: QueryTable,
    vector: Ints,
    position: Ints,
    used: Flags,
) -> None:
    """Every visible score of every vector is given once."""
    heads = stream.frame.heads_per_kv
    query, head = np.divmod(vector, heads)
    lengths = queries.end - queries.start
    first = np.cumsum(lengths) - lengths - queries.start
    place = (first[query][:, None] + position) * heads + head[:, None]
    times = np.bincount(place[used], minlength=int(lengths.sum()) * heads)
    if (times != 1).any():
        fault = Fault.DOUBLED if times.max() > 1 else Fault.MISSING
        raise fault_at(stream, None, "a score", fault, f"{times.max()} times", "once")


# --- outputs of inner products --------------------------------------------------------


def check_outputs(
    streams: Sequence[CommandStream],
    windows: Sequence[Sequence[Window]],
    known: Known,
) -> None:
    """Every output is the sum of all visible Values, each once, and nothing else.

    streams: all that add to the outputs, in one frame. Raises ValidationError.
    """
    frame = streams[0].frame
    queries = QueryTable.of(streams[0], known, known.heads // frame.heads)
    bursts = -(-int(queries.end.max()) // frame.lanes)
    parts = -(-known.head_dim // frame.banks)
    times = np.zeros((len(queries.start) * frame.heads_per_kv, parts, bursts), int)
    for stream, some in zip(streams, windows, strict=True):
        QueryTable.of(stream, known, queries.spread)
        _add_sums(stream, some, known, queries, times)
    query = np.arange(len(times)) // frame.heads_per_kv
    burst = np.arange(bursts) * frame.lanes
    seen = burst < queries.end[query][:, None]
    seen &= burst + frame.lanes > queries.start[query][:, None]
    wrong = (times != 1) & seen[:, None]
    if wrong.any():
        vector, part, at = np.argwhere(wrong)[0].tolist()
        what = f"part {part} of vector {vector}, positions from {at * frame.lanes}"
        found = int(times[vector, part, at])
        fault = Fault.DOUBLED if found else Fault.MISSING
        raise fault_at(streams[-1], None, what, fault, f"{found} times", "once")


def _add_sums(
    stream: CommandStream,
    windows: Sequence[Window],
    known: Known,
    queries: QueryTable,
    times: Ints,
) -> None:
    """Compare the terms of a stream's sums, and count them in `times`."""
    frame = stream.frame
    rows, terms = trace(stream, windows[0])
    owner = np.empty(len(terms.component), np.int64)
    for term, row in _portions(rows):
        owner[term] = row
    part, rest = np.divmod(rows.component, frame.banks)
    element = rows.component[:, None] + np.arange(frame.banks)
    used = element < known.head_dim
    burst, lane = np.divmod(terms.component, frame.lanes)
    bad = (lane != 0) | (burst < 0) | (terms.vector != rows.vector[owner])
    bad |= (rest != 0)[owner]
    asked = (rows.component < known.head_dim)[owner]  # the others are padding
    bad &= asked
    if bad.any():
        at = int(rows.number[owner[np.argmax(bad)]])
        words = "weights of its own query, from a burst's first"
        raise fault_at(stream, at, "a sum", Fault.OPERAND, "another operand", words)
    inside = asked & (burst < times.shape[2])
    owner, burst = owner[inside], burst[inside]
    np.add.at(times, (rows.vector[owner], part[owner], burst), 1)
    query = rows.vector // frame.heads_per_kv
    for head, window in enumerate(windows):
        first = head * queries.spread
        for term, row in _portions(rows):
            of = query[row]
            position = terms.component[term][:, None] + np.arange(frame.lanes)
            visible = position >= queries.start[of][:, None]
            visible &= position < queries.end[of][:, None]
            numbers = known.numbers(queries.request[of][:, None], position)
            numbers = numbers + queries.part[of][:, None] + first
            due = tags_of(
                numbers[:, None], Kind.VALUE, element[row][:, :, None], known.head_dim
            )
            # What is met by a zero only must not be a lane that was never written.
            due = np.where(visible[:, None], due, _ANYTHING)
            _compare(stream, window, terms, term, (due, used[row]), (rows, row), known)


# --- both -----------------------------------------------------------------------------

_ANYTHING = -1  # a tag that stands for whatever was written


def _portions(rows: Rows) -> Iterator[tuple[Ints, Ints]]:
    """All terms and the rows that they belong to, some at a time."""
    term, row = ranges(rows.begin, rows.count), owners(rows.count)
    for low in range(0, len(term), _TERMS):
        yield term[low : low + _TERMS], row[low : low + _TERMS]


def _check_once(
    stream: CommandStream, rows: Rows, terms: Terms, width: int, used: Flags
) -> None:
    """Each row has each of `width` bursts of its own query once."""
    term, row = ranges(rows.begin, rows.count), owners(rows.count)
    burst, lane = np.divmod(terms.component[term], stream.frame.lanes)
    right = (lane == 0) & (burst >= 0) & (burst < width)
    right &= terms.vector[term] == rows.vector[row]
    times = np.zeros((len(rows.vector), width), np.int64)
    np.add.at(times, (row[right], burst[right]), 1)
    wrong = used & ((times != 1).any(axis=1) | (rows.count != width))
    if wrong.any():
        at = int(np.argmax(wrong))
        due = f"{width} bursts of its query"
        found = f"{int(rows.count[at])} bursts, or others"
        raise fault_at(
            stream, int(rows.number[at]), "a score", Fault.OPERAND, found, due
        )


def _compare(
    stream: CommandStream,
    window: Window,
    terms: Terms,
    term: Ints,
    due: tuple[Ints, Flags],
    of: tuple[Rows, Ints],
    known: Known,
) -> None:
    """The lanes of all banks that are used hold what is due."""
    row, burst = np.divmod(terms.spot[term], window.bursts)
    found = window.read_banks(terms.rows[row] + burst)
    tags, used = due
    same = (found == tags) | ((tags == _ANYTHING) & (found >> 24 != UNWRITTEN))
    wrong = used & ~same.all(axis=2)
    if wrong.any():
        at, bank = np.argwhere(wrong)[0].tolist()
        lane = int(np.argmin(same[at, bank]))
        number = int(of[0].number[of[1][at]])
        tag, wanted = int(found[at, bank, lane]), int(tags[at, bank, lane])
        fault = Fault.UNWRITTEN if token_of(tag) == UNWRITTEN else Fault.FOREIGN
        words = "anything written" if wanted == _ANYTHING else known.describe(wanted)
        what = f"bank {bank}, lane {lane}"
        raise fault_at(stream, number, what, fault, known.describe(tag), words)
