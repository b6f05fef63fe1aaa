"""Capacity under pressure: what each allocation policy makes of the same device.

Run as a program: `python tests/benchmarks/capacity_table.py WORKLOAD [--pools 56 64 96]
[--steps 10000] [--jobs 2]`. Llama3-8B, context limit 8,192, 32 running requests. Prints
a Markdown table: prefix hit rate, effective capacity (the share of the blocks with
which a plain block-granular cache hits as often, Paper 5.4) and blocks per SV run. No
streams are generated, as none of the three depends on them.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from patton.config import aim_gddr6, model_preset
from patton.engine.serving import LoopSettings, reference_hit_rate
from patton.engine.session import RunSettings, Session
from patton.engine.workloads import open_workload
from patton.layout import Layout

Policy = tuple[str, int | None, dict[str, Any]]

POLICIES: tuple[Policy, ...] = (
    ("no adoption, 16, spread", 16, {"adoption": False}),
    ("adoption, 16, spread", 16, {}),
    ("adoption, 16, packed", 16, {"choice": "packed"}),
    ("adoption, 8, spread", 8, {}),
    ("adoption, 8, packed", 8, {"choice": "packed"}),
    ("adoption, 4, spread", 4, {}),
    ("adoption, 4, packed", 4, {"choice": "packed"}),
    ("no O2 (whole sets)", None, {}),
)


def layout(pair_blocks: int | None) -> Layout:
    """Llama3-8B on 16 GiB; pairs of whole Value Row Sets where None is given."""
    plain = Layout.of(aim_gddr6(), model_preset("llama3-8b"))
    size = plain.stripes * plain.values_per_set if pair_blocks is None else pair_blocks
    return Layout.of(plain.device, plain.model, pair_blocks=size)


def measure(task: tuple[str, int, int, Policy]) -> tuple[float, float, float]:
    """Hit rate, effective capacity, blocks per SV run of one policy."""
    path, pool, steps, (_, pair_blocks, options) = task
    settings = RunSettings(
        open_workload(path, tokenizer="llama3"),
        layout(pair_blocks),
        LoopSettings(concurrency=32, pool=pool, max_context=8192),
        steps,
        check="lifecycle",
        **options,
    )
    session = Session.of(settings)
    session.run()
    hits = session.loop.statistics.prefix_hit_rate
    return hits, session.effective_capacity(), session.value_runs.blocks_per_run


def main() -> None:
    """Measure all policies at all pools and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("workload")
    parser.add_argument("--pools", type=int, nargs="+", default=[56, 64, 96])
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    tasks = [
        (chosen.workload, pool, chosen.steps, policy)
        for pool in chosen.pools
        for policy in POLICIES
    ]
    print("| pool | policy | hit rate | effective capacity | blocks per SV run |")
    print("|---|---|---|---|---|")
    with ProcessPoolExecutor(chosen.jobs) as workers:
        for task, figures in zip(tasks, workers.map(measure, tasks), strict=True):
            if task[3] is POLICIES[0]:
                print(reference_row(*task[:3]))
            hits, capacity, run = figures
            name = task[3][0]
            print(f"| {task[1]} | {name} | {hits:.1%} | {capacity:.1%} | {run:.1f} |")


def reference_row(path: str, pool: int, steps: int) -> str:
    """The plain cache of as many blocks as pairs of 16 give."""
    loop = LoopSettings(concurrency=32, pool=pool, max_context=8192)
    workload = open_workload(path, tokenizer="llama3")
    hits = reference_hit_rate(workload, loop, layout(16).granules, steps)
    return f"| {pool} | reference | {hits:.1%} | 100.0% | |"


if __name__ == "__main__":
    main()
