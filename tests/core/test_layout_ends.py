"""Layouts at the ends of what fits, on a few seeded shapes: quick to run."""

from __future__ import annotations

from itertools import count
from typing import Any

import attrs
import numpy as np
import pytest

from patton.addresses import Address, Element
from patton.config import DeviceConfig, ModelConfig, model_preset
from patton.errors import ArgumentError, LayoutError
from patton.layout import Layout
from tests.core.llama import llama
from tests.core.strategies import address_counts, random_layout

SEEDS = pytest.mark.parametrize("seed", range(6))
KINDS: Any = ("key", "value", "slot")


def shaped(seed: int) -> Layout:
    return random_layout(np.random.default_rng(seed))


def refusal(layout: Layout, **parameters: Any) -> tuple[object, ...]:
    shape = {"block_tokens": layout.block_tokens, **parameters}
    with pytest.raises(LayoutError) as raised:
        Layout.of(layout.device, layout.model, **shape)
    error = raised.value
    assert str(error.fits) in error.accepted
    return error.parameter, error.value, error.fits


@SEEDS
def test_the_most_slots_beside_one_pair(seed: int) -> None:
    layout = shaped(seed)
    blocks = layout.pair_blocks
    key_rows, value_rows, _ = layout.rows_for(blocks, 1)
    most = (layout.rows_per_plane - key_rows - value_rows) * layout.slots_per_row
    shape = {"block_tokens": layout.block_tokens, "pair_blocks": blocks}

    assert ("slots", most + 1, most) == refusal(
        layout, pair_blocks=blocks, slots=most + 1
    )
    assert most == Layout.of(layout.device, layout.model, **shape, slots=most).slots


@SEEDS
def test_the_most_blocks_of_one_pair(seed: int) -> None:
    layout = shaped(seed)
    most = 1
    while sum(layout.rows_for(most + 1, 1)) <= layout.rows_per_plane:
        most += 1
    for blocks in (most + 1, 3 * most + 2):
        assert ("pair_blocks", blocks, most) == refusal(
            layout, pair_blocks=blocks, slots=1
        )
    assert ("pair_blocks", most + 1, most) == refusal(layout, pair_blocks=most + 1)


@SEEDS
def test_a_plane_with_room_for_one_block_and_one_slot(seed: int) -> None:
    """One row less than that, and it is the rows that have to grow."""
    layout = shaped(seed)
    least = sum(layout.rows_for(1, 1))
    exact = attrs.evolve(layout.device, rows=least * layout.planes)
    small = attrs.evolve(layout, device=exact)
    one_more = {"pair_blocks": layout.values_per_set * layout.keys_per_row * 64 + 1}

    assert "pair_blocks" == refusal(small, **one_more)[0]
    less = attrs.evolve(exact, rows=exact.rows - 1)
    assert "rows" == refusal(attrs.evolve(layout, device=less), **one_more)[0]
    assert ("rows", exact.rows - 1, exact.rows) == refusal(
        attrs.evolve(layout, device=less), pair_blocks=1, slots=1
    )


@SEEDS
def test_as_many_pairs_as_fit(seed: int) -> None:
    layout = shaped(seed)
    blocks, slots, rows = layout.pair_blocks, layout.slots, layout.rows_per_plane

    assert sum(layout.rows_for(layout.pairs * blocks, slots)) <= rows
    assert sum(layout.rows_for((layout.pairs + 1) * blocks, slots)) > rows


@pytest.mark.parametrize("kind", KINDS)
@SEEDS
def test_elements_have_bounds(seed: int, kind: Any) -> None:
    layout = shaped(seed)
    model = layout.model
    indices = layout.slots * layout.stripes if kind == "slot" else layout.granules
    size, heads = layout.block_tokens, (model.layers, model.kv_heads)
    last = Element(*(n - 1 for n in (*heads, indices, size, model.head_dim)))
    source = f"{model.name} on {layout.device.name}"
    for name, most in last._asdict().items():
        wrong: Any
        for wrong, fits in ((-1, 0), (most + 1, most), (0.5, most), ("x", most)):
            with pytest.raises(LayoutError) as raised:
                layout.address_of(kind, last._replace(**{name: wrong}))
            expected = (source, name, wrong, f"0 to {most}", fits)
            assert expected == attrs.astuple(raised.value)
    for element in (last, Element(0, 0, 0, 0, 0)):
        assert (kind, element) == layout.element_at(layout.address_of(kind, element))


@SEEDS
def test_addresses_have_bounds(seed: int) -> None:
    layout = shaped(seed)
    last = Address(*(bound - 1 for bound in address_counts(layout.device)))
    layout.element_at(last)
    for name, most in last._asdict().items():
        for wrong, fits in ((-1, 0), (most + 1, most)):
            with pytest.raises(LayoutError) as raised:
                layout.element_at(last._replace(**{name: wrong}))
            assert (name, wrong, fits) == (
                *(raised.value.parameter, raised.value.value),
                raised.value.fits,
            )


def test_kinds_are_named() -> None:
    kind: Any = "keys"
    with pytest.raises(ArgumentError) as raised:
        llama().layout.address_of(kind, Element(0, 0, 0, 0, 0))

    expected = ("address_of", "kind", "keys", "key or value or slot")
    assert expected == attrs.astuple(raised.value)


def test_what_is_asked_for_by_default() -> None:
    """Blocks of 16 tokens, pairs of 16 blocks and a row of slots for this model."""
    device = llama(gib=0.5).layout.device
    layout = Layout.of(device, model_preset("llama3-8b"))

    assert (16, 16, 32) == (layout.block_tokens, layout.pair_blocks, layout.slots)


def test_a_row_holds_whole_blocks_only() -> None:
    """Seven bursts hold three blocks of two bursts, so six tokens are the most."""
    device = DeviceConfig("d", 1, 2, 64, 28, 4)
    model = ModelConfig("m", 1, 1, 1, 4, 64)
    with pytest.raises(LayoutError) as raised:
        Layout.of(device, model, block_tokens=100)

    assert ("block_tokens", 100, 6) == (
        *(raised.value.parameter, raised.value.value),
        raised.value.fits,
    )
    assert isinstance(raised.value.fits, int)


def test_counts_are_limited_by_what_python_can_index() -> None:
    layout = llama(gib=0.5).layout
    parameters = ("pair_blocks", 2**62, "at most"), ("pair_blocks", 2**62 + 1, "a whol")
    for name, value, accepted in parameters:
        with pytest.raises(LayoutError) as raised:
            Layout.of(layout.device, layout.model, **{name: value})
        assert raised.value.accepted.startswith(accepted)


def test_one_slot_is_asked_for_by_default_where_a_row_holds_no_more() -> None:
    layouts = (shaped(seed) for seed in count())
    layout = next(each for each in layouts if each.slots_per_row == 1)
    size, blocks = layout.block_tokens, layout.pair_blocks
    roomy = attrs.evolve(layout.device, rows=layout.device.rows * 4)
    default = Layout.of(roomy, layout.model, block_tokens=size, pair_blocks=blocks)

    assert 1 == default.slots
