"""Runs of a few steps of any system: events, data, a device and a validator."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.attention import LayerResult
from patton.commands import Tokens
from patton.config import DeviceConfig, ModelConfig, aim_gddr6, model_preset
from patton.elements import decode, encode
from patton.executor import Executor
from patton.steps import Request, Step
from patton.systems import Memory, System, TermValidator, run_layer, system

# Every system with every choice that its source leaves.
VARIANTS: Sequence[tuple[str, dict[str, Any]]] = (
    ("neupims", {}),
    ("neupims", {"channels_per_request": 1}),
    ("attacc", {}),
    ("cent", {}),
    ("cent", {"value_layout": "channel"}),
    ("blockpim", {}),
    ("blockpim", {"value_layout": "in_row"}),
    ("blockpim", {"scope": "device"}),
    ("blockpim", {"value_layout": "in_row", "scope": "device"}),
    ("blockpim", {"order": "requests"}),
    ("paise", {}),
    ("attenpim", {}),
    ("l3", {}),
    ("pimphony", {}),
    ("pimphony", {"chunk": "in_row"}),
    ("pimphony", {"chunk": "channel"}),
    ("patton", {}),
    ("patton-adopting", {}),
    ("patton-best", {}),
    ("patton-without-commit-zone", {}),
    ("patton-without-o2", {}),
)
MODELS = ("llama3-8b", "opt-6.7b")


def variant_id(value: object) -> str:
    """A variant as part of a test's name."""
    if isinstance(value, tuple):
        name, options = value
        return "-".join([name, *(str(option) for option in options.values())])
    return str(value)


