"""The prefill of a served run, and the part of it that any engine would compute.

An engine with its own GPU cache of as many blocks serves the same turns. What it finds
cached at a turn's first admission needs no prefill; the rest of the prompt is required,
once. All else that a run computes, its runtime causes: evicted or never cached
prefixes, and whatever is computed again after a preemption. (Paper 5.3)
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.engine.requests import Request, StepRecord
from patton.engine.serving import LoopSettings, ServingLoop
from patton.engine.workloads import Workload
from patton.study.prefill import Batches

Turn = tuple[int, int]


@attrs.define(eq=False)
class CacheReference:
    """Prefix hits of a plain block-granular cache, turn by turn, served as needed."""

    loop: ServingLoop
    hits: dict[Turn, int] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, workload: Workload, settings: LoopSettings, blocks: int
    ) -> CacheReference:
        """The reference of as many blocks. Raises what `ServingLoop.of` raises."""
        plain = attrs.evolve(settings, caching=True, block_tokens=16)
        return cls(ServingLoop.of(workload, plain, blocks))

    def hit_tokens(self, request: Request) -> int:
        """Cached prompt tokens of the request's turn; 0 if it is never served."""
        turn = (request.conversation, request.turn)
        while turn not in self.hits and not self.loop.is_exhausted:
            self._step()
        return self.hits.get(turn, 0)

    def _step(self) -> None:
        record = self.loop.step()
        turns = {r.id: (r.conversation, r.turn) for r, *_ in record.scheduled}
        for admission in record.admissions:
            if not admission.readmitted:
                self.hits[turns[admission.request]] = admission.hit_tokens
        self.loop.completed(record)


@attrs.define(eq=False)
class _Steps:
    """Rows of `Batches` as they come."""

    rows: list[tuple[int, int, int]] = attrs.field(factory=list)

    def add(self, ranges: list[tuple[int, int]]) -> None:
        """A step that computes positions [start, end) of its requests."""
        self.rows.append(
            (
                sum(end - start for start, end in ranges),
                sum(_positions(end) - _positions(start) for start, end in ranges),
                sum(end for _, end in ranges),
            )
        )

    def batches(self) -> Batches:
        columns = np.array(self.rows, np.int64).reshape(len(self.rows), 3).T
        return Batches(*columns)


def _positions(end: int) -> int:
    """Positions that the tokens before `end` attend to, each its own and all before."""
    return end * (end + 1) // 2


@attrs.define(eq=False)
class PrefillMeter:
    """Collects the prefill of a run's steps, all of it and the required part."""

    reference: CacheReference
    complete: _Steps = attrs.field(factory=_Steps)
    required: _Steps = attrs.field(factory=_Steps)
    _done: dict[int, int] = attrs.field(factory=dict)

    def add(self, record: StepRecord) -> None:
        """Count one completed step."""
        every: list[tuple[int, int]] = []
        needed: list[tuple[int, int]] = []
        for request, start, count, decode in record.scheduled:
            if decode:
                continue
            end = start + count
            every.append((start, end))
            first = max(start, self._required_from(request))
            last = min(end, request.prompt_tokens)
            if first < last:
                needed.append((first, last))
                self._done[request.id] = last
        self.complete.add(every)
        self.required.add(needed)
        for request in record.finished:
            self._done.pop(request.id, None)

    def _required_from(self, request: Request) -> int:
        """The first position whose computation is still required."""
        known = self._done.get(request.id)
        if known is None:
            known = self._done[request.id] = self.reference.hit_tokens(request)
        return known
