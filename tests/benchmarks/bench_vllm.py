"""What the connector costs vLLM's scheduler: CPU time of schedule() and the update.

Run as a program where vLLM is installed: `python tests/benchmarks/bench_vllm.py
[--json]`. vLLM's own scheduler serves without a model, alone and with the connector, in
one process and in turns of some steps: of more than one, since they would keep each
other's state out of the processor's caches, as no server does. A figure is the ratio of
the medians (and means), so that other load on the machine meets both; of three such
measurements the middle one, since what is made first lies better in memory: each begins
with another scheduler. Pure decode, then chats whose blocks are all taken anew, then
chats with a full cache, where each block that is taken held a prefix before.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import attrs

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.vllm.real.serving import Served, Serving

PER_GIB = 1 << 17  # blocks of this model
TURN = 20  # steps
Kind = dict[str, Any]
DECODE: Kind = {
    "prompt": (900, 1000),
    "answer": (600, 700),
    "turns": (1, 1),
    "budget": 8192,
}
CHATS: Kind = {"prompt": (16, 160), "answer": (16, 320), "budget": 2048}
ROOM = 20_000  # blocks


@attrs.define
class Timed:
    """A scheduler whose calls are timed; seconds of each step."""

    served: Served
    seconds: list[float] = attrs.field(factory=list)
    spent: float = 0.0

    @classmethod
    def of(cls, serving: Serving, folder: Path) -> Timed:
        timed = cls(Served.of(serving, folder))
        scheduler = timed.served.scheduler
        for name in ("schedule", "update_from_output"):
            setattr(scheduler, name, timed.clocked(getattr(scheduler, name)))
        return timed

    def clocked(self, call: Any) -> Any:
        def run(*arguments: Any) -> Any:
            began = time.thread_time()
            result = call(*arguments)
            self.spent += time.thread_time() - began
            return result

        return run

    def step(self) -> None:
        self.spent = 0.0
        for _ in self.served.steps(1):
            pass
        self.seconds.append(self.spent)


def compare(*sizes: int, **kind: Any) -> dict[str, float]:
    """The middle one of measurements that begin with each of the schedulers."""
    found = [measured(first, *sizes, **kind) for first in range(3)]
    return {name: statistics.median(f[name] for f in found) for name in found[0]}


def measured(
    first: int, running: int, steps: int, warm: int, usable: int = ROOM, **kind: Any
) -> dict[str, float]:
    """Microseconds of a step without the connector, and the ratios with it."""
    serving = Serving(
        running=running, open=2 * running, usable=usable, max_len=2048, **kind
    )
    # Room for the pool four times, so that pairs need not go, and no more than that:
    # what is never used would still be in the way of the processor's caches.
    room = (1 << (4 * usable - 1).bit_length()) / PER_GIB
    connector = {"device": "aim-gddr6", "capacity_gib": room}
    ways = {
        "alone": serving,
        "connector": attrs.evolve(serving, connector=connector),
        "gated": attrs.evolve(serving, connector=connector, gated=True),
    }
    with tempfile.TemporaryDirectory() as folder:
        order = [*ways][first:] + [*ways][:first]
        timed = {name: Timed.of(ways[name], Path(folder)) for name in order}
        gc.collect()
        gc.freeze()
        for _ in range((warm + steps) // TURN):
            for each in timed.values():
                gc.collect()  # nobody pays for what the one before has left
                for _ in range(TURN):
                    each.step()
        gc.unfreeze()
    medians = {n: statistics.median(t.seconds[warm:]) for n, t in timed.items()}
    means = {n: statistics.mean(t.seconds[warm:]) for n, t in timed.items()}
    figures = {"alone_us": medians["alone"] * 1e6}
    for name in ("connector", "gated"):
        figures[f"{name}_median"] = medians[name] / medians["alone"] - 1
        figures[f"{name}_mean"] = means[name] / means["alone"] - 1
    return figures


KINDS = {
    "decode_32": lambda: compare(32, 400, 40, **DECODE),
    "decode_256": lambda: compare(256, 120, 60, **DECODE),
    "chats_32": lambda: compare(32, 1500, 100, **CHATS),
    "chats_256": lambda: compare(256, 300, 100, **CHATS),
    "full_32": lambda: compare(32, 1200, 1800, usable=5000, **CHATS),
    "full_256": lambda: compare(256, 600, 1700, usable=40_000, **CHATS),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("kinds", nargs="*", help=f"some of {', '.join(KINDS)}")
    arguments = parser.parse_args()
    figures = {kind: KINDS[kind]() for kind in arguments.kinds or KINDS}
    if arguments.json:
        print(json.dumps(figures))
        return
    print("kind         alone us   connector: median, mean   with the gate")
    for kind, f in figures.items():
        print(
            f"{kind:12} {f['alone_us']:8.0f}   {f['connector_median']:+17.1%} "
            f"{f['connector_mean']:+6.1%}   {f['gated_median']:+6.1%} "
            f"{f['gated_mean']:+6.1%}"
        )


if __name__ == "__main__":
    main()
