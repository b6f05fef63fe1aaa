"""Every result of a stream has its terms, all of them, and no result is left out.

Terms are compared burst by burst: same operand burst, and the lanes of all banks what
the step's placements say. That is exact, because a burst of an operand is determined by
its vector and first component. What is found wrong is only named here; `diagnosis`
takes the result apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs
import numpy as np

from patton.commands import CommandStream, Phase
from patton.device.cells import Flags, Ints, spread
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.reads import Runs, StepReads
from patton.device.provenance.tags import Kind, tags_of
from patton.device.provenance.vectors import Rows, Terms, trace

# Side by side: more would leave the cache, of fewer the calls would take the time.
_TERMS = 2**16
_BURSTS = 2**9


@attrs.frozen
class Output:
    """A component of the result of a query head vector (query * heads_per_kv + g)."""

    vector: int
    component: int


@attrs.frozen(eq=False)
class Due:
    """What the terms of some rows must be.

    count [rows]: of terms; term(row, i) -> component of the operand of their i-th terms
    and a number that determines the tags; tags(numbers) -> [numbers, B, E].
    """

    count: Ints
    term: Callable[[Ints, Ints], tuple[Ints, Ints]]
    tags: Callable[[Ints], Ints]


def first_wrong(
    stream: CommandStream, memory: TagMemory, reads: StepReads, runs: Runs | None
) -> Output | None:
    """An output of a QK, SV or PARTIAL stream that is not what it must be, or None."""
    rows, terms = trace(stream, memory)
    if stream.phase == Phase.QK:
        return _first_wrong_score(stream, memory, reads, rows, terms)
    assert runs is not None
    return _first_wrong_value(stream, memory, reads, runs, rows, terms)


# --- scores ---------------------------------------------------------------------------


def _first_wrong_score(
    stream: CommandStream,
    memory: TagMemory,
    reads: StepReads,
    rows: Rows,
    terms: Terms,
) -> Output | None:
    placed, frame = reads.placed, stream.frame
    query = rows.vector // frame.heads_per_kv
    start, end = placed.read_start[query], placed.read_end[query]
    positions = rows.component[:, None] + np.arange(frame.banks)
    used = (positions >= start[:, None]) & (positions < end[:, None])
    granule, token = reads.key_at(placed.read_request[query], rows.component)
    due = _score_terms(reads, granule, token)
    sound = (granule >= 0) & (token % frame.banks == 0) & (rows.count == due.count)
    wrong = used & ~sound[:, None]
    chosen = np.flatnonzero(sound & used.any(axis=1))
    wrong[chosen] = used[chosen] & ~_agree(memory, rows, terms, due, chosen)
    if wrong.any():
        row, bank = np.argwhere(wrong)[0].tolist()
        return Output(int(rows.vector[row]), int(positions[row, bank]))
    return _first_not_once(reads, rows.vector, positions, used, frame.heads_per_kv)


def _first_not_once(
    reads: StepReads, vector: Ints, positions: Ints, used: Flags, heads: int
) -> Output | None:
    """The first score of any vector that is not given exactly once."""
    start, end = reads.placed.read_start, reads.placed.read_end
    first = np.cumsum(end - start) - (end - start)
    query, head = np.divmod(vector, heads)
    place = (first - start)[query][:, None] + positions
    given = (place * heads + head[:, None])[used]
    times = np.bincount(given, minlength=int((end - start).sum()) * heads)
    if (times == 1).all():
        return None
    at, head_at = divmod(int(np.argmax(times != 1)), heads)
    of = int(np.searchsorted(first, at, side="right")) - 1
    return Output(of * heads + head_at, int(start[of] - first[of]) + at)


def _score_terms(reads: StepReads, granule: Ints, token: Ints) -> Due:
    """A burst of the Key of every bank, times the same burst of the query."""
    layout = reads.contents.layout
    width, banks, lanes = layout.key_bursts, layout.device.banks, layout.device.lanes
    groups = reads.contents.key.reshape(-1, banks)
    unit = (granule * layout.block_tokens + token) // banks

    def term(row: Ints, i: Ints) -> tuple[Ints, Ints]:
        return i * lanes, unit[row] * width + i

    def tags(numbers: Ints) -> Ints:
        held, part = np.divmod(numbers, width)
        element = part[:, None] * lanes + np.arange(lanes)
        head_dim = layout.model.head_dim
        return tags_of(groups[held][:, :, None], Kind.KEY, element[:, None], head_dim)

    return Due(np.full(len(granule), width), term, tags)


# --- outputs --------------------------------------------------------------------------


def _first_wrong_value(
    stream: CommandStream,
    memory: TagMemory,
    reads: StepReads,
    runs: Runs,
    rows: Rows,
    terms: Terms,
) -> Output | None:
    frame = stream.frame
    elements = rows.component[:, None] + np.arange(frame.banks)
    used = elements < frame.head_dim
    part, rest = np.divmod(rows.component, frame.banks)
    parts = -(-frame.head_dim // frame.banks)
    chosen = np.flatnonzero((rest == 0) & (part >= 0) & (part < parts))
    # The i-th result of a vector's part of the head is that of its i-th run.
    key = rows.vector[chosen] * parts + part[chosen]
    turn, query = _turns(key), rows.vector[chosen] // frame.heads_per_kv
    run = runs.first[query] + turn
    is_due = run < runs.first[query + 1]
    chosen, run = chosen[is_due], run[is_due]
    due = _value_terms(reads, runs, part[chosen], run, parts)
    sound = rows.count[chosen] == due.count
    picked = np.flatnonzero(sound)
    wrong = used.copy()  # until they are found right
    agree = _agree(memory, rows, terms, due, picked, chosen)
    wrong[chosen[picked]] &= ~agree
    given = np.bincount(key, minlength=len(runs.first[1:]) * frame.heads_per_kv * parts)
    missing = given != np.repeat(np.diff(runs.first), frame.heads_per_kv * parts)
    if wrong.any():
        row, bank = np.argwhere(wrong)[0].tolist()
        return Output(int(rows.vector[row]), int(elements[row, bank]))
    if missing.any():
        vector, first = divmod(int(np.argmax(missing)), parts)
        return Output(vector, first * frame.banks)
    return None


def _turns(keys: Ints) -> Ints:
    """How many earlier items have the same key."""
    order = np.argsort(keys, kind="stable")
    index = np.arange(len(keys))
    new = np.ones(len(keys), np.bool_)
    new[1:] = np.diff(keys[order]) != 0
    turns = np.empty_like(index)
    turns[order] = index - np.maximum.accumulate(np.where(new, index, 0))
    return turns


def _value_terms(
    reads: StepReads, runs: Runs, part: Ints, run: Ints, parts: int
) -> Due:
    """The bursts of a run in one part of the head, times the weights of its tokens."""
    layout = reads.contents.layout
    banks, lanes, width = layout.device.banks, layout.device.lanes, layout.value_width
    bursts = reads.contents.value.reshape(-1, lanes)

    def term(row: Ints, i: Ints) -> tuple[Ints, Ints]:
        at = runs.begin[run[row]] + i
        held = runs.place[at] * width + runs.part[at]
        return runs.position[at], held * parts + part[row]

    def tags(numbers: Ints) -> Ints:
        held, one = np.divmod(numbers, parts)
        element = one[:, None] * banks + np.arange(banks)
        head_dim = layout.model.head_dim
        tokens = bursts[held][:, None]
        return tags_of(tokens, Kind.VALUE, element[:, :, None], head_dim)

    return Due(np.diff(runs.begin)[run], term, tags)


# --- both -----------------------------------------------------------------------------


def _agree(
    memory: TagMemory,
    rows: Rows,
    terms: Terms,
    due: Due,
    picked: Ints,
    row_of: Ints | None = None,
) -> Flags:
    """Whether the terms of rows are the due ones, bank by bank [picked, B].

    picked: indices into what `due` speaks of, which are the rows, or those in row_of.
    """
    agree = np.ones((len(picked), memory.banks), np.bool_)
    table = np.empty(len(terms.rows) * memory.bursts, np.int64)
    for some in _portions(due.count[picked]):
        mine = picked[some]
        row = mine if row_of is None else row_of[mine]
        term = spread(rows.begin[row], due.count[mine])
        owner, at = term.source, term.value
        component, number = due.term(mine[owner], at - rows.begin[row][owner])
        same = terms.component[at] == component
        same &= terms.vector[at] == rows.vector[row][owner]
        held = _held(memory, terms, due, terms.spot[at], number, table)
        held &= same[:, None]
        begin = np.cumsum(due.count[mine]) - due.count[mine]
        agree[some] = np.logical_and.reduceat(held, begin, axis=0)
    return agree


def _portions(counts: Ints) -> Iterator[slice]:
    """Slices of rows with about `_TERMS` terms, and at least one row, each."""
    before = np.cumsum(counts)
    start = 0
    while start < len(counts):
        done = before[start - 1] if start else 0
        end = max(start + 1, int(np.searchsorted(before, done + _TERMS, "right")))
        yield slice(start, end)
        start = end


def _held(
    memory: TagMemory,
    terms: Terms,
    due: Due,
    spot: Ints,
    number: Ints,
    table: Ints,
) -> Flags:
    """Whether bursts in memory hold what they must [terms, B].

    The query heads of a Key head, and queries of one request, meet the same bursts;
    each is looked at once.
    """
    index = np.arange(len(spot))
    table[spot] = index
    stand_in = table[spot]
    differs = number[stand_in] != number
    stand_in[differs] = index[differs]
    is_needed = np.zeros(len(spot), np.bool_)
    is_needed[stand_in] = True
    needed = np.flatnonzero(is_needed)
    rows, burst = np.divmod(spot[needed], memory.bursts)
    places, numbers = terms.rows[rows] + burst, number[needed]
    equal = np.empty((len(needed), memory.banks), np.bool_)
    for low in range(0, len(needed), _BURSTS):
        some = slice(low, low + _BURSTS)
        found = memory.read_banks(places[some])
        equal[some] = (found == due.tags(numbers[some])).all(axis=2)
    answer: Flags = equal[(np.cumsum(is_needed) - 1)[stand_in]]
    return answer
