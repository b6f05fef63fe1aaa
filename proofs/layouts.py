"""Layouts by name, and many small ones: where counterexamples are looked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import product
from math import lcm
from random import Random

import attrs

from patton.config import (
    DEVICE_PRESETS,
    MODEL_PRESETS,
    DeviceConfig,
    ElementType,
    ModelConfig,
    aim_gddr6,
)
from patton.errors import LayoutError
from patton.layout import Layout


@cache
def llama3() -> Layout:
    """Llama3-8B on 16 GiB of AiM, the representative configuration (Paper 4.2)."""
    return Layout.of(aim_gddr6(), MODEL_PRESETS["llama3-8b"])


@cache
def one_head() -> Layout:
    """A single KV head on 32 channels: four stripes of eight channels."""
    model = attrs.evolve(MODEL_PRESETS["llama3-8b"], kv_heads=1)
    return Layout.of(aim_gddr6(), model)


@cache
def odd() -> Layout:
    """Nothing divides anything: folds, padding, and banks unlike lanes.

    Three heads of 7 elements on two channels of 4 banks, 6 lanes, blocks of 12 tokens.
    """
    device = DeviceConfig("odd", 2, 4, 90, 8 * 12, 12)
    model = ModelConfig("odd", 2, 3, 3, 7, 64)
    return Layout.of(device, model, block_tokens=12, pair_blocks=3, slots=3)


@cache
def striped() -> Layout:
    """Two heads of 5 elements on 12 channels of 3 banks: stripes and padding."""
    device = DeviceConfig("striped", 12, 3, 50, 10 * 8, 8)
    model = ModelConfig("striped", 2, 2, 2, 5, 64)
    return Layout.of(device, model, block_tokens=12, pair_blocks=5, slots=4)


@cache
def small_layouts(count: int = 40) -> tuple[Layout, ...]:
    """Small layouts of every kind, the smallest first; the same in every run."""
    random = Random(4)
    drawn = [_drawn(random) for _ in range(count)]
    return tuple(sorted(drawn, key=lambda layout: layout.device.capacity_bytes))


def _drawn(random: Random) -> Layout:
    banks, lanes = random.randint(1, 5), random.randint(1, 5)
    block_tokens = lcm(banks, lanes) * random.randint(1, 3)
    heads, channels = random.choice(((1, 6), (2, 9), (3, 2), (5, 3), (2, 3), (1, 1)))
    dim = random.randint(1, 3 * max(banks, lanes))
    model = ModelConfig("drawn", random.randint(1, 2), heads, heads, dim, 64)
    wide = DeviceConfig("drawn", channels, banks, 2**20, 2**12 * 2 * lanes, 2 * lanes)
    shapes = Layout.of(wide, model, block_tokens=block_tokens)
    least = max(shapes.key_width, shapes.rows_per_value * shapes.value_width)
    row_bytes = random.randint(least, 3 * least) * wide.burst_bytes
    narrow = attrs.evolve(wide, row_bytes=row_bytes)
    deep = Layout.of(narrow, model, block_tokens=block_tokens)
    pair_blocks = random.randint(1, 5)
    slots = random.randint(1, 2 * deep.slots_per_row)
    plane = sum(deep.rows_for(random.randint(1, 4) * pair_blocks, slots))
    rows = (plane + random.randint(0, 2)) * deep.planes + random.randint(0, 1)
    device = attrs.evolve(narrow, rows=rows)
    return Layout.of(
        device, model, block_tokens=block_tokens, pair_blocks=pair_blocks, slots=slots
    )


def published_layouts() -> Iterator[Layout]:
    """Shapes of published models on every device, for blocks of 16, 32 and 64 tokens.

    Also head dimensions that fill neither bursts nor banks, pairs of odd sizes, several
    Commit Zone rows, and elements of one byte.
    """
    heads = (1, 2, 4, 8, 12, 20, 32, 40, 64)
    dims = (64, 80, 96, 100, 112, 128, 192, 256)
    models = [
        *MODEL_PRESETS.values(),
        *(
            ModelConfig(f"{h} heads of {d}", 28, h, h, d, 4096)
            for d in dims
            for h in heads
        ),
    ]
    for model in models:
        for preset, block_tokens in product(DEVICE_PRESETS.values(), (16, 32, 64)):
            odd_pair = model.kv_heads + block_tokens // 2 + 1
            for bytes_, pair, slots in ((2, None, None), (2, odd_pair, 70), (1, 5, 1)):
                element = ElementType.BF16 if bytes_ == 2 else ElementType.FP8
                device = attrs.evolve(preset(), element=element)
                yield from _accepted(device, model, block_tokens, pair, slots)


def _accepted(
    device: DeviceConfig,
    model: ModelConfig,
    block_tokens: int,
    pair_blocks: int | None,
    slots: int | None,
) -> Iterator[Layout]:
    with suppress(LayoutError):
        yield Layout.of(
            device,
            model,
            block_tokens=block_tokens,
            pair_blocks=pair_blocks,
            slots=slots,
        )


def many_layouts() -> tuple[Layout, ...]:
    """Published shapes and drawn ones, each geometry once; the same in every run."""
    found = {
        (layout.map, layout.model.head_dim, layout.pair_blocks, layout.slots): layout
        for layout in (*published_layouts(), *small_layouts(300))
    }
    return tuple(found.values())
