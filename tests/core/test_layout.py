from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patton.addresses import Address, Element
from patton.config import (
    DEVICE_PRESETS,
    MODEL_PRESETS,
    DeviceConfig,
    ModelConfig,
    aim_gddr6,
    device_preset,
    tiny_device,
)
from patton.layout import Kind, Layout
from tests.core.strategies import address_counts, layouts, random_layout

LLAMA = MODEL_PRESETS["llama3-8b"]
HEADS_64 = attrs.evolve(LLAMA, kv_heads=64, query_heads=64)
HEADS_1 = attrs.evolve(LLAMA, kv_heads=1)
DIM_80 = ModelConfig("dim-80", 32, 32, 32, 80, 2048)


@pytest.mark.parametrize(
    ("model", "slots", "blocks", "plane", "regions", "pairs", "tokens", "ideal"),
    [
        (LLAMA, 32, 16, 512, (255, 256, 1), 510, 130_560, 131_072),
        (MODEL_PRESETS["qwen3-8b"], 32, 16, 455, (226, 226, 1), 452, 115_712, 116_508),
        (MODEL_PRESETS["opt-6.7b"], 8, 16, 512, (254, 256, 1), 127, 32_512, 32_768),
        (MODEL_PRESETS["qwen1.5-7b"], 8, 16, 512, (254, 256, 1), 127, 32_512, 32_768),
        (HEADS_64, 8, 16, 256, (126, 128, 1), 63, 16_128, 16_384),
        (HEADS_1, 32, 32, 512, (255, 255, 1), 2040, 1_044_480, 1_048_576),
        (DIM_80, 8, 16, 512, (262, 245, 1), 196, 50_176, 52_428),
    ],
    ids=["llama3-8b", "qwen3-8b", "opt-6.7b", "qwen1.5-7b", "64-heads", "mqa", "d80"],
)
def test_worked_figures(
    model: ModelConfig,
    slots: int,
    blocks: int,
    plane: int,
    regions: tuple[int, int, int],
    pairs: int,
    tokens: int,
    ideal: int,
) -> None:
    """The capacity of 16 GiB of AiM for blocks of 16 tokens, model by model."""
    layout = Layout.of(aim_gddr6(), model, slots=slots)

    assert blocks == layout.pair_blocks
    assert plane == layout.rows_per_plane
    assert regions == (layout.key_rows, layout.value_rows, layout.commit_zone_rows)
    assert plane - sum(regions) == layout.unused_rows
    assert (pairs, tokens) == (layout.pairs, layout.tokens)
    assert pairs * blocks == layout.granules
    assert ideal == layout.ideal_tokens


SHAPES = (
    *("channels_per_head", "groups", "folds", "planes", "key_bursts"),
    *("value_subblocks", "key_width", "value_width", "value_channels", "stripes"),
    *("rows_per_value", "keys_per_row", "values_per_set", "slots_per_row"),
)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (LLAMA, (4, 8, 1, 32, 8, 8, 8, 1, 4, 1, 2, 8, 64, 32)),
        (MODEL_PRESETS["opt-6.7b"], (1, 32, 1, 32, 8, 8, 8, 1, 1, 1, 8, 8, 64, 8)),
        (HEADS_64, (1, 32, 2, 64, 8, 8, 8, 1, 1, 1, 8, 8, 64, 8)),
        (HEADS_1, (32, 1, 1, 32, 8, 8, 8, 1, 8, 4, 1, 8, 64, 64)),
    ],
    ids=["c4", "c1", "folds", "stripes"],
)
def test_worked_shapes(model: ModelConfig, expected: tuple[int, ...]) -> None:
    """The derived shapes of one head and one block on AiM."""
    layout = Layout.of(aim_gddr6(), model)

    assert expected == tuple(getattr(layout, name) for name in SHAPES)


def test_value_channels_divide_the_channels_of_a_head() -> None:
    """Four sub-blocks on six channels: three channels take two rows, in two stripes."""
    device = DeviceConfig("d", 6, 4, 64, 64, 8)
    layout = Layout.of(device, ModelConfig("m", 1, 1, 1, 16, 64), block_tokens=4)

    assert (4, 3) == (layout.value_subblocks, layout.value_channels)
    assert (2, 2) == (layout.stripes, layout.rows_per_value)


@pytest.mark.parametrize(("channels", "blocks"), [(1, 16), (3, 18), (16, 16), (17, 17)])
def test_default_pair_fills_the_channels(channels: int, blocks: int) -> None:
    """A pair is by default the least multiple of a head's channels from 16."""
    device = attrs.evolve(aim_gddr6(), channels=channels)

    assert blocks == Layout.of(device, HEADS_1).pair_blocks


@pytest.mark.parametrize(
    ("asked", "slots", "rows"), [(None, 32, 1), (1, 32, 1), (32, 32, 1), (33, 64, 2)]
)
def test_slots_fill_whole_rows(asked: int | None, slots: int, rows: int) -> None:
    """The Commit Zone has whole rows of slots, by default one."""
    layout = Layout.of(aim_gddr6(), LLAMA, slots=asked)

    assert (slots, rows) == (layout.slots, layout.commit_zone_rows)


@given(layouts())
def test_no_further_pair_fits(layout: Layout) -> None:
    """All regions fit a plane, and with one pair more they would not."""
    more = layout.rows_for(layout.granules + layout.pair_blocks, layout.slots)
    rows = (layout.key_rows, layout.value_rows, layout.commit_zone_rows)

    assert 1 <= layout.pairs
    assert layout.rows_per_plane == sum(rows) + layout.unused_rows
    assert rows == layout.rows_for(layout.granules, layout.slots)
    assert layout.rows_per_plane < sum(more)
    assert layout.planes * layout.rows_per_plane <= layout.device.rows


