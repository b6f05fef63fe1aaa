"""Cycles of attention under the paper's schedule and the best own one.

Run as a program: `python tests/benchmarks/bench_schedules.py [--json]`. One decode
step of one layer, blocks placed by the runtime while prompts come in side by side; QK,
SV and partial blocks by their simulated cycles. `paper` is the default schedule with
one result register, which is what the paper's device has; `multicast` is that with the
channels of a head together, for gains that owe nothing to it; `same` is `multicast`
with as many registers as `best`. `--writes` measures orders of writes, rows and ways of
commits instead, `--search` every order of products.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import attrs

from patton.config import CommitWay, aim_gddr6, model_preset
from patton.device.aim.convert import OPERAND_WAYS
from patton.device.aim.costs import Target, stream_cost
from patton.generate import Order, Schedule, best_schedule, generate_step
from patton.generate.schedule import PAPER
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import PlacedStep, Step

MODELS = ("llama3-8b", "opt-6.7b")
PHASES = ("qk", "sv", "partial")
REGISTERS = (1, 2, 8)
MULTICAST = Schedule("multicast", Order(channels="together"))
# Lengths in tokens. SHAREGPT: quantiles 1/16, 3/16, ... of what queries see in steps
# 500 to 2,000 of `patton run --workload sharegpt_turns.jsonl.gz`.
SHAREGPT = {
    "llama3-8b": (102, 248, 373, 503, 637, 793, 984, 1685),
    "opt-6.7b": (102, 241, 362, 481, 606, 746, 916, 1167),
}
CONTEXTS: dict[str, Sequence[int]] = {
    "16 blocks": [16 * 16 - 8] * 4,
    "64 blocks": [64 * 16 - 8] * 2,
    "128 blocks": [128 * 16 - 8] * 2,
    "256 blocks": [256 * 16 - 8] * 2,
    "sharegpt": (),
}


def lengths_of(model: str, context: str) -> Sequence[int]:
    """Tokens of each request before the step."""
    return CONTEXTS[context] or SHAREGPT[model]


def layout_of(model: str, registers: int) -> Layout:
    """The model on the AiM device with so many result registers."""
    device = attrs.evolve(aim_gddr6(), result_registers=registers)
    return Layout.of(device, model_preset(model), slots=64)


def decode_step(layout: Layout, lengths: Sequence[int]) -> PlacedStep:
    """The step in which requests of these lengths, prompts done, add a token each."""
    server = _Server(layout, [0] * len(lengths))
    while any(done < end for done, end in zip(server.done, lengths, strict=True)):
        chunks = (
            min(256, end - done) for done, end in zip(server.done, lengths, strict=True)
        )
        server.write(list(chunks))
    return server.write([1] * len(lengths))


@attrs.define
class _Server:
    """Requests that grow side by side; a pair that is wanted is bound."""

    layout: Layout
    done: list[int]
    runtime: Runtime = attrs.field(init=False)
    blocks: int = 0

    def __attrs_post_init__(self) -> None:
        self.runtime = Runtime.of(self.layout)

    def write(self, counts: Sequence[int]) -> PlacedStep:
        """The step that writes so many tokens of each request and reads them all."""
        grants, writes, reads = [], [], []
        size = self.layout.block_tokens
        for request, count in enumerate(counts):
            start = self.done[request]
            new = -(-(start + count) // size) - -(-start // size)
            if new:
                blocks = list(range(self.blocks, self.blocks + new))
                grants.append((request, list[int](), blocks))
                self.blocks += new
            if count:
                writes.append((request, start, count))
                self.done[request] += count
                reads.append((request, 0, start + count))
        step = Step(grants=grants, writes=writes, reads=reads)
        return self.runtime.apply_step(step).place()


def cycles(step: PlacedStep, schedule: Schedule, target: Target) -> dict[str, Any]:
    """Cycles by phase and in all, and where the cycles of each phase go."""
    streams = generate_step(step, schedule=schedule)
    found: dict[str, Any] = {"total": 0, "spent": {}, "activations": 0.0}
    for phase in PHASES:
        stream = getattr(streams, phase)
        if stream is not None:
            cost = stream_cost(stream, target)
            found[phase], found["spent"][phase] = cost.cycles, cost.spent
            found["total"] += cost.cycles
            found["activations"] += stream.activations()
    return found


def attention_rows() -> Iterator[dict[str, Any]]:
    """A row per model, context, number of registers, variant and way of operands."""
    for model, context, operands in product(MODELS, CONTEXTS, OPERAND_WAYS):
        if (model, context) == ("opt-6.7b", "256 blocks"):
            continue  # beyond the model's context
        for variant, registers in product(("head", "pin"), REGISTERS):
            if operands == "split" and (variant == "pin" or context != "sharegpt"):
                continue
            target = Target(variant=variant, operands=operands)
            one = decode_step(layout_of(model, 1), lengths_of(model, context))
            step = decode_step(layout_of(model, registers), lengths_of(model, context))
            best = cycles(step, best_schedule(step.layout.device.name, variant), target)
            paper = cycles(one, PAPER, target)
            yield {
                "model": model,
                "context": context,
                "operands": operands,
                "variant": variant,
                "registers": registers,
                "paper": paper["total"],
                "multicast": cycles(one, MULTICAST, target)["total"],
                "same": cycles(step, MULTICAST, target)["total"],
                "best": best["total"],
                "phases": {phase: best[phase] for phase in PHASES if phase in best},
                "spent": best["spent"],
                "activations": [paper["activations"], best["activations"]],
            }


def search_rows() -> Iterator[dict[str, Any]]:
    """Cycles of every order with the channels of a head together, phase by phase."""
    choices: Any = product(
        ("row", "rows", "cheaper"), ("apart", "together"), (False, True)
    )
    orders = [Order(a, b, "together", c, reload=False) for a, b, c in choices]
    contexts = ("16 blocks", "64 blocks", "128 blocks", "sharegpt")
    for model, context, registers in product(MODELS, contexts, REGISTERS):
        step = decode_step(layout_of(model, registers), lengths_of(model, context))
        for order in orders:
            found = cycles(step, Schedule("test", order, order), Target())
            choice = f"{order.loads} {order.requests} turning={order.turning}"
            phases = {phase: found[phase] for phase in PHASES if phase in found}
            where = {"model": model, "context": context, "registers": registers}
            yield {**where, "order": choice, **phases}


def write_rows() -> Iterator[dict[str, Any]]:
    """Cycles of writes and commits in every order, and of the ways to commit."""
    ways: tuple[CommitWay, ...] = ("host", "read-back")
    for model, variant in product(MODELS, ("head", "pin")):
        for case, step in write_steps(layout_of(model, 1)).items():
            choices: Any = product(
                ("burst-major", "bank-major"), ("grouped", "as-written")
            )
            for order, rows in choices:
                choice = Schedule("test", write_order=order, write_rows=rows)
                found = {"model": model, "variant": variant, "case": case}
                found |= {"order": order, "rows": rows}
                for way in ways:
                    streams = generate_step(step, commit_way=way, schedule=choice)
                    for name in ("key_write", "value_write", "commit"):
                        stream = getattr(streams, name)
                        label = f"commit {way}" if name == "commit" else name
                        if stream is not None:
                            target = Target(variant=variant)
                            found[label] = str(stream_cost(stream, target).cycles)
                yield found


def write_steps(layout: Layout) -> dict[str, PlacedStep]:
    """A decode step, one that fills blocks, and a chunk of a prompt."""
    filling = _Server(layout, [0] * 32)
    filling.write([98] * 32)
    for _ in range(13):
        staged = filling.write([1] * 32)
    chunk = _Server(layout, [0] * 4)
    chunk.write([20] * 4)
    return {
        "32 tokens": staged,
        "32 tokens, commits": filling.write([1] * 32),
        "4 chunks of 64": chunk.write([64] * 4),
    }


def shown(row: dict[str, Any]) -> str:
    """A row of attention as a line of a Markdown table."""
    gains = (
        f"{100 * (1 - row['best'] / row[name]):.1f} %"
        for name in ("paper", "multicast", "same")
    )
    bounds = []
    for phase, spent in row["spent"].items():
        reasons = (
            f"{name.replace('_', ' ')} {100 * lost / row['phases'][phase]:.0f}"
            for name, lost in spent.items()
        )
        bounds.append(f"{phase}: " + ", ".join(reasons))
    acts = "{:.0f} -> {:.0f}".format(*row["activations"])
    keys = ("model", "context", "operands", "variant", "registers")
    counts = ("paper", "multicast", "same", "best")
    cells = [*(str(row[name]) for name in (*keys, *counts)), *gains, acts]
    return " | ".join(["", *cells, "; ".join(bounds), ""]).strip()


HEAD = """\
| model | context | operands | variant | registers | paper | multicast | same | best \
| gain on paper | on multicast | on same | ACTs | % of the cycles of best |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    """Print a table, or one JSON object a row."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--writes", action="store_true")
    parser.add_argument("--search", action="store_true")
    options = parser.parse_args()
    if options.writes or options.search:
        rows = write_rows() if options.writes else search_rows()
        for row in rows:
            print(json.dumps(row) if options.json else " ".join(map(str, row.values())))
        return
    if not options.json:
        print(HEAD)
    for row in attention_rows():
        print(json.dumps(row) if options.json else shown(row), flush=True)


if __name__ == "__main__":
    main()
