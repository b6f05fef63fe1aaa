"""CPU time of bookkeeping: microseconds per request and step, and per bound block.

Run as a program: `python tests/benchmarks/bench_runtime.py [--json]`. Pure decode:
every running request writes one token a step and reads all it has; every sixteenth step
of a request binds a block and commits one, and all of that is included. Bound blocks:
whole prompts are bound and written at once. Each figure is the best of several
repetitions; the time of an empty Python loop stands beside them, so that machines can
be compared.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable

import attrs

from patton.config import aim_gddr6, model_preset
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step

REPETITIONS = 7


def layout(layers: int) -> Layout:
    """Llama3-8B with fewer layers: the same shapes, more room per layer."""
    model = attrs.evolve(model_preset("llama3-8b"), layers=layers)
    return Layout.of(aim_gddr6(), model)


def cpu_seconds(action: Callable[[], None]) -> float:
    """CPU time of one call, garbage of earlier ones left out."""
    gc.collect()
    gc.freeze()
    began = time.process_time()
    action()
    return time.process_time() - began


def decode(requests: int, steps: int, prompt: int = 1024) -> float:
    """Microseconds per request and step of pure decode."""
    runtime = Runtime.of(layout(4))
    size = runtime.layout.block_tokens
    following = 0

    def blocks(count: int) -> list[int]:
        nonlocal following
        following += count
        return list(range(following - count, following))

    position = {}
    for request in range(requests):
        tokens = prompt + request % size
        grants = [(request, (), blocks(-(-tokens // size)))]
        runtime.apply_step(Step(grants=grants, writes=[(request, 0, tokens)]))
        position[request] = tokens
    planned = []
    for _ in range(steps):
        full = [r for r, p in position.items() if p % size == 0]
        step = Step(
            grants=[(request, [], blocks(1)) for request in full],
            writes=[(request, p, 1) for request, p in position.items()],
            reads=[(request, 0, p + 1) for request, p in position.items()],
        )
        planned.append(step)
        position = {request: p + 1 for request, p in position.items()}

    def run() -> None:
        for step in planned:
            runtime.publish(runtime.apply_step(step))

    return cpu_seconds(run) / requests / steps * 1e6


def bind(requests: int = 256, prompt_blocks: int = 64) -> float:
    """Microseconds per bound block, its tokens written with it."""
    runtime = Runtime.of(layout(4))
    size = runtime.layout.block_tokens
    planned = [
        Step(
            grants=[
                (
                    request,
                    [],
                    range(request * prompt_blocks, (request + 1) * prompt_blocks),
                )
            ],
            writes=[(request, 0, prompt_blocks * size)],
        )
        for request in range(requests)
    ]

    def run() -> None:
        for step in planned:
            runtime.apply_step(step)

    return cpu_seconds(run) / requests / prompt_blocks * 1e6


def empty_loop() -> float:
    """Seconds of ten million turns of an empty loop."""

    def run() -> None:
        for _ in range(10**7):
            pass

    return cpu_seconds(run)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    figures = {
        "decode_us_per_request_step_32": lambda: decode(32, 500),
        "decode_us_per_request_step_256": lambda: decode(256, 60),
        "us_per_bound_block": bind,
        "empty_loop_seconds": empty_loop,
    }
    results = {n: min(f() for _ in range(REPETITIONS)) for n, f in figures.items()}
    if parser.parse_args().json:
        print(json.dumps(results))
    else:
        for name, value in results.items():
            print(f"{name:35} {value:8.3f}")


if __name__ == "__main__":
    main()
