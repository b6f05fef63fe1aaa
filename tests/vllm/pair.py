"""An adapter and the worker that follows it, driven by made-up outputs."""

from __future__ import annotations

from typing import Any

import attrs

from patton.config import model_preset, tiny_device
from patton.layout import Layout
from patton.runtime import Runtime
from patton.vllm.adapter import Adapter
from patton.vllm.lifecycle import Lifecycle
from patton.vllm.options import Options
from patton.vllm.watch import NOTHING, Unsaid
from patton.vllm.worker import Worker
from tests.vllm.comparison import scheduling
from tests.vllm.said import new, output, running

LAYOUT = Layout.of(tiny_device(), model_preset("tiny"))


@attrs.define
class Pair:
    """An adapter and the worker that follows it."""

    adapter: Adapter
    worker: Worker
    steps: int = 0

    @classmethod
    def of(cls, layout: Layout = LAYOUT, check: Any = "placement") -> Pair:
        lifecycle = Lifecycle.of(scheduling(layout, 64))
        options = Options(check=check)
        return cls(
            Adapter(lifecycle), Worker.of(Runtime.of(layout, blocks=64), options)
        )

    @property
    def runtime(self) -> Runtime:
        return self.adapter.lifecycle.runtime

    def step(self, unsaid: Unsaid = NOTHING, **fields: Any) -> Any:
        """One scheduler output, as far as it is not empty; what the worker places."""
        events = self.adapter.step(output(**fields), unsaid)
        self.worker.advance(self.steps, events)
        self.steps += 1
        assert self.worker.current is not None
        return self.worker.current.placed

    def admit(self, request: str, blocks: list[int], count: int, hit: int = 0) -> Any:
        return self.step(
            scheduled_new_reqs=[new(request, blocks, hit)],
            num_scheduled_tokens={request: count},
        )

    def go_on(
        self, request: str, first: int, count: int = 1, blocks: tuple[int, ...] = ()
    ) -> Any:
        return self.step(
            scheduled_cached_reqs=running((request, first, blocks)),
            num_scheduled_tokens={request: count},
        )
