"""Counts that are given without streams are those of the streams."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from patton.commands import CommandStream, Op, Phase
from patton.config import aim_gddr6, model_preset
from patton.device.aim.costs import Target, stream_cost
from patton.steps import Step
from patton.systems import Memory, system
from patton.systems.counts import counts_of
from tests.systems.scene import MODELS, VARIANTS, Scene, variant_id


def events(scene: Scene, seed: int, steps: int) -> list[Step]:
    """Random requests that come, grow and go, and random windows that are read."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(steps):
        step = Step()
        for request in list(scene.lengths):
            if rng.random() < 0.1:
                scene.finish(step, request)
        if len(scene.lengths) < 5:
            scene.write(step, number, int(rng.integers(1, 300)))
        for request in scene.lengths:
            if request != number and rng.random() < 0.8:
                scene.write(step, request, int(rng.choice([1, 1, 1, 2, 17])))
        for request, length in scene.lengths.items():
            for _ in range(int(rng.integers(0, 3))):
                start = 0 if rng.random() < 0.7 else int(rng.integers(0, length))
                scene.read(step, request, start)
            if rng.random() < 0.1 and length > 1:
                step.readbacks = [*step.readbacks, (request, 0, length - 1)]
        found.append(step)
    return found


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_counts_are_those_of_streams(
    variant: tuple[str, dict[str, Any]], model: str
) -> None:
    """Activations, products and bytes of every phase, over random steps."""
    scene = Scene.named(*variant, model)
    phases: set[Phase] = set()
    for step in events(scene, 7, 12):
        placed = scene.memory.apply(step)
        streams = placed.streams().present()
        counts = placed.counts()
        scene.memory.publish(placed)
        assert counts_of(streams, 32) == counts
        phases |= counts.keys()

    assert {
        Phase.KEY_WRITE,
        Phase.VALUE_WRITE,
        Phase.READ_KEY,
        Phase.READ_VALUE,
        Phase.QK,
        Phase.SV,
    } <= phases


@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_only_what_is_seen_is_multiplied(variant: tuple[str, dict[str, Any]]) -> None:
    """Of 200 tokens the last thirty: three groups of Keys, as many bursts of Values.

    An outer product takes a burst for each token and head's bursts in a bank.
    """
    scene = Scene.named(*variant, "llama3-8b")
    step = Step()
    scene.write(step, "a", 200)
    scene.read(step, "a", start=170)
    counts = scene.memory.apply(step).counts()
    vectors, per_row = 8 * 4, {"attenpim": 1, "l3": 2}
    parts = {"attenpim": 2, "l3": 4}.get(variant[0])
    values = 8 * 3 * vectors
    if parts is not None:
        values = per_row[variant[0]] * 30 * vectors // parts
    if Phase.PARTIAL in counts:
        values -= counts[Phase.PARTIAL].macs

    assert 8 * 3 * vectors == counts[Phase.QK].macs
    assert values == counts[Phase.SV].macs


INNER = [
    (name, options)
    for name, options in VARIANTS
    if name[:6] not in {"patton", "attenp", "l3"} and "order" not in options
]


@pytest.mark.parametrize("variant", INNER, ids=variant_id)
def test_a_row_is_opened_once(variant: tuple[str, dict[str, Any]]) -> None:
    """For all queries of a step together: one rule for all inner-product systems."""
    scene = Scene.named(*variant, "llama3-8b")
    step = Step()
    for request in ("a", "b"):
        scene.write(step, request, 300)
        for start in (0, 0, 100):
            scene.read(step, request, start)
    streams = scene.memory.apply(step).streams()
    for stream in (streams.qk, streams.sv):
        assert stream is not None
        acts = stream.op == Op.ACT
        opened = [
            (channel, row)
            for first, many, row in zip(
                stream.channel[acts].tolist(),
                stream.channels[acts].tolist(),
                stream.row[acts].tolist(),
                strict=True,
            )
            for channel in range(first, first + many)
        ]
        assert len(set(opened)) == len(opened)


@pytest.mark.parametrize(("order", "opened"), [("rows", 4), ("requests", 6)])
def test_requests_in_turn_open_a_row_again(order: str, opened: int) -> None:
    """Six blocks of two requests in four channels share the rows of their Values."""
    scene = Scene.named("blockpim", {"order": order}, "llama3-8b")
    step = Step()
    for request in ("a", "b"):
        scene.write(step, request, 300)
        scene.read(step, request, 0)
    counts = scene.memory.apply(step).counts()

    heads, pieces = 8, 8
    assert heads * 6 == counts[Phase.QK].activations
    assert heads * pieces * opened == counts[Phase.SV].activations


