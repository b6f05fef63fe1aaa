"""What a SchedulerOutput says: the only place that knows its fields (vLLM 0.33).

Duck-typed, so that recorded outputs do as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from patton.errors import SchedulerOutputError
from patton.steps import Request

NULL_BLOCK = 0  # stands in tables for what a request has given up


@attrs.define
class Spans(Sequence[tuple[str, int, int]]):
    """(request, first position, tokens) by columns, as the output has them.

    A step has up to thousands of spans, of which the scheduler's half keeps none.
    """

    requests: Sequence[str]
    firsts: Sequence[int]
    counts: Sequence[int]

    def __len__(self) -> int:
        return len(self.requests)

    def __iter__(self) -> Iterator[tuple[str, int, int]]:
        return zip(self.requests, self.firsts, self.counts, strict=True)

    def __getitem__(self, index: Any) -> Any:
        return self.requests[index], self.firsts[index], self.counts[index]


@attrs.define
class Observed:
    """The tokens of one step of the scheduler, and what ended before it.

    finished, preempted: requests that gave up all blocks since the last step, some
    possibly never heard of. spans: in the scheduler's order, which none of its lists
    has. drafts: request -> trailing tokens of its span that may be rejected.
    """

    finished: Collection[str]
    preempted: Collection[str]
    spans: Spans
    drafts: dict[Request, int]


@attrs.define
class Granted:
    """The blocks of one step of the scheduler.

    admitted: request -> its whole table and its first position, for new and resumed
    ones; grown: request -> blocks appended to its table.
    """

    admitted: Mapping[str, tuple[Sequence[int], int]]
    grown: Mapping[str, Sequence[int]]


def observe(output: Any) -> Observed:
    """Read the tokens of a SchedulerOutput.

    Raises SchedulerOutputError for copied blocks (partial hits).
    """
    if getattr(output, "kv_cache_block_copies", None):
        copies = len(output.kv_cache_block_copies)
        raise SchedulerOutputError("kv_cache_block_copies", f"{copies} copies", "none")
    running, counts = output.scheduled_cached_reqs, output.num_scheduled_tokens
    names, firsts = running.req_ids, running.num_computed_tokens
    scheduled = list(counts)
    if names != scheduled:  # mostly they are, when requests only run on
        starts = dict(zip(names, firsts, strict=True))
        for new in output.scheduled_new_reqs:
            starts[new.req_id] = new.num_computed_tokens
        firsts = [starts[request] for request in scheduled]
    spans = Spans(scheduled, list(firsts), list(counts.values()))
    drafts = output.scheduled_spec_decode_tokens
    return Observed(
        finished=output.finished_req_ids,
        preempted=output.preempted_req_ids or (),
        spans=spans,
        drafts={name: len(tokens) for name, tokens in drafts.items()} if drafts else {},
    )


def granted(output: Any) -> Granted:
    """Read the blocks of a SchedulerOutput.

    Raises SchedulerOutputError for several cache groups.
    """
    running = output.scheduled_cached_reqs
    grown = {
        request: _only(tables)
        for request, tables in zip(running.req_ids, running.new_block_ids, strict=True)
        if tables is not None
    }
    admitted = {
        new.req_id: (_only(new.block_ids), new.num_computed_tokens)
        for new in output.scheduled_new_reqs
    }
    for request in running.resumed_req_ids:
        first = running.num_computed_tokens[running.req_ids.index(request)]
        admitted[request] = grown.pop(request), first
    return Granted(admitted, grown)


def _only(tables: Sequence[Sequence[int]]) -> Sequence[int]:
    """The table of the one cache group."""
    if len(tables) != 1:
        value = f"tables of {len(tables)} cache groups"
        raise SchedulerOutputError("block_ids", value, "one cache group")
    return tables[0]
