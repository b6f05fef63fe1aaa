"""Speed of stream generation: entries per second of CPU time, an entry a row.

Run as a program: `python tests/benchmarks/bench_generate.py [--json]`. One layer of
Llama3-8B, 256 requests of 2,048 tokens, one query token each, and the smaller batch of
a decode step. Three tables: pairs one after another, pairs in random order (what long
use makes of them), and the latter with the last block of every request in a slot. Best
of several repetitions.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from patton.commands import CommandStream
from patton.config import aim_gddr6, model_preset
from patton.generate.scores import score_stream
from patton.generate.values import partial_stream, value_stream
from patton.layout import Layout
from patton.steps import Ints, PlacedStep, Tables

REPETITIONS = 15
TOKENS = 2048
Generator = Callable[[PlacedStep], CommandStream | None]


def layout() -> Layout:
    """Llama3-8B, with fewer layers where that is needed to hold all requests."""
    model = attrs.evolve(model_preset("llama3-8b"), layers=4)
    return Layout.of(aim_gddr6(), model, slots=256)


def decode_step(requests: int, kind: str) -> PlacedStep:
    """A step in which every request reads all of its `TOKENS` tokens."""
    shape = layout()
    blocks = TOKENS // shape.block_tokens
    pairs = np.arange(requests * blocks // shape.pair_blocks)
    if kind != "ordered":
        pairs = np.random.default_rng(0).permutation(pairs)
    places = np.arange(shape.pair_blocks)
    granule = (pairs[:, None] * shape.pair_blocks + places).ravel()
    slot, opened = np.full(len(granule), -1), np.full(len(granule), shape.block_tokens)
    if kind == "partial":
        slot[blocks - 1 :: blocks] = np.arange(requests)
        opened[blocks - 1 :: blocks] = 7
    ends = opened.reshape(requests, blocks).sum(axis=1)
    tables = Tables(np.arange(requests + 1) * blocks, granule, slot, opened)
    none: Ints = np.zeros(0, np.int64)
    reads = (np.arange(requests), np.zeros(requests, np.int64), ends)
    names = tuple(range(requests))
    arrays: Any = [*[none] * 10, *reads, *[none] * 3]
    return PlacedStep(shape, 1, names, tables, *arrays)


def measure(generator: Generator, placed: PlacedStep) -> dict[str, float]:
    """Entries, the least milliseconds, and million entries per second."""
    best, entries = float("inf"), 0
    gc.collect()
    for _ in range(REPETITIONS):
        began = time.process_time()
        stream = generator(placed)
        best = min(best, time.process_time() - began)
        entries = len(stream) if stream is not None else 0
    return {
        "entries": entries,
        "milliseconds": round(best * 1e3, 3),
        "million_entries_per_second": round(entries / best / 1e6, 1),
    }


def main() -> None:
    """Print a line per generator, table and batch, or all of it as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    generators: dict[str, Generator] = {
        "qk": score_stream,
        "sv": value_stream,
        "partial": partial_stream,
    }
    results = {}
    for requests in (256, 32):
        for kind in ("ordered", "shuffled", "partial"):
            placed = decode_step(requests, kind)
            for name, generator in generators.items():
                if name != "partial" or kind == "partial":
                    key = f"{name} {requests} {kind}"
                    results[key] = measure(generator, placed)
    if as_json:
        print(json.dumps(results))
        return
    for key, figures in results.items():
        words = (f"{name}={value}" for name, value in figures.items())
        print(key, *words)


if __name__ == "__main__":
    main()
