"""Layouts that traces can address: 32 channels of 16 banks at most, all else odd."""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import CommandStream
from patton.config import CommitWay, DeviceConfig, ModelConfig
from patton.generate import StepStreams, commit_stream, generate_step
from patton.layout import Layout
from patton.steps import PlacedStep
from tests.core.generate.random_steps import random_step

WAYS: tuple[CommitWay, ...] = ("host", "read-back", "global-buffer")


def aim_layout(rng: np.random.Generator) -> Layout:
    """A layout of a device with 16 banks, with folds, idle channels and padding."""
    channels = int(rng.integers(1, 13))
    heads = int(rng.integers(1, 15))
    model = ModelConfig(
        "random",
        layers=int(rng.integers(1, 4)),
        kv_heads=heads,
        query_heads=heads * int(rng.integers(1, 3)),
        head_dim=int(rng.integers(1, 70)),
        max_context=4096,
    )
    device = DeviceConfig(
        "random",
        channels=channels,
        banks=16,
        rows=2**20,
        row_bytes=2048,
        burst_bytes=32,
        result_registers=int(rng.integers(1, 3)),
        copy_column="free",
        write_masks=bool(rng.random() < 0.7),
    )
    tokens = 16 * int(rng.integers(1, 3))
    pairs = int(rng.integers(1, 5))
    wide = Layout.of(device, model, block_tokens=tokens, pair_blocks=pairs)
    slots = int(rng.integers(1, 2 * wide.slots_per_row + 1))
    rows = sum(wide.rows_for(int(rng.integers(1, 4)) * pairs, slots))
    device = attrs.evolve(device, rows=rows * wide.planes)
    return Layout.of(device, model, block_tokens=tokens, pair_blocks=pairs, slots=slots)


def random_placed(seed: int) -> PlacedStep:
    """A random step on a random layout."""
    rng = np.random.default_rng(seed)
    return random_step(rng, aim_layout(rng))


def streams_of_step(placed: PlacedStep) -> list[CommandStream]:
    """All its streams, commits in every way."""
    streams: StepStreams = generate_step(placed)
    commits = [commit_stream(placed, way) for way in WAYS[1:]]
    return [*streams.present(), *(stream for stream in commits if stream is not None)]
