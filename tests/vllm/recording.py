"""Recorded runs of vLLM's scheduler, and what was true of its pool beside each step.

A trace is JSON lines, compressed: a header, then one object a step with the fields of
the scheduler's output, what happened unsaid, and the changes of the truth.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.vllm.watch import Unsaid
from tests.vllm.comparison import PoolTruth

FOLDER = Path(__file__).parent / "traces"
Facts: TypeAlias = dict[str, Any]  # by request, or by block as text

NEW = ("req_id", "block_ids", "num_computed_tokens")
RUNNING = ("req_ids", "resumed_req_ids", "new_block_ids", "num_computed_tokens")


def plain_output(output: Any) -> dict[str, Any]:
    """What of a scheduler's output the adapter reads, as plain data."""
    running = output.scheduled_cached_reqs
    return {
        "scheduled_new_reqs": [
            {name: getattr(new, name) for name in NEW}
            for new in output.scheduled_new_reqs
        ],
        "scheduled_cached_reqs": {
            name: getattr(running, name) for name in RUNNING if name != RUNNING[1]
        }
        | {RUNNING[1]: sorted(running.resumed_req_ids)},
        "num_scheduled_tokens": output.num_scheduled_tokens,
        "scheduled_spec_decode_tokens": output.scheduled_spec_decode_tokens,
        "finished_req_ids": sorted(output.finished_req_ids),
        "preempted_req_ids": sorted(output.preempted_req_ids or ()),
    }


def output_of(data: dict[str, Any]) -> Any:
    """An object with the fields of the scheduler's output."""
    fields = dict(data)
    fields["scheduled_new_reqs"] = [
        SimpleNamespace(**new) for new in data["scheduled_new_reqs"]
    ]
    fields["scheduled_cached_reqs"] = SimpleNamespace(**data["scheduled_cached_reqs"])
    return SimpleNamespace(**fields)


@attrs.define
class Truths:
    """What is true of the pool: tables, references, levels and the cached blocks."""

    tables: Facts = attrs.field(factory=dict)
    references: Facts = attrs.field(factory=dict)
    levels: Facts = attrs.field(factory=dict)
    cached: Facts = attrs.field(factory=dict)

    def changes(self, later: Truths) -> dict[str, Facts]:
        """What differs in `later`; None stands for what is no more."""
        changes: dict[str, Facts] = {}
        for name, before in attrs.asdict(self, recurse=False).items():
            after = getattr(later, name)
            changed = {k: v for k, v in after.items() if before.get(k) != v}
            changes[name] = changed | dict.fromkeys(before.keys() - after.keys())
        return changes

    def apply(self, changes: Mapping[str, Facts]) -> None:
        """Follow the changes of a step."""
        for name, changed in changes.items():
            facts = getattr(self, name)
            for key, value in changed.items():
                if value is None:
                    del facts[key]
                else:
                    facts[key] = value

    @classmethod
    def of(cls, truth: PoolTruth) -> Truths:
        """The facts of a pool, with keys as JSON has them; what is 0 is left out."""
        known = (truth.references > 0) | truth.cached
        return cls(
            {name: list(table) for name, table in truth.tables.items()},
            _by_block(truth.references),
            _by_block(truth.levels * known),
            _by_block(truth.cached.astype(np.int64)),
        )

    def of_pool(self, blocks: int) -> PoolTruth:
        """The facts as the pool of so many blocks has them."""
        columns = np.zeros((3, blocks), np.int64)
        facts = (self.references, self.levels, self.cached)
        for column, values in zip(columns, facts, strict=True):
            for block, value in values.items():
                column[int(block)] = value
        references, levels, cached = columns
        return PoolTruth(self.tables, references, cached > 0, levels)


def _by_block(column: NDArray[np.int64]) -> Facts:
    return {str(block): int(column[block]) for block in np.flatnonzero(column)}


@attrs.frozen
class TraceStep:
    """One recorded step: what was said, what was not, and what is true after it."""

    output: Any
    unsaid: Unsaid
    truths: Truths


def write(name: str, header: dict[str, Any], steps: Iterable[dict[str, Any]]) -> None:
    """Write a trace; equal runs give equal files."""
    lines = [json.dumps(line, separators=(",", ":")) for line in (header, *steps)]
    data = gzip.compress("\n".join(lines).encode(), 9, mtime=0)
    (FOLDER / f"{name}.jsonl.gz").write_bytes(data)


def names() -> list[str]:
    """The traces there are."""
    return sorted(path.name.partition(".")[0] for path in FOLDER.glob("*.jsonl.gz"))


def read(name: str) -> tuple[dict[str, Any], Callable[[], Iterator[TraceStep]]]:
    """A trace's header, and its steps to be gone through."""
    data = gzip.decompress((FOLDER / f"{name}.jsonl.gz").read_bytes())
    header, *lines = [json.loads(line) for line in data.decode().splitlines()]

    def steps() -> Iterator[TraceStep]:
        truths = Truths()
        for line in lines:
            truths.apply(line["truth"])
            yield TraceStep(output_of(line["output"]), Unsaid(**line["unsaid"]), truths)

    return header, steps