@given(layouts())
def test_map_digits_agree_with_each_other(layout: Layout) -> None:
    """The two relations that the address map rests on hold."""
    digits = layout.map

    assert digits.channels_per_head == digits.stripes * digits.value_channels
    assert digits.token_groups * digits.banks == digits.value_bursts * digits.lanes
    assert layout.block_tokens == digits.value_bursts * digits.lanes


@given(layouts())
def test_regions_hold_what_they_are_for(layout: Layout) -> None:
    """Key rows hold all Key granules, and a row less would not; so do the others."""
    keys = layout.channels_per_head * layout.keys_per_row
    values = layout.stripes * layout.values_per_set
    value_sets = layout.value_rows // layout.rows_per_value

    assert (layout.key_rows - 1) * keys < layout.granules <= layout.key_rows * keys
    assert (value_sets - 1) * values < layout.granules <= value_sets * values
    assert layout.commit_zone_rows * layout.slots_per_row == layout.slots


@given(layouts(), st.data())
def test_pair_and_value_set_of_a_granule(layout: Layout, data: st.DataObject) -> None:
    """A granule belongs to the pair of its run; a pair's set is its first granule's."""
    granule = data.draw(st.integers(0, layout.granules - 1))
    pair = layout.pair_of(granule)
    first = layout.address_of("value", Element(0, 0, pair * layout.pair_blocks, 0, 0))
    value_set = (first.row - layout.key_rows) // layout.rows_per_value

    assert 0 <= granule - pair * layout.pair_blocks < layout.pair_blocks
    assert value_set == layout.value_set_of_pair(pair)
    assert [value_set] == layout.value_set_of_pair(np.array([pair])).tolist()


def small_layouts(most_lanes: int) -> list[Layout]:
    drawn = [random_layout(np.random.default_rng(seed)) for seed in range(150)]
    return [
        item for item in drawn if np.prod(address_counts(item.device)) <= most_lanes
    ]


@pytest.mark.parametrize("layout", small_layouts(2_000), ids=lambda _: "random")
def test_every_address_of_the_device(layout: Layout) -> None:
    """Each address holds the one element that lies there, and all others nothing."""
    model = layout.model
    indices = 2 * layout.granules + layout.slots * layout.stripes
    block_elements = layout.block_tokens * model.head_dim
    found = {
        place: layout.element_at(Address(*place))
        for place in np.ndindex(*address_counts(layout.device))
    }
    held = {place: item for place, item in found.items() if item is not None}

    assert model.layers * model.kv_heads * indices * block_elements == len(held)
    assert held == {layout.address_of(*item): item for item in held.values()}


def granule_bytes(layout: Layout, kind: Kind) -> int:
    """Bytes between the first and last burst, row and channel of all granules."""
    banks, lanes = layout.device.banks, layout.device.lanes
    last = (layout.block_tokens - 1, layout.model.head_dim - 1)
    total = 0
    for granule in range(layout.granules):
        low = layout.address_of(kind, Element(0, 0, granule, 0, 0))
        high = layout.address_of(kind, Element(0, 0, granule, *last))
        rows = layout.rows_per_value if kind == "value" else 1
        channels = layout.value_channels if kind == "value" else 1
        bursts = high.burst - low.burst + 1
        total += rows * channels * bursts * banks * lanes
    return total * layout.model.layers * layout.model.kv_heads * 2


@given(layouts())
def test_padding_is_what_granules_have_over(layout: Layout) -> None:
    """Padding is the bytes that granules span less the bytes of their elements."""
    model = layout.model
    elements = model.layers * model.kv_heads * layout.tokens * model.head_dim
    spanned = granule_bytes(layout, "key") + granule_bytes(layout, "value")

    assert spanned - 2 * 2 * elements == layout.padding_bytes


@pytest.mark.parametrize(
    ("head_dim", "elements"),
    [(128, 0), (80, 0), (72, 8 + 8), (129, 15 + 15)],
)
def test_padding_of_a_token(head_dim: int, elements: int) -> None:
    """With 16 lanes, 16 banks and one channel, both vectors fill up to 16 elements."""
    layout = Layout.of(aim_gddr6(), attrs.evolve(DIM_80, head_dim=head_dim))

    assert elements * 2 * 32 * 32 * layout.tokens == layout.padding_bytes


def test_padding_of_unequal_channels() -> None:
    """Five sub-blocks on four channels take two rows, so three sub-blocks are over."""
    layout = Layout.of(aim_gddr6(), attrs.evolve(LLAMA, head_dim=80))

    assert (5, 4, 2) == (
        layout.value_subblocks,
        layout.value_channels,
        layout.rows_per_value,
    )
    assert 3 * 16 * 2 * 32 * 8 * layout.tokens == layout.padding_bytes


@pytest.mark.parametrize("name", DEVICE_PRESETS)
def test_device_presets_serve_a_model(name: str) -> None:
    """Every device but the tiny one gives Llama3-8B at least 99 % of its bytes."""
    device = device_preset(name)
    model = MODEL_PRESETS["tiny"] if name == "tiny" else LLAMA
    block_tokens = max(device.banks, device.lanes)
    layout = Layout.of(device, model, block_tokens=block_tokens)

    assert (0.93 if name == "tiny" else 0.99) <= layout.tokens / layout.ideal_tokens


def test_tiny_device_serves_the_tiny_model() -> None:
    """The default run has 30 pairs, enough for three full contexts."""
    layout = Layout.of(tiny_device(), MODEL_PRESETS["tiny"])

    assert (30, 7_680) == (layout.pairs, layout.tokens)
