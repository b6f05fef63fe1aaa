"""Speed of the AiM timing model in trace lines per second, reading included.

Run as a program: `python tests/benchmarks/test_aim_speed.py [--json]`. Traces of 20,000
lines; times are CPU seconds of one process, the best of some repetitions. The targets
are in the issue that asked for the model; nothing here is asserted, since machines
differ. The public simulator, on the machine of the targets: 2,500, 27,000, 23,000 and
182,000 lines per second for the first four.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator

from patton.device.aim import simulate

LINES = 20_000
REPETITIONS = 3
ALL = "0xffffffff"
TARGETS = {
    ("attention, 32 channels", "head"): 150_000,
    ("attention, one channel", "head"): 150_000,
    ("triples, channel by channel", "head"): 150_000,
    ("random writes", "head"): 100_000,
    ("random writes", "pin"): 60_000,
    ("diverged by random writes", "head"): 15_000,
}


def attention(mask: str) -> Iterator[str]:
    """QK^T rows of 8 blocks of 8 bursts and SV rows of 16 bursts."""
    row = 0
    while True:
        yield f"AiM WR_GB 64 0 {mask}"
        for _ in range(8):
            yield from triple(mask, 8, row)
        yield f"AiM WR_GB 16 0 {mask}"
        yield from triple(mask, 16, row + 100)
        row = (row + 1) % 16_000


def triple(mask: str, bursts: int, row: int) -> Iterator[str]:
    """Set the accumulators, MAC, read the result."""
    yield f"AiM WR_BIAS 0 {mask}"
    yield f"AiM MAC_ABK {bursts} {mask} {row}"
    yield f"AiM RD_MAC 0 {mask}"


def channel_by_channel() -> Iterator[str]:
    """The triple on one channel after the other."""
    number = 0
    while True:
        yield from triple(f"{1 << number % 32:#x}", 16, number // 32 % 16_384)
        number += 1


def random_writes() -> Iterator[str]:
    """One burst each, anywhere."""
    generator = random.Random(1)
    while True:
        channel, bank = generator.randrange(32), generator.randrange(16)
        yield f"W MEM {channel} {bank} {generator.randrange(16_384)}"


def diverged() -> Iterator[str]:
    """Multicast triples with three random writes before each."""
    writes = random_writes()
    row = 0
    while True:
        for _ in range(3):
            yield next(writes)
        yield from triple(ALL, 16, row)
        row = (row + 1) % 16_384


TRACES = {
    "attention, 32 channels": lambda: attention(ALL),
    "attention, one channel": lambda: attention("0x80000000"),
    "triples, channel by channel": channel_by_channel,
    "random writes": random_writes,
    "diverged by random writes": diverged,
}


def lines_per_second(text: str, variant: str) -> float:
    """The best of some runs."""
    best = float("inf")
    for _ in range(REPETITIONS):
        start = time.process_time()
        simulate(text, variant=variant)
        best = min(best, time.process_time() - start)
    return LINES / best


def measure() -> Iterator[tuple[str, str, float]]:
    """Trace, variant, and lines per second."""
    for name, make in TRACES.items():
        lines = make()
        text = "\n".join(next(lines) for _ in range(LINES)) + "\nAiM EOC\n"
        for variant in ("head", "pin", "physical"):
            yield name, variant, lines_per_second(text, variant)


def main() -> None:
    """Print a table, or one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    for name, variant, speed in measure():
        target = TARGETS.get((name, variant))
        row = {"trace": name, "variant": variant, "lines_per_second": round(speed)}
        if as_json:
            print(json.dumps(row | {"target": target}))
        else:
            print(f"{name:28} {variant:9} {speed:10,.0f}  target {target or '-':>8}")


if __name__ == "__main__":
    main()
