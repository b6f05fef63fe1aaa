"""Runtime, streams, devices and reduction together equal the reference in every bit.

A random engine (`tests.served`) serves requests on random small layouts and on layouts
of real sizes; after every step each output of each device is compared.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import numpy as np
import pytest

from patton.config import CommitWay, ElementType, ModelConfig, device_preset
from patton.device.batched import ReferenceDevice
from patton.device.plain import PlainDevice
from patton.layout import Layout
from patton.runtime import Runtime
from tests.core.strategies import random_layout
from tests.served import ServedEngine

pytestmark = pytest.mark.usefixtures("specification")

WAYS: tuple[CommitWay, ...] = ("host", "read-back", "global-buffer")


def served(
    layout: Layout, seed: int, *, steps: int, plain: bool = False, **options: Any
) -> ServedEngine:
    """An engine after so many steps, all of them compared."""
    devices: list[ReferenceDevice | PlainDevice] = [ReferenceDevice(layout.device)]
    if plain:
        devices.append(PlainDevice(layout.device))
    runtime = Runtime.of(layout, **options)
    engine = ServedEngine(runtime, devices, np.random.default_rng(seed))
    for _ in range(steps):
        engine.step()
    runtime.check()
    images = [sorted(device.memory.image()) for device in devices]
    assert all(image == images[0] for image in images)
    return engine


def random_case(seed: int) -> ServedEngine:
    """Any small layout, any way to commit, masks or none, 1 to 8 registers."""
    way = WAYS[seed % 3]
    layout = random_layout(
        np.random.default_rng(seed),
        commit_way=way,
        copy_column="free" if way == "global-buffer" else "same",
        write_masks=seed % 4 > 0,
        result_registers=1 + seed % 8,
    )
    return served(
        layout,
        seed,
        steps=10,
        plain=True,
        choice=("spread", "packed")[seed % 2],
        commit_zone=seed % 7 > 0,
        adoption=seed % 5 > 0,
    )


def test_random_geometries() -> None:
    """Both devices agree with the reference, and everything an engine does occurs."""
    seen: Counter[str] = Counter()
    for seed in range(40):
        seen += random_case(seed).seen

    for situation in (
        *("drafts rejected", "same-step shares", "several queries", "windows"),
        *("releases", "evictions", "read-backs", "commits", "commits repeated"),
        *("no slot", "partial reads", "resident reads"),
    ):
        assert seen[situation] > 4, situation


@attrs.frozen
class Shape:
    """A model and device of real sizes, few rows deep."""

    channels: int
    kv_heads: int
    query_heads: int
    head_dim: int
    block_tokens: int
    device: str = "aim-gddr6"
    element: ElementType = ElementType.BF16
    registers: int = 1
    rows: int = 40
    commit_way: CommitWay = "host"
    write_masks: bool = True

    def layout(self) -> Layout:
        """One layer, with as many rows as all its folds take together."""
        folds = -(-self.kv_heads // self.channels)
        device = attrs.evolve(
            device_preset(self.device),
            channels=self.channels,
            rows=self.rows * folds,
            element=self.element,
            result_registers=self.registers,
            commit_way=self.commit_way,
            copy_column="free",
            write_masks=self.write_masks,
        )
        heads = (self.kv_heads, self.query_heads)
        model = ModelConfig("test", 1, *heads, self.head_dim, 4096)
        return Layout.of(device, model, block_tokens=self.block_tokens)


FP16 = ElementType.FP16
SHAPES = {
    "grouped queries, four channels a head": Shape(8, 2, 8, 128, 16),
    "one channel a head, small heads": Shape(4, 4, 4, 64, 16, registers=4),
    "one head, stripes": Shape(16, 1, 8, 64, 32, registers=2),
    "one head, stripes, no masks": Shape(16, 1, 2, 128, 16, write_masks=False),
    "folds, padded rows": Shape(2, 5, 5, 80, 16, commit_way="read-back"),
    "three channels a head": Shape(6, 2, 6, 96, 64, registers=8),
    "large heads, FP16": Shape(4, 2, 4, 256, 32, element=FP16, registers=3),
    "blocks of 64": Shape(2, 2, 2, 128, 64, commit_way="global-buffer"),
    "FP16, read-back": Shape(4, 2, 4, 128, 16, element=FP16, commit_way="read-back"),
    "bursts of 32, folds": Shape(2, 3, 6, 80, 32, device="ddr4", write_masks=False),
    "32 banks": Shape(4, 2, 2, 128, 64, device="ddr5", registers=2),
}


@pytest.mark.parametrize("name", SHAPES)
def test_real_geometries(name: str) -> None:
    """Sizes of real models and devices; the error to double precision is small."""
    engine = served(SHAPES[name].layout(), 1, steps=15)

    assert engine.seen["commits"] > 0
    assert engine.seen["partial reads"] > 0
    assert engine.worst_error < 1e-2


def test_without_commit_zone_nothing_is_staged() -> None:
    """Every write goes straight to its O1V, and the outputs stay exact."""
    shape = SHAPES["grouped queries, four channels a head"]
    engine = served(shape.layout(), 2, steps=15, commit_zone=False)

    assert engine.seen["staged"] == engine.seen["commits"] == 0
    assert engine.seen["no slot"] > 0
