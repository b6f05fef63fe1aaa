"""One result of a stream taken apart into its terms, to say what is wrong with it.

Slow and obvious: the stream is followed command by command, with a Global Buffer and
registers that hold what they were given, and the terms are those of one output only.
`results` finds in another way that an output is wrong, and which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from patton.commands import CommandStream, Op, Phase
from patton.device import rules
from patton.device.provenance.faults import fault_at
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.reads import Runs, StepReads
from patton.device.provenance.results import Output
from patton.device.provenance.tags import (
    UNWRITTEN,
    ZERO,
    Fault,
    Kind,
    Ledger,
    tags_of,
    token_of,
)
from patton.device.provenance.vectors import operands_of
from patton.errors import ValidationError

Operand = tuple[int, int]  # query head vector and component


class Term(NamedTuple):
    """A lane times an operand.

    cell: tag of the lane; operand: None if it is zero; result: the terms of one are
    accumulated together; number: of the command.
    """

    cell: int
    operand: Operand | None
    result: int
    number: int | None = None


class Finding(NamedTuple):
    """A fault of an output: the term that is there, and the one that is due."""

    fault: Fault
    found: Term | None
    due: Term | None


def explain(
    stream: CommandStream,
    memory: TagMemory,
    ledger: Ledger,
    reads: StepReads,
    runs: Runs | None,
    output: Output,
) -> ValidationError:
    """The error of a stream one of whose outputs was found wrong."""
    found, end = terms_found(stream, memory, reads, output)
    due = list(terms_due(stream, reads, runs, output))
    finding = compare(found, due)
    assert finding is not None, "an output was found wrong that is right"
    term = finding.found
    words = _Words(stream, ledger, reads)
    return fault_at(
        stream,
        term.number if term is not None else end,
        words.output(output),
        finding.fault,
        words.term(finding.found),
        words.term(finding.due),
    )


def compare(found: Sequence[Term], due: Sequence[Term]) -> Finding | None:
    """What is wrong with the terms of an output, None if nothing is."""
    wanted = Counter((t.cell, t.operand) for t in due)
    silent = {term.cell for term in due if term.operand is None} | {ZERO}
    seen: Counter[tuple[int, Operand | None]] = Counter()
    for term in found:
        pair = term.cell, term.operand
        if term.operand is None and term.cell in silent:
            continue  # it adds nothing
        if pair not in wanted:
            return _foreign(term, due)
        seen[pair] += 1
        if seen[pair] > wanted[pair]:
            return Finding(Fault.DOUBLED, term, None)
    for term in due:
        if term.operand is not None and not seen[term.cell, term.operand]:
            return Finding(Fault.MISSING, None, term)
    return _first_out_of_order(found, due)


def _foreign(term: Term, due: Sequence[Term]) -> Finding:
    """A product that is not asked for: which half of it is to blame."""
    of_cell = next((t for t in due if t.cell == term.cell), None)
    of_operand = next((t for t in due if t.operand == term.operand), None)
    if token_of(term.cell) == UNWRITTEN:
        return Finding(Fault.UNWRITTEN, term, of_operand)
    if term.cell == ZERO:
        return Finding(Fault.ZERO, term, of_operand)
    if of_cell is not None:
        return Finding(Fault.OPERAND, term, of_cell)
    return Finding(Fault.FOREIGN, term, of_operand)


def _first_out_of_order(found: Sequence[Term], due: Sequence[Term]) -> Finding | None:
    """All terms are right; they come in the right order and in the right results.

    Lanes under a zero operand, too, hold what they must.
    """
    begins = [_begins(terms) for terms in (found, due)]
    for i, (one, other) in enumerate(zip(found, due, strict=False)):
        same = (one.cell, one.operand) == (other.cell, other.operand)
        if not same and one.operand is None and other.operand is None:
            fault = Fault.ZERO if one.cell == ZERO else Fault.FOREIGN
            return Finding(fault, one, other)
        if not same or begins[0][i] != begins[1][i]:
            return Finding(Fault.ORDER, one, other)
    if len(found) != len(due):  # a burst of nothing but padding, which adds nothing
        return Finding(Fault.ORDER, found[-1], due[-1])
    return None


def _begins(terms: Sequence[Term]) -> list[bool]:
    """Whether each term is the first of its result."""
    before = [None, *(term.result for term in terms)]
    return [term.result != last for term, last in zip(terms, before, strict=False)]


# --- what an output is made of --------------------------------------------------------


def terms_found(
    stream: CommandStream, memory: TagMemory, reads: StepReads, output: Output
) -> tuple[list[Term], int | None]:
    """The terms of an output in stream order, and the last command that returned it."""
    operands, banks = operands_of(stream), stream.frame.banks
    terms: list[Term] = []
    last = None
    for result, (number, bank, bursts) in enumerate(_returns(stream, memory, output)):
        last = number
        for place, slot, multiplied in bursts:
            tags = memory.read(np.array([place * banks + bank]))[0]
            load = int(operands.vector[slot]), int(operands.component[slot])
            for lane, cell in enumerate(tags.tolist()):
                operand = _operand(stream, reads, load, lane)
                terms.append(Term(cell, operand, result, multiplied))
    return terms, last


# A burst that was multiplied: place in memory, burst of the payload, command number.
_Burst = tuple[int, int, int]


def _returns(
    stream: CommandStream, memory: TagMemory, output: Output
) -> Iterator[tuple[int, int, list[_Burst]]]:
    """Number, bank and accumulated bursts of every RDMAC that returns the output."""
    first = stream.payload_offsets()
    buffer: dict[tuple[int, int], int] = {}
    register: dict[tuple[int, int], list[_Burst]] = {}
    for single in rules.single_commands(stream):
        whole = single.whole
        for offset, channel in enumerate(single.channels):
            at = channel, whole.register
            if single.op == Op.WRGB:
                buffer[channel, single.burst] = int(first[single.entry]) + single.place
            elif single.op == Op.WRBIAS:
                register[at] = []
            elif single.op == Op.MACAB:
                row = (channel * memory.rows + whole.row) * memory.bursts
                operand = buffer[channel, single.burst]
                register[at].append((row + single.burst, operand, single.number))
            elif single.op == Op.RDMAC:
                vector, component = _result_of(stream, whole.reference, offset)
                bank = output.component - component
                if vector == output.vector and 0 <= bank < stream.frame.banks:
                    yield single.number, bank, register[at]


def _result_of(stream: CommandStream, reference: int, offset: int) -> tuple[int, int]:
    """Vector and component of bank 0 that an RDMAC returns in its offset-th channel."""
    assert stream.results is not None
    heads, table = stream.frame.heads_per_kv, stream.results
    group, head = divmod(reference, heads)
    group += offset * table.group_stride
    component = int(table.origin[group]) + offset * table.channel_stride
    return int(table.query[group]) * heads + head, component


def _operand(
    stream: CommandStream, reads: StepReads, load: Operand, lane: int
) -> Operand | None:
    """What one lane of a load is; None where it is zero."""
    vector, component = load[0], load[1] + lane
    if stream.phase == Phase.QK:
        return (vector, component) if component < stream.frame.head_dim else None
    query, placed = vector // stream.frame.heads_per_kv, reads.placed
    seen = placed.read_start[query] <= component < placed.read_end[query]
    return (vector, component) if seen else None


def terms_due(
    stream: CommandStream, reads: StepReads, runs: Runs | None, output: Output
) -> Iterator[Term]:
    """The terms of an output as the step's placements say; none if it has no such."""
    frame, placed = stream.frame, reads.placed
    query = output.vector // frame.heads_per_kv
    if stream.phase == Phase.QK:
        seen = range(placed.read_start[query], placed.read_end[query])
        assert output.component in seen, "scores of other positions are dropped"
        yield from _key_terms(stream, reads, query, output)
    elif 0 <= output.component < frame.head_dim:
        assert runs is not None
        first, last = runs.first[query : query + 2].tolist()
        for run in range(first, last):
            for burst in range(runs.begin[run], runs.begin[run + 1]):
                yield from _value_terms(stream, reads, runs, (run, burst), output)