# Row activations to write one token, of one layer and all heads: of Keys single-bank
# ones, of Values all-bank ones, for eight heads of four channels and for 32 of one.
# Serial: of Values, in the channel that has most.
WRITES: dict[tuple[str, tuple[tuple[str, object], ...]], list[tuple[float, ...]]] = {
    ("neupims", ()): [(1, 64, 64), (4, 256, 128)],
    ("neupims", (("channels_per_request", 1),)): [(1, 64, 64), (4, 256, 256)],
    ("attacc", ()): [(8, 64, 2), (32, 256, 8)],
    ("paise", ()): [(8, 64, 2), (32, 256, 8)],
    ("pimphony", ()): [(8, 64, 2), (32, 256, 8)],
    ("patton-without-commit-zone", ()): [(8, 64, 2), (32, 256, 8)],
    ("cent", ()): [(1, 64, 2), (4, 256, 8)],
    ("cent", (("value_layout", "channel"),)): [(1, 64, 8), (4, 256, 8)],
    ("blockpim", (("value_layout", "in_row"),)): [(8, 8, 1), (32, 32, 1)],
    ("blockpim", ()): [(8, 64, 8), (32, 256, 8)],
    ("attenpim", ()): [(8, 8 * 8 / 16, 1), (32, 32 * 8 / 16, 1)],
    ("l3", ()): [(8, 8 * 4 / 16, 1), (32, 32 * 4 / 16, 1)],
    ("patton", ()): [(8, 32, 1), (32, 32, 1)],
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("which", WRITES, ids=str)
def test_activations_of_a_token(
    which: tuple[str, tuple[tuple[str, object], ...]], model: str
) -> None:
    """As the table of the design has them."""
    name, options = which
    keys, values, serial = WRITES[which][MODELS.index(model)]
    scene = Scene.named(name, dict(options), model)
    step = Step()
    scene.write(step, "a", 5)
    scene.memory.publish(scene.memory.apply(step))
    step = Step()
    scene.write(step, "a", 1)
    placed = scene.memory.apply(step)
    counts, streams = placed.counts(), placed.streams()

    assert keys == 16 * counts[Phase.KEY_WRITE].activations
    assert values == counts[Phase.VALUE_WRITE].activations
    assert streams.value_write is not None
    assert serial == most_activations(streams.value_write)


def most_activations(stream: CommandStream) -> int:
    """Rows opened in the channel of a head that opens most."""
    opened = stream.op == Op.ACT
    channels = [
        channel
        for first, many in zip(
            stream.channel[opened].tolist(),
            stream.channels[opened].tolist(),
            strict=True,
        )
        for channel in range(first, first + many)
    ]
    return int(np.bincount(channels).max())


@pytest.mark.parametrize(("model", "requests"), [("opt-6.7b", 8), ("llama3-8b", 32)])
def test_a_commit_zone_row_is_shared(model: str, requests: int) -> None:
    """At the paper's concurrencies it holds a slot of every request: CH/n a token.

    A commit takes the rows of a block, d_head / 16 for each head.
    """
    alone, together = Scene.named("patton", {}, model), Scene.named("patton", {}, model)
    heads = alone.memory.model.kv_heads
    for number in range(16):
        few, many = Step(), Step()
        alone.write(few, 0, 1)
        for request in range(requests):
            together.write(many, request, 1)
        for scene, step in ((alone, few), (together, many)):
            placed = scene.memory.apply(step)
            counts = placed.counts()
            scene.memory.publish(placed)
            assert 32 == counts[Phase.VALUE_WRITE].activations
            assert (number == 15) == (Phase.COMMIT in counts)
            if scene is alone and number == 15:
                assert 8 * heads == counts[Phase.COMMIT].activations


# --- room -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "model", "tokens", "blocks"),
    [
        ("attacc", "llama3-8b", 131_072, 8192),  # 64 slots of 2,048
        ("attacc", "qwen3-8b", 114_688, 7280),  # 56 slots
        ("attacc", "opt-6.7b", 32_768, 2048),  # 16 slots
        ("blockpim", "llama3-8b", 131_072, 1024),
        ("pimphony", "llama3-8b", 131_072, 8192),
        ("patton", "llama3-8b", 130_560, 8160),
        ("patton", "opt-6.7b", 32_512, 2032),
    ],
)
def test_capacity(name: str, model: str, tokens: int, blocks: int) -> None:
    """As the arithmetic of the design has it, taken by requests of the longest kind."""
    memory = system(name).on(aim_gddr6(), model_preset(model))
    filled = fill(memory, 2048 if name == "attacc" else memory.longest)

    assert (tokens, blocks) == (filled, memory.blocks)
    usage = memory.usage()
    assert usage.used <= usage.units
    assert tokens == usage.tokens_reserved


def fill(memory: Memory, tokens: int) -> int:
    """Bind blocks to requests of so many tokens until none fits; tokens bound."""
    per_request, block, request = tokens // memory.block_tokens, 0, 0
    while block < memory.blocks and memory.bindable(request) >= per_request:
        for _ in range(per_request):
            memory.bind(request, block)
            block += 1
        request += 1
    return block * memory.block_tokens


# --- time and energy ------------------------------------------------------------------


@pytest.mark.parametrize("host", ["line-per-cycle", "port-per-channel"])
@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_streams_are_timed_and_priced(
    variant: tuple[str, dict[str, Any]], host: str
) -> None:
    """By the same models as PATTON's: commands and bytes are those that are counted."""
    scene = Scene.named(*variant, "llama3-8b")
    step = Step()
    for request in range(3):
        scene.write(step, request, 70)
    scene.memory.publish(scene.memory.apply(step))
    step = Step()
    for request in range(3):
        scene.write(step, request, 1)
        scene.read(step, request)
    placed = scene.memory.apply(step)
    target = Target(variant="pin", host=host)
    for stream in placed.streams().present():
        cost = stream_cost(stream, target)
        assert cost.cycles > 0
        assert sum(cost.energy_pj.values()) > 0
        dq_pj = 1408.0
        bursts = placed.counts()[stream.phase].bytes // 32
        assert abs(cost.energy_pj["DQ"] - dq_pj * bursts) < 1
