from __future__ import annotations

from collections import Counter

import attrs
import numpy as np
import pytest

from patton.addresses import Address, Element
from patton.config import MODEL_PRESETS, DeviceConfig, ModelConfig, aim_gddr6
from patton.errors import LayoutError
from patton.layout import Layout
from patton.locate import (
    address_words,
    element_words,
    first_row,
    locate,
    regions,
)
from tests.core.strategies import address_counts, random_layout

LLAMA = Layout.of(aim_gddr6(), MODEL_PRESETS["llama3-8b"])
QWEN = Layout.of(aim_gddr6(), MODEL_PRESETS["qwen3-8b"])
DIM_72 = Layout.of(
    aim_gddr6(), attrs.evolve(MODEL_PRESETS["opt-6.7b"], head_dim=72), slots=12
)


def small_layouts(most_lanes: int) -> list[Layout]:
    drawn = [random_layout(np.random.default_rng(seed)) for seed in range(300)]
    return [x for x in drawn if np.prod(address_counts(x.device)) <= most_lanes]


@pytest.mark.parametrize("layout", small_layouts(4_000), ids=lambda _: "random")
def test_every_address_has_one_use(layout: Layout) -> None:
    """Elements are where the layout says, padding is as much as it counts."""
    uses: Counter[tuple[str, str | None]] = Counter()
    for place in np.ndindex(*address_counts(layout.device)):
        address = Address(*place)
        found = locate(layout, address)
        held = layout.element_at(address)
        uses[found.use, found.kind] += 1

        assert (found.use == "element") == (held is not None)
        assert address == found.address
        assert (found.note == "") == (found.use == "element")
        if held is not None:
            assert held == (found.kind, found.element)

    elements = layout.model.layers * layout.model.kv_heads * layout.model.head_dim
    assert elements * layout.tokens == uses["element", "key"]
    assert elements * layout.tokens == uses["element", "value"]
    padding = uses["padding", "key"] + uses["padding", "value"]
    assert layout.padding_bytes == padding * layout.device.element.bytes


@pytest.mark.parametrize("layout", [LLAMA, QWEN, DIM_72], ids=["llama", "qwen", "d72"])
def test_regions_fill_a_plane(layout: Layout) -> None:
    """Regions follow each other without a gap and end with the plane."""
    ends = [0]
    for region in regions(layout):
        assert ends[-1] == region.first_row
        ends.append(region.end_row)

    assert layout.rows_per_plane == ends[-1]


def test_first_row_of_a_plane() -> None:
    """Layers follow each other, and folds inside a layer."""
    folded = Layout.of(
        aim_gddr6(), attrs.evolve(LLAMA.model, kv_heads=64, query_heads=64)
    )

    assert 3 * 512 == first_row(LLAMA, 3, 7)
    assert (2 * 256, 3 * 256) == (first_row(folded, 1, 31), first_row(folded, 1, 32))


NINE = Layout.of(
    DeviceConfig("nine", 9, 2, 40, 28, 4),
    ModelConfig("four", 1, 4, 4, 3, 64),
    block_tokens=2,
    pair_blocks=3,
)


@pytest.mark.parametrize(
    ("layout", "address", "use", "region", "note"),
    [
        (QWEN, Address(0, 0, 16383, 0, 0), "unused", "", "last of 36 planes"),
        (QWEN, Address(0, 0, 454, 0, 0), "unused", "unused", "left over"),
        (QWEN, Address(0, 0, 453, 0, 0), "unused", "unused", "left over"),
        (QWEN, Address(0, 0, 225, 63, 0), "element", "Key", ""),
        (DIM_72, Address(0, 0, 0, 4, 8), "padding", "Key", "a head has 72 elements"),
        (DIM_72, Address(0, 0, 0, 63, 0), "unused", "Key", "end of a row"),
        (NINE, Address(8, 0, 0, 0, 0), "unused", "Key", "no KV head of the 4"),
    ],
)
def test_what_lies_where_nothing_lies(
    layout: Layout, address: Address, use: str, region: str, note: str
) -> None:
    """Each kind of nothing has its reason."""
    found = locate(layout, address)

    assert (use, region) == (found.use, found.region)
    assert note in found.note


def test_after_the_last_granule() -> None:
    """The last row of a region may have room that no granule takes."""
    layout = Layout.of(aim_gddr6(), LLAMA.model, pair_blocks=7)
    last = layout.address_of("key", Element(0, 0, layout.granules - 1, 15, 127))
    after = last._replace(channel=(last.channel + 1) % 4)
    found = locate(layout, after)

    assert "unused" == found.use
    assert f"after the last Key granule, which is {layout.granules - 1}" == found.note


def test_outside_the_device() -> None:
    """An address that the device does not have names the axis and its range."""
    with pytest.raises(LayoutError, match=r"row is 16384; accepted: 0 to 16383"):
        locate(LLAMA, Address(0, 0, 16384, 0, 0))


def test_words() -> None:
    """Addresses and elements are said with the names that options have."""
    element = Element(2, 1, 35, 4, 19)

    assert "channel 1, bank 2, row 3, burst 4, lane 5" == address_words(
        Address(1, 2, 3, 4, 5)
    )
    assert (
        "Key in granule 35 (place 3 of pair 2), token 4, element 19, KV head 1, layer 2"
        == element_words(LLAMA, "key", element)
    )
    assert element_words(LLAMA, "value", element).startswith("Value in granule 35 (")
    assert "Value in slot 5, token 4, element 19, KV head 1, layer 2" == element_words(
        LLAMA, "slot", element._replace(index=5)
    )