def _key_terms(
    stream: CommandStream, reads: StepReads, query: int, output: Output
) -> Iterator[Term]:
    request = reads.placed.read_request[query : query + 1]
    granule, token = reads.key_at(request, np.array([output.component]))
    number = reads.contents.key[granule, token]
    lanes, head_dim = stream.frame.lanes, stream.frame.head_dim
    for element in range(-(-head_dim // lanes) * lanes):
        tag = int(tags_of(number, Kind.KEY, element, head_dim)[0])
        yield Term(tag, _operand(stream, reads, (output.vector, element), 0), 0)


def _value_terms(
    stream: CommandStream,
    reads: StepReads,
    runs: Runs,
    place: tuple[int, int],
    output: Output,
) -> Iterator[Term]:
    run, burst = place
    lanes, head_dim = stream.frame.lanes, stream.frame.head_dim
    first = int(runs.part[burst]) * lanes
    held = reads.contents.value[runs.place[burst], first : first + lanes]
    tags = tags_of(held, Kind.VALUE, output.component, head_dim)
    load = output.vector, int(runs.position[burst])
    for lane, tag in enumerate(tags.tolist()):
        yield Term(tag, _operand(stream, reads, load, lane), run)


# --- in words -------------------------------------------------------------------------


class _Words:
    """Outputs and terms of a stream in words."""

    def __init__(self, stream: CommandStream, ledger: Ledger, reads: StepReads) -> None:
        self.stream, self.ledger, self.reads = stream, ledger, reads
        self.is_score = stream.phase == Phase.QK

    def output(self, output: Output) -> str:
        query, head = divmod(output.vector, self.stream.frame.heads_per_kv)
        placed = self.reads.placed
        name = placed.requests[placed.read_request[query]]
        what = "score of position" if self.is_score else "output element"
        of = f"query {query} (request {name!r}), query head {head}"
        return f"{what} {output.component} of {of}"

    def term(self, term: Term | None) -> str:
        if term is None:
            return "none"
        return f"{self.ledger.describe(term.cell)} times {self._operand(term.operand)}"

    def _operand(self, operand: Operand | None) -> str:
        if operand is None:
            return "zero"
        query, head = divmod(operand[0], self.stream.frame.heads_per_kv)
        what = "query element" if self.is_score else "the weight of position"
        component = operand[1]
        if component < 0:
            return "what no table names"
        return f"{what} {component} of query {query}, query head {head}"
