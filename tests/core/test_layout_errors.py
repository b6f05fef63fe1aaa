from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patton.addresses import Address, Element
from patton.config import (
    MODEL_PRESETS,
    DeviceConfig,
    ElementType,
    ModelConfig,
    aim_gddr6,
)
from patton.errors import LayoutError
from patton.layout import Kind, Layout
from tests.core.strategies import address_counts, layouts

LLAMA = MODEL_PRESETS["llama3-8b"]


def refusal(
    device: DeviceConfig, model: ModelConfig, **parameters: Any
) -> tuple[str, object, int | None]:
    with pytest.raises(LayoutError) as caught:
        Layout.of(device, model, **parameters)
    error = caught.value
    assert f"{model.name} on {device.name}" == error.source
    assert f"{error.parameter} is {error.value!r}; accepted: " in str(error)
    assert str(error.fits) in error.accepted
    return error.parameter, error.value, error.fits


@pytest.mark.parametrize(
    ("tokens", "fits"),
    [(0, 16), (-1, 16), (8, 16), (17, 32), (100, 112), (136, 128), (129, 128)],
)
def test_refuses_block_tokens(tokens: int, fits: int) -> None:
    """A block fills all banks and lanes, and its Key fits a row of eight times that."""
    assert ("block_tokens", tokens, fits) == refusal(
        aim_gddr6(), LLAMA, block_tokens=tokens
    )


@pytest.mark.parametrize("tokens", ["16", 16.0, None, True])
def test_refuses_block_tokens_that_are_no_number(tokens: object) -> None:
    """What is no whole number is answered with the smallest block."""
    assert ("block_tokens", tokens, 16) == refusal(
        aim_gddr6(), LLAMA, block_tokens=tokens
    )


@pytest.mark.parametrize("element", [ElementType.FP8, ElementType.INT8])
def test_refuses_small_blocks_of_one_byte_elements(element: ElementType) -> None:
    """With 32 elements per burst, a block needs 32 tokens; then they are placed."""
    device = attrs.evolve(aim_gddr6(), element=element)

    assert ("block_tokens", 16, 32) == refusal(device, LLAMA)
    assert 32 == Layout.of(device, LLAMA, block_tokens=32).block_tokens


def test_refuses_slots_wider_than_a_row() -> None:
    """A head on one channel keeps 8 sub-blocks in a slot: 128 tokens are the most."""
    opt = MODEL_PRESETS["opt-6.7b"]

    assert ("block_tokens", 256, 128) == refusal(aim_gddr6(), opt, block_tokens=256)


@pytest.mark.parametrize(
    ("device", "row_bytes"),
    [
        # Two tokens of 4 bursts in each bank; a slot of 4 rows of one burst.
        (DeviceConfig("d", 2, 2, 64, 32, 8), 2 * 4 * 8),
        # A token of 8 bursts in each bank; a slot of 8 rows of one burst.
        (DeviceConfig("d", 1, 2, 64, 32, 4), 8 * 4),
        # A token of 8 bursts in each bank; a slot of 3 rows of 3 bursts.
        (DeviceConfig("d", 1, 6, 64, 32, 4), 3 * 3 * 4),
    ],
    ids=["key", "both", "slot"],
)
def test_refuses_rows_narrower_than_a_block(
    device: DeviceConfig, row_bytes: int
) -> None:
    """If even the smallest block is wider than a row, the row is what must grow."""
    device = attrs.evolve(device, row_bytes=row_bytes - device.burst_bytes)
    model = ModelConfig("m", 1, 1, 1, 16, 64)
    wider = attrs.evolve(device, row_bytes=row_bytes)
    tokens = max(device.banks, device.lanes)

    expected = ("row_bytes", device.row_bytes, row_bytes)
    assert expected == refusal(device, model, block_tokens=tokens)
    assert tokens == Layout.of(wider, model, block_tokens=tokens).block_tokens


@pytest.mark.parametrize("parameter", ["pair_blocks", "slots"])
@pytest.mark.parametrize("value", [0, -3, 1.5, "8", True])
def test_refuses_what_is_no_count(parameter: str, value: object) -> None:
    """Pair and Commit Zone sizes are whole numbers from 1."""
    assert (parameter, value, 1) == refusal(aim_gddr6(), LLAMA, **{parameter: value})