@attrs.define(eq=False)
class Scene:
    """A memory that is driven step by step as an engine would.

    lengths: tokens of each running request; tokens: their identities, in order.
    """

    memory: Memory
    device: Executor
    validator: TermValidator
    lengths: dict[Request, int] = attrs.field(factory=dict)
    tables: dict[Request, list[int]] = attrs.field(factory=dict)
    tokens: dict[Request, list[int]] = attrs.field(factory=dict)
    next_block: int = 0
    next_token: int = 1

    @classmethod
    def of(
        cls,
        found: System,
        model: ModelConfig | str = "llama3-8b",
        device: DeviceConfig | None = None,
    ) -> Scene:
        """A fresh run."""
        model = model_preset(model) if isinstance(model, str) else model
        memory = found.on(device or aim_gddr6(), model)
        return cls(memory, memory.executor(), TermValidator.of(memory))

    @classmethod
    def named(cls, name: str, options: dict[str, Any], model: str) -> Scene:
        """A run of a variant."""
        return cls.of(system(name, **options), model)

    # --- events -------------------------------------------------------------------

    def write(self, step: Step, request: Request, count: int) -> None:
        """Let a request write so many new tokens in a step, and bind what they need."""
        size = self.memory.block_tokens
        start = self.lengths.get(request, 0)
        end = start + count
        table = self.tables.setdefault(request, [])
        need = -(-end // size) - len(table)
        if need > 0:
            blocks = list(range(self.next_block, self.next_block + need))
            self.next_block += need
            step.grants = [*step.grants, (request, [], blocks)]
            table += blocks
        step.writes = [*step.writes, (request, start, count)]
        first = self.next_token
        self.tokens.setdefault(request, []).extend(range(first, first + count))
        self.next_token += count
        self.lengths[request] = end

    def share(self, step: Step, request: Request, other: Request, blocks: int) -> None:
        """Let a new request share the first blocks of another."""
        size = self.memory.block_tokens
        shared = self.tables[other][:blocks]
        step.grants = [*step.grants, (request, shared, [])]
        self.tables[request] = list(shared)
        self.tokens[request] = self.tokens[other][: blocks * size]
        self.lengths[request] = blocks * size

    def finish(self, step: Step, request: Request) -> None:
        """End a request, whose name is not used again."""
        step.finishes = [*step.finishes, request]
        del self.lengths[request], self.tables[request]

    def read(self, step: Step, request: Request, start: int = 0) -> None:
        """Let the last token of a request see all from `start` on."""
        step.reads = [*step.reads, (request, start, self.lengths[request])]

    # --- what follows -------------------------------------------------------------

    def identify(self, request: Request, position: int) -> Hashable:
        """Who a token is."""
        return self.tokens[request][position]

    def run(self, step: Step, *, layer: int = 0, validate: bool = True) -> LayerResult:
        """Apply a step, execute its streams, and validate them."""
        placed = self.memory.apply(step)
        streams = placed.streams()
        model, element = self.memory.model, self.memory.device.element
        if validate:
            present = streams.present()
            self.validator.check_step(step, placed.requests, present, self.identify)
        result = run_layer(
            self.device,
            streams,
            model=model,
            layer=layer,
            element=element,
            keys=lambda tokens: self.data(0, placed.requests, tokens),
            values=lambda tokens: self.data(1, placed.requests, tokens),
            queries=self.queries(step),
        )
        self.memory.publish(placed)
        return result

    def data(
        self, kind: int, requests: Sequence[Request], tokens: Tokens
    ) -> NDArray[np.uint16]:
        """Keys (0) or Values (1) of tokens [tokens, heads, D]."""
        pairs = zip(tokens.request.tolist(), tokens.position.tolist(), strict=True)
        names = [self.tokens[requests[r]][p] for r, p in pairs]
        return self._numbers(kind, names, (self.memory.model.kv_heads,))

    def queries(self, step: Step) -> NDArray[np.uint16]:
        """Of a step's reads [Q, heads, G, D]."""
        model = self.memory.model
        names = [self.tokens[request][end - 1] for request, _, end in step.reads]
        heads = model.kv_heads, model.query_heads_per_kv
        return self._numbers(2, names, heads)

    def _numbers(
        self, kind: int, names: Sequence[int], heads: tuple[int, ...]
    ) -> NDArray[np.uint16]:
        shape = *heads, self.memory.model.head_dim
        found = np.empty((len(names), *shape), np.float32)
        for row, name in enumerate(names):
            rng = np.random.default_rng([kind, name])
            found[row] = rng.standard_normal(shape, np.float32)
        return encode(found, self.memory.device.element)

    def error(self, step: Step, result: LayerResult) -> float:
        """The largest error of any output against float64, of its vector's largest."""
        assert result.outputs is not None
        element = self.memory.device.element
        queries = decode(self.queries(step), element).astype(np.float64)
        worst = 0.0
        for row, (request, start, end) in enumerate(step.reads):
            names = self.tokens[request][start:end]
            heads = (self.memory.model.kv_heads,)
            key, value = (
                decode(self._numbers(kind, names, heads), element).astype(np.float64)
                for kind in (0, 1)
            )
            scores = queries[row] @ key.transpose(1, 2, 0)
            scores /= np.sqrt(key.shape[-1])
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            exact = weights @ value.transpose(1, 0, 2)
            error = np.abs(result.outputs[row] - exact).max(-1)
            worst = max(worst, float((error / np.abs(exact).max(-1)).max()))
        return worst


def served(scene: Scene, long: int = 150) -> Iterator[tuple[Step, LayerResult]]:
    """Prefill, decode, an end in between, a request in its place, reads of a window.

    What the first requests leave behind lies under what comes after them. long: tokens
    of the longest request at first.
    """
    step = Step()
    for request, count in (("a", 40), ("b", long), ("c", 17)):
        scene.write(step, request, count)
        scene.read(step, request)
    yield step, scene.run(step)
    step = Step()
    scene.finish(step, "a")
    scene.write(step, "d", 33)
    for request in ("b", "c"):
        scene.write(step, request, 1)
    for request in ("b", "c", "d"):
        scene.read(step, request)
    step.reads = [*step.reads, ("b", 21, long - 10)]
    yield step, scene.run(step)
    step = Step()
    for request, count in (("b", 2), ("c", 14), ("d", 1)):
        scene.write(step, request, count)
        scene.read(step, request)
    step.readbacks = [("b", 3, long - 1), ("c", 0, 18)]
    yield step, scene.run(step)
