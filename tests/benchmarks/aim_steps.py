"""What own steps cost on an AiM device, and how fast that is found.

`python tests/benchmarks/aim_steps.py CHATS.jsonl.gz [--steps N] [--json]` serves
conversations on Llama3-8B and OPT-6.7B, then for the last step of each: lines of its
trace per second (the target is 100,000), cycles and share of the MAC bound by phase,
with operands shared and split. Before that, without any workload: the paper's
microbenchmark, and single-token Value writes with and without a Commit Zone.
Seconds are CPU seconds of one process, the best of some repetitions.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from patton.config import device_preset, model_preset  # noqa: E402
from patton.device.aim import (  # noqa: E402
    format_trace,
    layer_trace,
    load_preset,
    simulate,
)
from patton.device.aim.convert import OPERAND_WAYS  # noqa: E402
from patton.device.aim.costs import Target, stream_cost  # noqa: E402
from patton.device.aim.energy import (  # noqa: E402
    PUBLISHED_COMPONENTS,
    load_energy_model,
)
from patton.engine.serving import LoopSettings  # noqa: E402
from patton.engine.session import RunSettings, Session, step_of  # noqa: E402
from patton.engine.workloads import open_workload  # noqa: E402
from patton.generate import StepStreams, generate_step  # noqa: E402
from patton.layout import Layout  # noqa: E402
from tests.device.aim.value_writes import written  # noqa: E402

Row = dict[str, Any]
REPETITIONS = 3
SIMULATORS = ("pin", "head")
SETTINGS = {"llama3-8b": (32, 64), "opt-6.7b": (8, 16)}


def microbenchmark() -> Iterator[Row]:
    """A row of 64 bursts at once and in 8 pieces; energy of the channel in use."""
    for variant in SIMULATORS:
        cycles, energy = [], []
        for pieces in (1, 8):
            unit = f"AiM WR_BIAS 0 1\nAiM MAC_ABK {64 // pieces} 1 7\nAiM RD_MAC 0 1\n"
            result = simulate(
                f"AiM WR_GB 64 0 1\n{unit * pieces}AiM EOC\n", variant=variant
            )
            parts = load_energy_model().of_channel(result, 31)
            cycles.append(result.cycles)
            energy.append(sum(parts[name] for name in PUBLISHED_COMPONENTS))
        yield {
            "what": "microbenchmark",
            "variant": variant,
            "cycles": cycles,
            "latency_ratio": round(cycles[1] / cycles[0], 3),
            "energy_ratio": round(energy[1] / energy[0], 3),
        }


def value_writes() -> Iterator[Row]:
    """Requests that write in step, for a block each, commits included."""
    for model, (requests, _) in SETTINGS.items():
        for variant in SIMULATORS:
            direct, staged = (
                written(model, requests, variant, commit_zone=zone)
                for zone in (False, True)
            )
            yield {
                "what": "single-token Value writes",
                "model": model,
                "requests": requests,
                "variant": variant,
                "activations": [direct.activations, staged.activations],
                "activation_ratio": direct.activations / staged.activations,
                "cycles": [direct.cycles, staged.cycles],
                "speed_up": round(direct.cycles / staged.cycles, 2),
            }


def last_step(chats: Path, model: str, steps: int) -> StepStreams:
    """The streams of the last of so many steps."""
    layout = Layout.of(device_preset("aim-gddr6"), model_preset(model))
    concurrency, pool = SETTINGS[model]
    loop = LoopSettings(
        concurrency=concurrency, pool=pool, max_context=layout.model.max_context
    )
    workload = open_workload(chats, tokenizer=layout.model.tokenizer)
    session = Session.of(RunSettings(workload, layout, loop, steps, "lifecycle"))
    while not session.is_done:
        record = session.loop.step()
        plan = session.runtime.apply_step(step_of(record))
        placed = plan.place()
        session.runtime.publish(plan)
        session.loop.completed(record)
    return generate_step(placed)


def step_speed(streams: StepStreams, model: str) -> Iterator[Row]:
    """Lines of a step's trace per second, by way and what is included."""
    for way in OPERAND_WAYS:
        lines = list(layer_trace(streams.present(), operands=way, notes=False))
        texts = {
            "text": format_trace(lines),
            "text with notes": format_trace(
                layer_trace(streams.present(), operands=way)
            ),
        }
        yield {
            "what": "speed of a step's trace",
            "model": model,
            "operands": way,
            "lines": len(lines),
            "lines_per_second": {
                "made and simulated": round(
                    len(lines) / _seconds(partial(_made, streams, way))
                ),
                **{
                    name: round(len(lines) / _seconds(partial(simulate, text)))
                    for name, text in texts.items()
                },
            },
        }


def phases(streams: StepStreams, model: str) -> Iterator[Row]:
    """Cycles of one layer by phase, and where they go."""
    channels = load_preset().size("channels")
    for variant in SIMULATORS:
        for way in OPERAND_WAYS:
            target = Target(variant, operands=way, channels=channels)
            for stream in streams.present():
                cost = stream_cost(stream, target)
                row: Row = {
                    "what": "phase",
                    "model": model,
                    "variant": variant,
                    "operands": way,
                    "phase": stream.phase.value,
                    "cycles": cost.cycles,
                    "energy_nj": round(sum(cost.energy_pj.values()) / 1000),
                }
                if cost.macs:
                    row["mac_bound"] = round(2 * cost.macs / cost.cycles, 4)
                    row["spent"] = {
                        reason: round(cycles / cost.cycles, 4)
                        for reason, cycles in cost.spent.items()
                    }
                yield row


def _made(streams: StepStreams, way: Any) -> None:
    simulate(list(layer_trace(streams.present(), operands=way, notes=False)))


def _seconds(run: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(REPETITIONS):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def measure(chats: Path | None, steps: int) -> Iterator[Row]:
    """Everything, row by row."""
    yield from microbenchmark()
    yield from value_writes()
    if chats is not None:
        for model in SETTINGS:
            streams = last_step(chats, model, steps)
            yield from step_speed(streams, model)
            yield from phases(streams, model)


def main() -> None:
    """Print a line for each row, or one JSON object a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chats", type=Path, nargs="?")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    for row in measure(arguments.chats, arguments.steps):
        if arguments.json:
            print(json.dumps(row))
        else:
            print(", ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