def test_refuses_planes_without_rows() -> None:
    """A device with fewer rows than the model has layers has room for nothing."""
    device = attrs.evolve(aim_gddr6(), rows=20)

    assert ("rows", 20, 32 * (1 + 2 + 1)) == refusal(device, LLAMA)


@pytest.mark.parametrize(
    "parameters", [{}, {"pair_blocks": 1}, {"slots": 1}, {"pair_blocks": 2, "slots": 9}]
)
def test_refuses_planes_too_small_for_a_pair(parameters: dict[str, int]) -> None:
    """The number of rows that is named fits, and one row less does not."""
    device = attrs.evolve(aim_gddr6(), rows=32 * 3)
    parameter, value, rows = refusal(device, LLAMA, **parameters)
    fitting = attrs.evolve(device, rows=32 * 4)

    assert ("rows", 96, 128) == (parameter, value, rows)
    assert 1 <= Layout.of(fitting, LLAMA, **parameters).pairs
    one_less = refusal(attrs.evolve(device, rows=127), LLAMA, **parameters)
    assert ("rows", 127, 128) == one_less


@given(layouts())
def test_refuses_too_many_slots(layout: Layout) -> None:
    """The slots that are named leave room for one pair, one more does not."""
    device, model = layout.device, layout.model
    shape = {"block_tokens": layout.block_tokens, "pair_blocks": layout.pair_blocks}
    slots = layout.rows_per_plane * layout.slots_per_row
    parameter, value, fits = refusal(device, model, **shape, slots=slots)

    assert ("slots", slots) == (parameter, value)
    assert isinstance(fits, int)
    assert fits == Layout.of(device, model, **shape, slots=fits).slots
    assert "slots" == refusal(device, model, **shape, slots=fits + 1)[0]


@given(layouts())
def test_refuses_too_large_pairs(layout: Layout) -> None:
    """The pair that is named fits beside one row of slots, a larger one does not."""
    device, model, tokens = layout.device, layout.model, layout.block_tokens
    blocks = layout.granules * 100
    shape = {"block_tokens": tokens, "slots": 1}
    parameter, value, fits = refusal(device, model, **shape, pair_blocks=blocks)

    assert ("pair_blocks", blocks) == (parameter, value)
    assert isinstance(fits, int)
    assert 1 == Layout.of(device, model, **shape, pair_blocks=fits).pairs
    assert "pair_blocks" == refusal(device, model, **shape, pair_blocks=fits + 1)[0]


@pytest.mark.parametrize("kind", ["key", "value", "slot"])
@given(layout=layouts(), data=st.data())
def test_refuses_elements_that_do_not_exist(
    kind: Kind, layout: Layout, data: st.DataObject
) -> None:
    """The first index out of bounds is named with the nearest that is not."""
    model = layout.model
    slots = layout.slots * layout.stripes
    indices = slots if kind == "slot" else layout.granules
    heads = (model.layers, model.kv_heads)
    last = Element(*heads, indices, layout.block_tokens, model.head_dim)
    last = Element(*(bound - 1 for bound in last))
    name = data.draw(st.sampled_from(Element._fields))
    most = getattr(last, name)
    wrong, fits = data.draw(st.sampled_from([(-1, 0), (most + 1, most)]))

    with pytest.raises(LayoutError) as caught:
        layout.address_of(kind, last._replace(**{name: wrong}))

    error = caught.value
    assert (name, wrong, fits) == (error.parameter, error.value, error.fits)
    assert f"0 to {most}" == error.accepted
    assert (kind, last) == layout.element_at(layout.address_of(kind, last))


@given(layout=layouts(), data=st.data())
def test_refuses_addresses_that_do_not_exist(
    layout: Layout, data: st.DataObject
) -> None:
    """The first coordinate that the device lacks is named."""
    last = Address(*(bound - 1 for bound in address_counts(layout.device)))
    name = data.draw(st.sampled_from(Address._fields))
    most = getattr(last, name)
    wrong, fits = data.draw(st.sampled_from([(-1, 0), (most + 1, most)]))

    with pytest.raises(LayoutError) as caught:
        layout.element_at(last._replace(**{name: wrong}))

    error = caught.value
    assert (name, wrong, fits) == (error.parameter, error.value, error.fits)
