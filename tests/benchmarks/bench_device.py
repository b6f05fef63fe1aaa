"""Speed of the reference device: MACABs per second, and a decode step of a layer.

Run as a program: `python tests/benchmarks/bench_device.py [--json]`. One layer of
Llama3-8B on AiM, 32 requests of 1,024 tokens; MACABs are counted per channel. Times are
CPU seconds of one process, the check of the protocol included. "one_channel" is a
single head on a device of one channel; "plain" the executor that is the definition.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.attention import run_layer
from patton.commands import CommandStream, Op, Tokens
from patton.config import DeviceConfig, ModelConfig, aim_gddr6, model_preset
from patton.device import PlainDevice, ReferenceDevice
from patton.elements import encode
from patton.executor import Executor, Payload
from patton.generate import StepStreams, generate_step
from patton.layout import Layout
from patton.operands import query_payload, weight_payload
from patton.runtime import Runtime
from patton.steps import Request, Step

REPETITIONS = 3
POOL = 4096  # different tokens; drawing more would take longer than writing them


class Workload:
    """Prompts of some requests, then one decode step."""

    def __init__(
        self,
        device: DeviceConfig,
        model: ModelConfig,
        *,
        requests: int = 32,
        tokens: int = 1024,
    ) -> None:
        self.model = model
        self.requests = requests
        self.layout = Layout.of(device, model, slots=requests)
        self.rng = np.random.default_rng(0)
        self.pool = self.random(POOL, model.kv_heads)
        runtime = Runtime.of(self.layout)
        blocks = -(-(tokens + 1) // self.layout.block_tokens)
        ids = np.arange(requests * blocks).reshape(requests, blocks).tolist()
        grants: list[tuple[Request, list[int], list[int]]]
        grants = [(request, [], ids[request]) for request in range(requests)]
        prompts = [(request, 0, tokens) for request in range(requests)]
        self.prefill = self._streams(runtime, Step(grants=grants, writes=prompts))
        writes = [(request, tokens, 1) for request in range(requests)]
        reads = [(request, 0, tokens + 1) for request in range(requests)]
        self.decode = self._streams(runtime, Step(writes=writes, reads=reads))

    @staticmethod
    def _streams(runtime: Runtime, step: Step) -> StepStreams:
        plan = runtime.apply_step(step)
        streams = generate_step(plan.place())
        runtime.publish(plan)
        return streams

    def data(self, tokens: Tokens) -> NDArray[np.uint16]:
        """Pseudo-random elements of some tokens."""
        drawn: NDArray[np.uint16] = self.pool[
            (tokens.request * 1021 + tokens.position) % POOL
        ]
        return drawn

    def random(self, *shape: int) -> NDArray[np.uint16]:
        """Normally distributed elements [..., D]."""
        numbers = self.rng.standard_normal((*shape, self.model.head_dim), np.float32)
        return encode(numbers, self.layout.device.element)

    def queries(self) -> NDArray[np.uint16]:
        """The query heads of one token of every request."""
        model = self.model
        return self.random(self.requests, model.kv_heads, model.query_heads_per_kv)

    def run(self, executor: Executor, streams: StepStreams) -> float:
        """CPU seconds of a step."""
        began = time.process_time()
        run_layer(
            executor,
            streams,
            layer=0,
            element=self.layout.device.element,
            keys=self.data,
            values=self.data,
            queries=self.queries(),
        )
        return time.process_time() - began

    def attention(self) -> Iterator[tuple[str, CommandStream, Payload]]:
        """The streams of MACABs, with their payloads."""
        qk, sv = self.decode.qk, self.decode.sv
        assert qk is not None
        assert sv is not None
        assert qk.queries is not None
        yield "qk", qk, query_payload(qk, self.queries())
        seen = int((qk.queries.end - qk.queries.start).sum())
        model = self.model
        shape = seen, model.kv_heads, model.query_heads_per_kv
        weights = self.rng.random(shape, np.float32) / np.float32(seen)
        yield "sv", sv, weight_payload(sv, encode(weights, self.layout.device.element))


def macabs(stream: CommandStream) -> int:
    """MACABs of a stream, each counted once per channel."""
    chosen = stream.op == Op.MACAB
    bursts = stream.count[chosen].astype(np.int64) * stream.channels[chosen]
    return int(bursts.sum()) * stream.frame.heads


def rates(executor: Executor, workload: Workload, repetitions: int) -> dict[str, float]:
    """Million MACABs per second by phase."""
    found = {}
    for name, stream, payload in workload.attention():
        best = float("inf")
        for _ in range(repetitions):
            began = time.process_time()
            executor.run(stream, payload)
            best = min(best, time.process_time() - began)
        found[name] = round(macabs(stream) / best / 1e6, 3)
    return found


def measure() -> dict[str, Any]:
    """All figures."""
    aim, llama = aim_gddr6(), attrs.evolve(model_preset("llama3-8b"), layers=1)
    full = Workload(aim, llama)
    device = ReferenceDevice(aim)
    results: dict[str, Any] = {
        "prefill_writes_seconds": round(full.run(device, full.prefill), 2),
        "decode_step_seconds": round(full.run(device, full.decode), 2),
        "batched": rates(device, full, REPETITIONS),
    }
    one_channel = attrs.evolve(aim, channels=1)
    one_head = attrs.evolve(llama, kv_heads=1, query_heads=4)
    narrow = Workload(one_channel, one_head)
    device = ReferenceDevice(one_channel)
    narrow.run(device, narrow.prefill)
    results["one_channel"] = rates(device, narrow, REPETITIONS)
    few = Workload(aim, llama, requests=2)
    plain = PlainDevice(aim)
    few.run(plain, few.prefill)
    results["plain"] = rates(plain, few, 1)
    return results


def main() -> None:
    """Print the figures, or all of it as JSON."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--json", action="store_true")
    as_json = parser.parse_args().json
    results = measure()
    if as_json:
        print(json.dumps(results))
        return
    for key, figure in results.items():
        print(key, figure)


if __name__ == "__main__":
    main()
