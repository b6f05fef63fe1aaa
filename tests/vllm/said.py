"""What vLLM would say of the steps of `patton.engine`, which decides as vLLM does."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import attrs

from patton.engine.requests import Request, StepRecord
from patton.engine.scheduler import Scheduler
from patton.engine.tokens import ConversationTokens, prefix_base, private_base


def name_of(request: int) -> str:
    return f"{request:04d}"


def block_ids(blocks: Sequence[int]) -> list[int]:
    """Ids as vLLM's pool has them, whose 0 is never given out."""
    return [block + 1 for block in blocks]


def output(**fields: Any) -> Any:
    """A scheduler's output in which nothing happens, but for `fields`."""
    nothing: dict[str, Any] = {
        "scheduled_new_reqs": [],
        "scheduled_cached_reqs": running(),
        "num_scheduled_tokens": {},
        "scheduled_spec_decode_tokens": {},
        "finished_req_ids": set(),
        "preempted_req_ids": set(),
        "kv_cache_block_copies": None,
    }
    return SimpleNamespace(**(nothing | fields))


def new(request: str, blocks: Sequence[int], computed: int = 0) -> Any:
    """A request that is scheduled for the first time."""
    return SimpleNamespace(
        req_id=request, block_ids=(list(blocks),), num_computed_tokens=computed
    )


def running(*rows: tuple[str, int, Sequence[int]], resumed: Sequence[str] = ()) -> Any:
    """Requests that ran before: (request, tokens computed, new blocks)."""
    return SimpleNamespace(
        req_ids=[request for request, _, _ in rows],
        resumed_req_ids=set(resumed),
        new_block_ids=[(list(blocks),) if blocks else None for *_, blocks in rows],
        num_computed_tokens=[computed for _, computed, _ in rows],
    )


@attrs.define
class Narrator:
    """Says step by step what an engine's records mean."""

    ended: list[str] = attrs.field(factory=list)
    known: set[int] = attrs.field(factory=set)

    def said(self, record: StepRecord) -> Any:
        """The output of one scheduled step, before it is completed."""
        new_blocks = {request: (hits, fresh) for request, hits, fresh in record.grants}
        admitted = {admission.request for admission in record.admissions}
        firsts, rows, resumed = [], [], []
        for request, start, _, _ in record.scheduled:
            name = name_of(request.id)
            hits, fresh = new_blocks.get(request.id, ([], []))
            if request.id in admitted and request.id not in self.known:
                firsts.append(new(name, block_ids(request.blocks), start))
            else:
                rows.append((name, start, block_ids([*hits, *fresh])))
                resumed += [name] if request.id in admitted else []
        self.known |= admitted
        ended, self.ended = self.ended, []
        return output(
            scheduled_new_reqs=firsts,
            scheduled_cached_reqs=running(*rows, resumed=resumed),
            num_scheduled_tokens={
                name_of(request.id): count for request, _, count, _ in record.scheduled
            },
            finished_req_ids=set(ended),
            preempted_req_ids={name_of(request) for request in record.preempted},
        )

    def completed(self, record: StepRecord) -> None:
        """The step has run; what ended with it is said in the next output."""
        self.ended += [name_of(request.id) for request in record.finished]


@attrs.frozen
class Turn:
    """A request to be served: tokens, whose they are, and how many begin alike."""

    prompt: int
    answer: int
    owner: int
    shared: int = 0

    def request(self, number: int) -> Request:
        """The engine's request of this turn."""
        shared = min(self.shared, self.prompt)
        tokens = ConversationTokens(private_base(self.owner), prefix_base(0), shared)
        return Request.of(number, self.prompt, self.answer, tokens)


def served(
    turns: Sequence[Turn], *, blocks: int, concurrency: int = 4, token_budget: int = 64
) -> Scheduler:
    """An engine with these turns waiting, of those that it can serve at all."""
    engine = Scheduler.of(blocks, concurrency=concurrency, token_budget=token_budget)
    for number, turn in enumerate(turns):
        if turn.prompt + turn.answer - 1 <= blocks * 16:
            engine.add(turn.request(number))
    return engine
