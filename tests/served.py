"""A small random engine with data: every step is executed and compared in every bit.

It draws steps like a serving engine's (prefix hits also on blocks that the same step
fills, chunks, drafts that are rejected and rewritten, windows, preemption, eviction,
several query tokens, read-backs), runs their streams on all given devices, and compares
with the order-aware reference. `seen` counts what has happened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.attention import LayerResult, run_layer
from patton.commands import Tokens
from patton.commit_zone import NO_SLOT
from patton.config import ElementType
from patton.device.reference import attention, attention_float64, max_rel_error
from patton.elements import decode, encode
from patton.engine import data
from patton.errors import OutOfPairsError
from patton.executor import Executor
from patton.generate import StepStreams, generate_step
from patton.runtime import Runtime
from patton.steps import PlacedStep, Step

Bits = NDArray[np.uint16]
Identities = NDArray[np.uint64]


def wide_values(
    tokens: Identities, layer: int, heads: int, head_dim: int, element: ElementType
) -> Bits:
    """Values of very different sizes, so that every order of additions shows."""
    plain = data.values(tokens, layer, heads, head_dim, element)
    exponent = (tokens * np.uint64(7) % np.uint64(25)).astype(np.int32) - 12
    return encode(np.ldexp(decode(plain, element), exponent[:, None, None]), element)


@attrs.define
class Talk:
    """A running request: who its tokens are, how many are verified, its blocks.

    window: blocks given up at the front.
    """

    name: int
    tokens: list[int]
    verified: int = 0
    blocks: list[int] = attrs.field(factory=list)
    window: int = 0


@attrs.define
class ServedEngine:
    """Draws steps, applies and executes them; one call of `step` is one step."""

    runtime: Runtime
    devices: Sequence[Executor]
    rng: np.random.Generator
    most_talks: int = 4
    talks: dict[int, Talk] = attrs.field(factory=dict)
    identities: dict[int, list[int]] = attrs.field(factory=dict)
    prefixes: list[tuple[list[int], list[int]]] = attrs.field(factory=list)
    seen: Counter[str] = attrs.field(factory=Counter)
    worst_error: float = 0.0
    _names: int = 0
    _tokens: int = 0

    @property
    def size(self) -> int:
        """Tokens of a block."""
        return self.runtime.layout.block_tokens

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return bool(self.rng.random() < probability)

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        return int(self.rng.integers(limit))

    # --- one step -----------------------------------------------------------------

    def step(self) -> None:
        """Draw a step and carry it out; when memory runs out, make room instead."""
        before = {
            name: attrs.evolve(talk, tokens=[*talk.tokens], blocks=[*talk.blocks])
            for name, talk in self.talks.items()
        }
        step, prefixes = self._draw(), self.prefixes
        try:
            plan = self.runtime.apply_step(step)
        except OutOfPairsError:
            self.talks, self.prefixes = before, prefixes
            self._make_room()
            return
        for name in step.finishes:
            assert isinstance(name, int)
            self._remember(before[name])
        self.identities |= {name: talk.tokens for name, talk in self.talks.items()}
        self._count(step, plan.place())
        self._execute(plan.place())
        if self.chance(0.85):
            self.runtime.publish(plan)
        else:
            self.seen["commits repeated"] += len(plan.commits)

    def _draw(self) -> Step:
        step = Step()
        grants: list[tuple[int, list[int], list[int]]] = []
        taken: set[int] = set()
        step.finishes = [name for name in self.talks if self.chance(0.07)]
        for name in step.finishes:
            del self.talks[int(name)]
        for talk in self.talks.values():
            self._slide(talk, step)
            self._grow(talk, step, grants, taken)
        while len(self.talks) < self.most_talks and self.chance(0.6):
            self._admit(step, grants, taken)
        step.grants = grants
        for talk in self.talks.values():
            self._read(talk, step)
        return step

    def _slide(self, talk: Talk, step: Step) -> None:
        if talk.window + 1 < talk.verified // self.size and self.chance(0.15):
            block = talk.blocks[talk.window]
            step.releases = [*step.releases, (talk.name, block)]
            talk.window += 1

    def _grow(
        self,
        talk: Talk,
        step: Step,
        grants: list[tuple[int, list[int], list[int]]],
        taken: set[int],
    ) -> None:
        start = len(talk.tokens)
        if talk.verified < start:
            start = talk.verified + self.below(start - talk.verified + 1)
            step.confirms = [*step.confirms, (talk.name, start)]
            self.seen["drafts rejected"] += start < len(talk.tokens)
        self._write(talk, start, step, grants, taken)

    def _admit(
        self,
        step: Step,
        grants: list[tuple[int, list[int], list[int]]],
        taken: set[int],
    ) -> None:
        self._names += 1
        tokens, blocks = self._hit()
        talk = Talk(self._names, tokens, len(tokens), blocks)
        grants.append((talk.name, [*blocks], []))
        if self._write(talk, len(tokens), step, grants, taken):
            self.talks[talk.name] = talk
        else:
            grants.pop()

    def _write(
        self,
        talk: Talk,
        start: int,
        step: Step,
        grants: list[tuple[int, list[int], list[int]]],
        taken: set[int],
    ) -> int:
        """Write from `start` as many tokens as memory has blocks for."""
        count = 1 if self.chance(0.5) else 1 + self.below(2 * self.size)
        room = len(talk.blocks) * self.size
        blocks = self._free_blocks(-(-(start + count - room) // self.size), taken)
        count = min(count, room + len(blocks) * self.size - start)
        del talk.tokens[start:]
        talk.verified = start
        if count > 0:
            if blocks:
                grants.append((talk.name, [], blocks))
            talk.blocks += blocks
            step.writes = [*step.writes, (talk.name, start, count)]
            drafts = self.below(min(count, 6)) if self.chance(0.3) else 0
            if drafts:
                step.drafts[talk.name] = drafts
            talk.tokens += range(self._tokens, self._tokens + count)
            self._tokens += count
            talk.verified = start + count - drafts
        return count

    def _read(self, talk: Talk, step: Step) -> None:
        """Some of the newest tokens ask, each with a window; some blocks go back."""
        first, end = talk.window * self.size, len(talk.tokens)
        for _ in range(1 + self.below(3) if self.chance(0.9) else 0):
            stop = end - self.below(min(4, end - first))
            start = first if self.chance(0.6) else first + self.below(stop - first)
            step.reads = [*step.reads, (talk.name, start, stop)]
        if self.chance(0.15):
            start, stop = sorted(self.rng.choice(end + 1 - first, 2, replace=False))
            back = (talk.name, int(first + start), int(first + stop))
            step.readbacks = [*step.readbacks, back]

    # --- memory -------------------------------------------------------------------

    def _free_blocks(self, count: int, taken: set[int]) -> list[int]:
        granules = self.runtime.placements.granule
        free = [b for b, g in enumerate(granules) if g < 0 and b not in taken]
        picked = [int(b) for b in self.rng.permutation(free)[: max(count, 0)]]
        taken.update(picked)
        return picked

    def _hit(self) -> tuple[list[int], list[int]]:
        """Tokens and blocks of an old prefix, or of what is being written."""
        running = [talk for talk in self.talks.values() if not talk.window]
        if running and self.chance(0.3):
            talk = running[self.below(len(running))]
            full = talk.verified // self.size
            return talk.tokens[: full * self.size], talk.blocks[:full]
        if not self.prefixes or self.chance(0.3):
            return [], []
        tokens, blocks = self.prefixes[self.below(len(self.prefixes))]
        return [*tokens], [*blocks]

    def _remember(self, talk: Talk) -> None:
        full = talk.verified // self.size
        if full and not talk.window:
            self.prefixes.append((talk.tokens[: full * self.size], talk.blocks[:full]))

    def _make_room(self) -> None:
        pair = next(self.runtime.eviction_candidates(), None)
        if pair is not None:
            for block in self.runtime.blocks_of_pair(pair):
                self.runtime.evict(block)
                self.prefixes = [p for p in self.prefixes if block not in p[1]]
            self.seen["evictions"] += 1
        elif self.talks:
            name = next(reversed(self.talks))
            self._remember(self.talks.pop(name))
            self.runtime.finish(name)

    # --- execution ----------------------------------------------------------------

    def _token_data(self, placed: PlacedStep, tokens: Tokens) -> Identities:
        names = [placed.requests[request] for request in tokens.request]
        pairs = zip(names, tokens.position.tolist(), strict=True)
        return np.array([self.identities[int(n)][p] for n, p in pairs], np.uint64)

    def _execute(self, placed: PlacedStep) -> None:
        streams = generate_step(placed)
        for layer in range(placed.layout.model.layers):
            results = [
                self._run(device, placed, streams, layer) for device in self.devices
            ]
            self._compare(placed, streams, layer, results)

    def _queries(self, placed: PlacedStep, layer: int) -> Bits:
        model = placed.layout.model
        tokens = Tokens(placed.read_request, placed.read_end - 1)
        return data.queries(
            self._token_data(placed, tokens),
            layer,
            (model.kv_heads, model.query_heads_per_kv),
            model.head_dim,
            placed.layout.device.element,
        )

    def _shape(self, placed: PlacedStep) -> tuple[int, int]:
        return placed.layout.model.kv_heads, placed.layout.model.head_dim

    def _run(
        self, device: Executor, placed: PlacedStep, streams: StepStreams, layer: int
    ) -> LayerResult:
        element, shape = placed.layout.device.element, self._shape(placed)

        def keys(tokens: Tokens) -> Bits:
            return data.keys(self._token_data(placed, tokens), layer, *shape, element)

        def values(tokens: Tokens) -> Bits:
            return wide_values(self._token_data(placed, tokens), layer, *shape, element)

        return run_layer(
            device,
            streams,
            layer=layer,
            element=element,
            keys=keys,
            values=values,
            queries=self._queries(placed, layer),
        )

    def _compare(
        self,
        placed: PlacedStep,
        streams: StepStreams,
        layer: int,
        results: list[LayerResult],
    ) -> None:
        element, shape = placed.layout.device.element, self._shape(placed)
        tokens = [
            np.array(self.identities[int(name)], np.uint64) for name in placed.requests
        ]
        arguments = (
            placed,
            [data.keys(t, layer, *shape, element) for t in tokens],
            [wide_values(t, layer, *shape, element) for t in tokens],
            self._queries(placed, layer),
        )
        expected = attention(*arguments)
        for result in results:
            if len(placed.read_request):
                assert result.outputs is not None
                assert expected.tobytes() == result.outputs.tobytes()
            for stream, found, kind in (
                (streams.read_key, result.keys, data.keys),
                (streams.read_value, result.values, wide_values),
            ):
                if stream is not None:
                    assert stream.tokens is not None
                    assert found is not None
                    back = self._token_data(placed, stream.tokens)
                    assert np.array_equal(kind(back, layer, *shape, element), found)
        error = max_rel_error(expected, attention_float64(*arguments))
        self.worst_error = max(self.worst_error, error)
        self.seen["outputs"] += expected.size

    def _count(self, step: Step, placed: PlacedStep) -> None:
        """Note which of the situations that tests must meet this step has."""
        reads = Counter(name for name, _, _ in step.reads)
        shared = {block for _, shares, _ in step.grants for block in shares}
        written = self.runtime.placements.granule
        filled = set(placed.write_granule.tolist())
        slots = placed.tables.slot
        self.seen["several queries"] += max(reads.values(), default=0) > 1
        self.seen["windows"] += any(start > 0 for _, start, _ in step.reads)
        self.seen["releases"] += len(step.releases)
        self.seen["drafts"] += len(step.drafts)
        self.seen["same-step shares"] += any(written[b] in filled for b in shared)
        self.seen["commits"] += len(placed.commit_slot)
        self.seen["staged"] += int((placed.write_slot != NO_SLOT).sum())
        self.seen["no slot"] += int(
            ((placed.write_slot == NO_SLOT) & (placed.write_count < self.size)).sum()
        )
        self.seen["partial reads"] += int((slots != NO_SLOT).sum())
        self.seen["resident reads"] += int((slots == NO_SLOT).sum())
        self.seen["read-backs"] += len(step.readbacks)
