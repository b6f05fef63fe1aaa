"""Records the traces: `python -m tests.vllm.record [name...]`, where vLLM is installed.

The scheduler is vLLM's own, without PATTON; what it leaves unsaid is noted as the
connector notes it, and the truth is worked out apart from that.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from patton.vllm.watch import Watch
from tests.vllm.real.scenarios import SCENARIOS
from tests.vllm.real.serving import BLOCK, Served, Serving
from tests.vllm.real.truth import Truth
from tests.vllm.recording import Truths, plain_output, write

STEPS = 160


def record(name: str, serving: Serving, folder: Path) -> None:
    """Serve and write one trace."""
    served = Served.of(serving, folder)
    manager = served.scheduler.kv_cache_manager
    watch = Watch.of(
        manager,
        windowed=serving.window is not None,
        dropping=serving.policy == "priority",
        speculating=serving.drafts > 0,
    )
    header = {
        "block_tokens": BLOCK,
        "blocks": serving.usable + 1,
        "window": serving.window,
    }
    write(name, header, _steps(served, watch, Truth.of(served)))


def _steps(served: Served, watch: Watch, truth: Truth) -> Iterator[dict[str, Any]]:
    before = Truths()
    for output in served.steps(STEPS):
        now = Truths.of(truth.follow(output))
        yield {
            "output": plain_output(output),
            "unsaid": attrs.asdict(watch.unsaid()),
            "truth": before.changes(now),
        }
        before = now


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or SCENARIOS:
            record(name, SCENARIOS[name], Path(folder))
