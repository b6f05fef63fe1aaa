"""How long a step of every system takes: its counts, and its streams.

32 requests of about 2,000 tokens (8 where every query head has its own Key head), all
of which decode: `python tests/benchmarks/bench_systems.py`. CPU time, the least of
three steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from patton.config import aim_gddr6, model_preset
from patton.steps import Step
from patton.systems import SYSTEMS

LOADS = {"llama3-8b": 32, "opt-6.7b": 8}


def least(work: Callable[[], object]) -> float:
    """Milliseconds of CPU."""
    times = []
    for _ in range(3):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return 1e3 * min(times)


def main() -> None:
    """A line for each model and system."""
    for model, requests in LOADS.items():
        for name, make in SYSTEMS.items():
            memory = make().on(aim_gddr6(), model_preset(model))
            size, ids = memory.block_tokens, iter(range(memory.blocks))
            lengths = {r: 1984 + r for r in range(requests)}
            step = Step()
            for request, tokens in lengths.items():
                blocks = [next(ids) for _ in range(-(-(tokens + 1) // size))]
                step.grants = [*step.grants, (request, [], blocks)]
                step.writes = [*step.writes, (request, 0, tokens)]
            memory.publish(memory.apply(step))
            placed = memory.apply(
                Step(
                    writes=[(r, n, 1) for r, n in lengths.items()],
                    reads=[(r, 0, n + 1) for r, n in lengths.items()],
                )
            )
            counts, streams = least(placed.counts), least(placed.streams)
            entries = sum(map(len, placed.streams().present()))
            print(
                f"{model:10} {name:27} counts {counts:6.1f} ms   "
                f"streams {streams:7.1f} ms, {entries:7} entries"
            )


if __name__ == "__main__":
    main()
