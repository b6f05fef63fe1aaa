"""Speed of stream validation: microseconds per command, protocol check included.

Run as a program: `python tests/benchmarks/bench_validation.py [--json]`. Streams of
prompts and of one decode step of a layer, and a served run of the tiny model from
blocks to tags. Commands are single ones: MACABs and writes count per burst, a multicast
once. Times are CPU time of one process, the best of several repetitions; generating the
streams is not counted.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping

import attrs

from patton.commands import CommandStream
from patton.config import aim_gddr6, model_preset, tiny_device
from patton.device.provenance import StreamValidator
from patton.engine.requests import Request
from patton.engine.session import RunSettings, Session
from patton.engine.synthetic import default_scenario
from patton.engine.validation import StreamCheck
from patton.generate import StepStreams, generate_step
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import PlacedStep, Step

REPETITIONS = 3
TARGET = 10.0  # microseconds per command
STEPS = 60  # of the served run
CASES = (("llama3-8b", 32, 1024), ("opt-6.7b", 8, 1024), ("qwen3-8b", 16, 2000))

Work = list[tuple[PlacedStep, list[CommandStream]]]


def prompts_and_decode(model: str, requests: int, tokens: int) -> tuple[Layout, Work]:
    """Prompts of some requests, a token for each, and one prompt read back."""
    layout = Layout.of(aim_gddr6(), model_preset(model), slots=requests)
    runtime, size = Runtime.of(layout), layout.block_tokens
    blocks = -(-(tokens + 1) // size)
    tables = [range(r * blocks, (r + 1) * blocks) for r in range(requests)]
    prompts = Step(
        grants=[(r, [], [*table]) for r, table in enumerate(tables)],
        writes=[(r, 0, tokens) for r in range(requests)],
    )
    decode = Step(
        writes=[(r, tokens, 1) for r in range(requests)],
        reads=[(r, 0, tokens + 1) for r in range(requests)],
        readbacks=[(0, 0, tokens)],
    )
    work: Work = []
    for step in (prompts, decode):
        plan = runtime.apply_step(step)
        work.append((plan.place(), generate_step(plan.place()).present()))
        runtime.publish(plan)
    return layout, work


def measure(layout: Layout, work: Work) -> dict[str, tuple[float, int]]:
    """Seconds and commands by phase, the best of several repetitions."""
    best: dict[str, tuple[float, int]] = {}
    for _ in range(REPETITIONS):
        validator = StreamValidator.of(layout)
        found: dict[str, tuple[float, int]] = {}
        for placed, streams in work:
            for stream in streams:
                began, before = time.process_time(), validator.commands
                validator.check(placed, stream)
                seconds, commands = found.get(stream.phase, (0.0, 0))
                seconds += time.process_time() - began
                commands += validator.commands - before
                found[stream.phase] = seconds, commands
        for phase, figures in found.items():
            best[phase] = min(best.get(phase, figures), figures)
    return best


@attrs.define(eq=False)
class TimedCheck(StreamCheck):
    """Takes the CPU time of the validation in a served run."""

    seconds: float = 0.0

    def run(
        self,
        placed: PlacedStep,
        streams: StepStreams,
        requests: Mapping[int, Request],
    ) -> None:
        """As `StreamCheck`, timed."""
        began = time.process_time()
        super().run(placed, streams, requests)
        self.seconds += time.process_time() - began


def measure_served() -> dict[str, tuple[float, int]]:
    """The default run from blocks to tags: small steps, tokens known by identity."""
    scenario = default_scenario()
    layout = Layout.of(tiny_device(), model_preset("tiny"))
    workload, loop = scenario.workload, scenario.loop
    session = Session.of(RunSettings(workload, layout, loop, STEPS, "placement"))
    session.proof = check = TimedCheck.of(layout)
    session.run()
    assert isinstance(check, TimedCheck)
    return {"served": (check.seconds, check.validator.commands)}


def rows(name: str, best: dict[str, tuple[float, int]]) -> list[dict[str, object]]:
    """A row per phase, and one of all of them together."""
    seconds, commands = zip(*best.values(), strict=True)
    everything = {**best, "all": (sum(seconds), sum(commands))}
    return [
        {
            "case": name,
            "phase": str(phase),
            "commands": commands,
            "us_per_command": round(seconds / commands * 1e6, 2),
        }
        for phase, (seconds, commands) in everything.items()
    ]


def main() -> None:
    """Print a line per case and phase, or JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    found = []
    for model, requests, tokens in CASES:
        best = measure(*prompts_and_decode(model, requests, tokens))
        found += rows(f"{model}, {requests} x {tokens}", best)
    found += rows("tiny, default run", measure_served())[:1]
    if as_json:
        print(json.dumps(found))
        return
    for row in found:
        print(*(f"{name}={value}" for name, value in row.items()))
    print(f"target: at most {TARGET:g} us per command")


if __name__ == "__main__":
    main()
